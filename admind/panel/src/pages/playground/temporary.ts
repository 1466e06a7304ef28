/*
 * A temporary API token: made for this page, good on the local listener, and
 * revoked when the person disconnects or leaves.
 *
 * The token is in the memory of this page and nowhere else. Its name says where
 * it is from, since records name the token. A page that crashes can't revoke
 * it; then it ends by itself, after the shortest time that REST has.
 */
import {api, send} from "../../api/client";
import {en} from "../../en";
import {meName} from "../../me";

const DAYS = 1;
const NAME_MAX = 20;

export interface Temporary {
	id: string;
	name: string;
	token: string;
}

/** Rights of a token: a permission set's, or scopes with patterns. */
export type Rights = {set: string} | {scopes: string[]; allow: string[]; deny: string[]};

/* A token's name is given once. */
function freshName(): string {
	const own = meName().replace(/[^A-Za-z0-9_-]/g, "-").slice(0, NAME_MAX);
	const time = new Date().toISOString().slice(0, 19).replace(/[-:]/g, "");
	const random = [...crypto.getRandomValues(new Uint8Array(4))].map(b => b.toString(16).padStart(2, "0")).join("");
	return `playground-${own}-${time}-${random}`;
}

/** Makes one. The server asks for a fresh proof. Throws a Refusal. */
export async function temporaryMake(rights: Rights): Promise<Temporary> {
	const {data} = await api.post("/api/tokens", {
		body: {name: freshName(), listeners: ["local"], expires_in_days: DAYS, ...rights} as never,
	});
	return {id: data.id, name: data.name, token: data.token};
}

/** Revokes it. `leaving`: the request goes on after the page has left. Throws a Refusal. */
export async function temporaryRevoke(t: Temporary, leaving = false): Promise<void> {
	await send("POST", `/api/tokens/${encodeURIComponent(t.id)}/revoke`, {body: {reason: en.playground.revokeReason}, keepalive: leaving});
}
