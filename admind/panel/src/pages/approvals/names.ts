/* Names of requests for people. Whoever draws them escapes them. */
import type {Schemas} from "../../api/client";

/** Returns what a request is about, by its own content: admind's words beside it could name another thing. */
export function requestName(r: Schemas["Approval"]): string {
	const c = r.content as Record<string, unknown>,
		word = (n: string) => (typeof c[n] === "string" ? (c[n] as string) : "");

	if (r.kind === "network") return word("host") + (typeof c.port === "number" ? `:${c.port}` : "");
	if (r.kind === "module") return word("module") + (c.recorded ? `==${word("version")}` : "");
	return r.kind === "call" ? word("tool") : word("exposed_name") || word("uri") || word("name");
}

/** Returns what an item of the list is about. */
export function itemName(i: Schemas["ApprovalSummary"]): string {
	if (i.kind === "network") return `${i.host ?? ""}${i.port ? `:${i.port}` : ""}`;
	if (i.kind === "module") return `${i.module ?? ""}${i.module_version ? `==${i.module_version}` : ""}`;
	return i.exposed_name ?? i.tool ?? i.server;
}
