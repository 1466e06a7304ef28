/*
 * Sign-in by an issuer (docs/decisions/0105). The browser leaves this page for
 * the issuer's and comes back to /#state=…&code=…&iss=…. The half of the ticket
 * waits in sessionStorage, so an answer that another site sends here, which has
 * no ticket in this tab, begins nothing.
 */
import {api, type Schemas, send} from "./client";
import {sessionBegin} from "./session";

const TICKET = "mcpbox-ticket";
const WANTED = "mcpbox-wanted";
const MEMBERS = ["state", "code", "iss", "error"];

/** Goes to the issuer. */
export async function signinBegin(issuer: string): Promise<void> {
	const {data} = await api.post("/api/signin/begin", {body: {issuer}});

	sessionStorage.setItem(TICKET, data.csrf_token);
	sessionStorage.setItem(WANTED, location.hash);
	location.assign(data.url);
}

/** Returns true if the address has an issuer's answer to what this tab began. */
export function signinReturned(): boolean {
	return sessionStorage.getItem(TICKET) !== null && new URLSearchParams(location.hash.slice(1)).has("state");
}

/** Fetches the login. Takes the answer out of the address first: a code serves once, and belongs in no history. */
export async function signinFinish(): Promise<void> {
	const words = new URLSearchParams(location.hash.slice(1)),
		ticket = sessionStorage.getItem(TICKET)!;
	const body = Object.fromEntries(MEMBERS.flatMap(m => (words.get(m) ? [[m, words.get(m)]] : [])));

	history.replaceState(null, "", sessionStorage.getItem(WANTED) || "#/");
	sessionStorage.removeItem(TICKET);
	sessionStorage.removeItem(WANTED);
	const answer = await send("POST", "/api/signin/finish", {body, half: ticket});
	sessionBegin(((await answer.json()) as Schemas["SignedIn"]).csrf_token);
}
