/*
 * Messages of JSON-RPC and of MCP, and the headers that mirror them. No I/O.
 *
 * Attackers: whoever answers at the gateway's address, and tools, which choose
 * the names and results in its messages. Members are read as own properties, so
 * that names like `constructor` find nothing else.
 */

export type Json = unknown;
export type JsonObject = {[member: string]: unknown};

/** The revisions that gatewayd serves, newest first. */
export const REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"] as const;
export type Revision = (typeof REVISIONS)[number];

const META = "io.modelcontextprotocol/";

export function isObject(v: unknown): v is JsonObject {
	return typeof v === "object" && v !== null && !Array.isArray(v);
}

/** Returns an own member of a value, or undefined. */
export function member(v: unknown, ...names: string[]): unknown {
	for (const name of names) {
		if (!isObject(v) || !Object.hasOwn(v, name)) return undefined;
		v = v[name];
	}
	return v;
}

/** Returns an own member that is a text, or "". */
export function textOf(v: unknown, ...names: string[]): string {
	const found = member(v, ...names);
	return typeof found === "string" ? found : "";
}

/** Returns an own member that is a list of objects, or []. */
export function listOf(v: unknown, ...names: string[]): JsonObject[] {
	const found = member(v, ...names);
	return Array.isArray(found) ? found.filter(isObject) : [];
}

/** Returns true for revisions without sessions: each request says all of its sender. */
export function isModern(revision: Revision): boolean {
	return revision >= "2026-07-28";
}

/** Returns what this client can be asked, as the revision writes it. It has no model and no directories. */
export function capabilities(revision: Revision): JsonObject {
	if (revision === "2025-03-26") return {};
	return {elicitation: revision === "2025-06-18" ? {} : {form: {}, url: {}}};
}

/** Returns _meta of a request: in modern revisions it names revision, capabilities and client, and asks for all logs. */
export function metaOf(revision: Revision, client: JsonObject, progressToken: string | number): JsonObject {
	return isModern(revision)
		? {
				[`${META}protocolVersion`]: revision,
				[`${META}clientCapabilities`]: capabilities(revision),
				[`${META}clientInfo`]: client,
				[`${META}logLevel`]: "debug",
				progressToken,
			}
		: {progressToken};
}

/** Returns the server's name and version from a result. */
export function serverOf(result: unknown): {name: string; version: string} {
	const info = member(result, "serverInfo") ?? member(result, "_meta", `${META}serverInfo`);
	return {name: textOf(info, "name"), version: textOf(info, "version")};
}

/** Returns a header's value: plain text, or =?base64?...?= where a header can't carry it (MCP 2026-07-28). */
export function headerText(text: string): string {
	if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?base64?")) return text;
	return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
}

/* The parameter that Mcp-Name repeats. */
const NAMED: Record<string, string> = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"};
/* As MCP_PARAM_MAX and MCP_PARAM_DEPTH_MAX of mcp_param.h. */
const PARAMS_MAX = 32;
const DEPTH_MAX = 8;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/;

/* Adds Mcp-Param-NAME of each argument that the schema marks with x-mcp-header. */
function params(schema: unknown, values: unknown, found: Record<string, string>, depth: number): void {
	const properties = member(schema, "properties");
	if (depth > DEPTH_MAX || !isObject(properties)) return;
	for (const [name, s] of Object.entries(properties)) {
		const value = member(values, name),
			mark = member(s, "x-mcp-header");
		if (value === undefined || value === null) continue;
		if (typeof mark === "string" && TOKEN.test(mark) && typeof value !== "object" && Object.keys(found).length < PARAMS_MAX)
			found[`Mcp-Param-${mark}`] = headerText(String(value));
		params(s, value, found, depth + 1);
	}
}

/** Returns the headers that mirror a modern request. `schema` is the tool's input schema, of tools/call. */
export function mirror(method: string, message: JsonObject, schema?: unknown): Record<string, string> {
	const headers: Record<string, string> = {"Mcp-Method": method};
	const name = Object.hasOwn(NAMED, method) ? member(message, "params", NAMED[method]!) : undefined;

	if (typeof name === "string") headers["Mcp-Name"] = headerText(name);
	if (method === "tools/call") params(schema, member(message, "params", "arguments"), headers, 0);
	return headers;
}

/** Returns the value of a parameter of a challenge, such as the scope in WWW-Authenticate; "" where it has none. */
export function challengePart(challenge: string | null, name: string): string {
	return new RegExp(`(?:^|[ ,])${name}="([^"]*)"`).exec(challenge ?? "")?.[1] ?? "";
}
