/* Ways in that are there: the issuers of the access document, and API tokens that come by the tunnel. */
import type {Schemas} from "../../api/client";
import {usePages, useRead} from "../../api/use";

type Access = Schemas["Access"];
type Token = Schemas["Token"];
type Identity = Schemas["Identity"];

export interface Way {
	name: string;
	/** The issuer's address; undefined: an API token. */
	issuer: string | undefined;
	/** Why it does not work now; "" if nothing is known to be wrong. */
	fault: string;
	keys: Access["keys"][number] | undefined;
	token: Token | undefined;
	people: Identity[];
	usedAt: string | null;
}

function texts(list: unknown, member: string): Map<string, string> {
	const found = new Map<string, string>();
	if (!Array.isArray(list)) return found;
	for (const o of list as Record<string, unknown>[]) if (typeof o["name"] === "string") found.set(o["name"], String(o[member] ?? ""));
	return found;
}

/** Returns the names of the permission sets of a document. */
export function setsOf(access: Access | undefined): string[] {
	return [...texts(access?.document?.["permission_sets"], "name").keys()];
}

/** Reads what ways there are, and who came by them. */
export function useWays() {
	const access = useRead("/api/access"),
		tokens = usePages("/api/tokens", {query: {limit: 200, state: "active"}}),
		people = usePages("/api/identities", {query: {limit: 200}});
	const a = access.data;
	const ways: Way[] = [...texts(a?.document?.["issuers"], "issuer")].map(([name, issuer]) => {
		const keys = a!.keys.find(k => k.issuer === name),
			came = people.items.filter(p => p.issuer === name);
		return {
			name,
			issuer,
			fault: a!.in_force ? (keys?.error ?? "") : (a!.why ?? ""),
			keys,
			token: undefined,
			people: came,
			usedAt: newest(came.map(p => p.last_used_at)),
		};
	});
	for (const token of tokens.items)
		if (token.listeners.includes("tunnel"))
			ways.push({
				name: token.name,
				issuer: undefined,
				fault: "",
				keys: undefined,
				token,
				people: [],
				usedAt: token.last_used_listener === "tunnel" ? token.last_used_at : null,
			});
	return {
		ways,
		sets: setsOf(a),
		resource: typeof a?.document?.["resource"] === "string" ? (a.document["resource"] as string) : "",
		loading: a === undefined || (tokens.loading && tokens.items.length === 0),
		problem: access.problem ?? tokens.problem ?? people.problem,
		reload: () => {
			access.reload();
			tokens.reload();
			people.reload();
		},
	};
}

function newest(times: (string | null)[]): string | null {
	return times.reduce((a, b) => ((b ?? "") > (a ?? "") ? b : a), null);
}
