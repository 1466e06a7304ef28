/* The table of pages: where each is, its place in the menu, and its file, which is fetched when it is first opened. */
import type {ComponentType} from "preact";
import {en} from "./en";

/** Receives the parts of the address after the page's own: ["ID"] of #/calls/ID. */
export type PageProps = {rest: string[]; query: URLSearchParams};

export interface PageRow {
	place: string;
	title: string;
	/** Title of the menu's group; "" is the first, which has none. Left out: not in the menu. */
	group?: string;
	load: () => Promise<{default: ComponentType<PageProps>}>;
}

const {main, tools, records, rights} = en.frame.sections;

export const pages: PageRow[] = [
	{place: "", title: en.overview.title, group: main, load: () => import("./pages/overview/page")},
	{place: "approvals", title: en.approvals.title, group: main, load: () => import("./pages/approvals/page")},
	{place: "tools", title: en.tools.title, group: tools, load: () => import("./pages/tools/page")},
	{place: "playground", title: en.playground.title, group: tools, load: () => import("./pages/playground/page")},
	{place: "prompts", title: en.prompts.title, group: tools, load: () => import("./pages/prompts/page")},
	{place: "servers", title: en.servers.title, group: tools, load: () => import("./pages/servers/page")},
	{place: "secrets", title: en.secrets.title, group: tools, load: () => import("./pages/secrets/page")},
	{place: "network", title: en.network.title, group: tools, load: () => import("./pages/network/page")},
	{place: "modules", title: en.modules.title, group: tools, load: () => import("./pages/modules/page")},
	{place: "sources", title: en.sources.title, group: tools, load: () => import("./pages/sources/page")},
	{place: "calls", title: en.calls.title, group: records, load: () => import("./pages/calls/page")},
	{place: "activity", title: en.activity.title, group: records, load: () => import("./pages/activity/page")},
	{place: "audit", title: en.audit.title, group: records, load: () => import("./pages/audit/page")},
	{place: "access", title: en.access.title, group: rights, load: () => import("./pages/access/page")},
	{place: "remote", title: en.remote.title, group: rights, load: () => import("./pages/remote/page")},
	{place: "people", title: en.people.title, group: rights, load: () => import("./pages/people/page")},
	{place: "settings", title: en.settings.title, group: rights, load: () => import("./pages/settings/page")},
	{place: "account", title: en.account.title, load: () => import("./pages/account/page")},
];
