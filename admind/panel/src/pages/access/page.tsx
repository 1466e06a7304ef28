/* Who may come in: API tokens, keys of scripts, people of issuers, the access document, endpoints, and who is told of requests. */
import {en} from "../../en";
import type {PageProps} from "../../pages";
import {link} from "../../route";
import {Page, Tabs} from "../../ui/page";
import {Document} from "./document";
import {Endpoints} from "./endpoints";
import {Identities} from "./identities";
import {Keys} from "./keys";
import {Notifications} from "./notifications";
import {Tokens} from "./tokens";

const t = en.access;
const PARTS = ["tokens", "keys", "identities", "document", "endpoints", "notifications"] as const;

export default function Access({rest, query}: PageProps) {
	const at = PARTS.find(p => p === rest[0]) ?? "tokens";
	return (
		<Page title={t.title} intro={t.intros[at]}>
			<Tabs tabs={PARTS.map(p => [link("access", p), t.tabs[p]] as const)} at={link("access", at)} />
			{at === "tokens" ? (
				<Tokens query={query} />
			) : at === "keys" ? (
				<Keys />
			) : at === "identities" ? (
				<Identities query={query} />
			) : at === "document" ? (
				<Document />
			) : at === "endpoints" ? (
				<Endpoints />
			) : (
				<Notifications />
			)}
		</Page>
	);
}
