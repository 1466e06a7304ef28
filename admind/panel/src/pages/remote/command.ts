/* The command `mcpboxctl remote add` of what was answered, and what its answers must be. It runs as root on the machine: the panel
   can neither write a proxy's file there nor should it. */
import {en} from "../../en";

export const KINDS = ["oidc", "access", "worker", "tailscale", "token"] as const;
export type Kind = (typeof KINDS)[number];
export const PROXIES = ["nginx", "caddy", "cloudflared"] as const;

export interface Wish {
	kind: Kind;
	name: string;
	/** The address that clients know: https://HOST/mcp. */
	resource: string;
	/** Where people sign in. Empty for an API token. */
	issuer: string;
	team: string;
	aud: string;
	/** E-mail addresses, with commas or blanks between. */
	email: string;
	/** A permission set of the access document; empty: a new one, with `allow`. A token has no set: `allow` is its own. */
	set: string;
	allow: string;
	proxy: string;
}

/* As remote_name_ok(), remote_host() and is_team() of admind/ctl/remote judge. */
const NAME = /^[a-z][a-z0-9-]{0,31}$/,
	RESOURCE = /^https:\/\/[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?\/mcp$/,
	TEAM = /^[a-z0-9-]{1,63}$/,
	ISSUER = /^https:\/\/[!-~]{1,1000}$/,
	EMAIL = /^[!-?A-~]{1,64}@[A-Za-z0-9.-]{1,253}$/,
	VISIBLE = /^[!-~]{1,255}$/;

/** Returns the values of a list that was typed. */
export function listed(text: string): string[] {
	return text.split(/[\s,]+/).filter(w => w !== "");
}

/** Tells whether people of this way sign in at an issuer; else they bring an API token. */
export function signsIn(w: Wish): boolean {
	return w.kind === "tailscale" ? w.issuer !== "" : w.kind !== "token";
}

/** Tells whether people get the rights of a set that is there. */
export function usesSet(w: Wish): boolean {
	return signsIn(w) && w.set !== "";
}

/** Returns, by field, why an answer can't be. */
export function faults(w: Wish): Partial<Record<keyof Wish, string>> {
	const t = en.remote.faults,
		found: Partial<Record<keyof Wish, string>> = {};

	if (!NAME.test(w.name)) found.name = t.name;
	if (!RESOURCE.test(w.resource)) found.resource = t.resource;
	if (w.kind === "access") {
		if (!TEAM.test(w.team)) found.team = t.team;
		if (!VISIBLE.test(w.aud)) found.aud = t.aud;
	} else if (signsIn(w) && !ISSUER.test(w.issuer)) found.issuer = t.issuer;
	if (signsIn(w) && (listed(w.email).length === 0 || !listed(w.email).every(e => EMAIL.test(e)))) found.email = t.email;
	if (!usesSet(w) && (listed(w.allow).length === 0 || !listed(w.allow).every(p => VISIBLE.test(p)))) found.allow = t.allow;
	return found;
}

/* Returns a word as a shell takes it. */
function quoted(word: string): string {
	return /^[A-Za-z0-9_.:/@,=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Returns the command, an option a line. The answers have no faults. */
export function command(w: Wish): string {
	const options: [string, string?][] = [["resource", w.resource]];

	if (w.kind === "access") options.push(["team", w.team], ["aud", w.aud]);
	else if (signsIn(w)) options.push(["issuer", w.issuer]);
	if (w.kind === "oidc" || (w.kind === "tailscale" && signsIn(w))) options.push(["discovery"]);
	if (signsIn(w)) options.push(["email", listed(w.email).join(",")]);
	if (usesSet(w)) options.push(["set", w.set]);
	else if (listed(w.allow).join() !== "*") options.push(["allow", listed(w.allow).join(",")]);
	if (w.kind === "oidc" || w.kind === "token") options.push(["proxy", w.proxy]);
	options.push(["out", "."]);
	return [
		`sudo mcpboxctl remote add ${w.kind} ${w.name}`,
		...options.map(([o, v]) => `--${o}${v === undefined ? "" : " " + quoted(v)}`),
	].join(" \\\n    ");
}

/** Returns the command that walks the way in from outside and names what is wrong. */
export function checkOf(name: string): string {
	return `sudo mcpboxctl remote check ${quoted(name)}`;
}
