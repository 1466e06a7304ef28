/* Settings that hold while all runs, rate limits of single callers and tools, and circuit breakers. */
import {en} from "../../en";
import type {PageProps} from "../../pages";
import {link} from "../../route";
import {Page, Tabs} from "../../ui/page";
import {Breakers} from "./breakers";
import {Limits} from "./limits";
import {AllSettings} from "./list";

const t = en.settings;
const tabs = [
	[link("settings"), t.tabs.all],
	[link("settings", "limits"), t.tabs.limits],
	[link("settings", "breakers"), t.tabs.breakers],
] as const;

export default function Settings({rest, query}: PageProps) {
	const at = rest[0] === "limits" ? 1 : rest[0] === "breakers" ? 2 : 0;
	return (
		<Page title={t.title} intro={[t.intro, t.limitsIntro, t.breakersIntro][at]}>
			<Tabs tabs={tabs} at={tabs[at]![0]} />
			{at === 0 ? <AllSettings find={query.get("find") ?? ""} /> : at === 1 ? <Limits /> : <Breakers />}
		</Page>
	);
}
