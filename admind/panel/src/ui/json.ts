/*
 * JSON text as it was written. A parser of the browser rounds numbers above 2^53
 * and moves members whose names are numbers, so a reviewer could read another
 * value than the one that is approved. Here tokens stay as they are; only the
 * blanks between them change.
 */
import {Exact} from "../api/exact";

/* Strings, single marks, and all else (numbers, true, false, null). */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs;
const STEP = 2;
/* Deeper values are not moved farther: ui/lines.ts counts longer blanks. */
const INDENT_MAX = 24;

/** Returns valid JSON with a member and an element a line. */
export function jsonPretty(text: string): string {
	const tokens = text.match(TOKENS) ?? [];
	let out = "",
		depth = 0;
	const line = () => `\n${" ".repeat(Math.min(depth * STEP, INDENT_MAX))}`;

	for (const [i, t] of tokens.entries())
		if (t === "{" || t === "[") {
			depth++;
			out += t + (tokens[i + 1] === "}" || tokens[i + 1] === "]" ? "" : line());
		} else if (t === "}" || t === "]") {
			depth--;
			out += (tokens[i - 1] === "{" || tokens[i - 1] === "[" ? "" : line()) + t;
		} else out += t === "," ? `,${line()}` : t === ":" ? ": " : t;
	return `${out}\n`;
}

/** Returns JSON formatted; any other text as it is. */
export function jsonShown(text: string): string {
	try {
		JSON.parse(text);
		return jsonPretty(text);
	} catch {
		return text;
	}
}

/** Splits the text of a JSON object into its members, each with the text of its value. Throws where a name is there
 * twice: readers would differ about which counts. */
export function jsonMembers(text: string): Map<string, string> {
	const members = new Map<string, string>();
	let depth = 0,
		name: string | undefined,
		from = 0;

	for (const m of text.matchAll(TOKENS)) {
		const t = m[0];
		if (depth === 1 && name === undefined && t[0] === '"') name = JSON.parse(t) as string;
		else if (depth === 1 && t === ":") from = m.index + 1;
		else if (depth === 1 && (t === "," || t === "}") && name !== undefined) {
			if (members.has(name)) throw new Error(`"${name}" is there twice`);
			members.set(name, text.slice(from, m.index).trim());
			name = undefined;
		}
		depth += t === "{" || t === "[" ? 1 : t === "}" || t === "]" ? -1 : 0;
	}
	return members;
}

/** Splits the text of a JSON array into the texts of its elements. */
export function jsonElements(text: string): string[] {
	const elements: string[] = [];
	let depth = 0,
		from = 0;

	for (const m of text.matchAll(TOKENS)) {
		const t = m[0],
			ends = depth === 1 && (t === "," || t === "]");
		if (depth === 0) from = m.index + 1;
		if (ends) {
			const element = text.slice(from, m.index).trim();
			if (element !== "") elements.push(element);
			from = m.index + 1;
		}
		depth += t === "{" || t === "[" ? 1 : t === "}" || t === "]" ? -1 : 0;
	}
	return elements;
}

/** Returns the value of a JSON text: what the browser would write otherwise is an Exact. Throws on other text. */
export function jsonValue(text: string): unknown {
	const value: unknown = JSON.parse(text),
		bare = text.trim();
	return typeof value === "string" || JSON.stringify(value) === bare ? value : new Exact(bare);
}

/** Returns the members of the text of a JSON object, each as jsonValue() does. Throws on any other text, and where a name is
 * there twice. */
export function jsonObject(text: string): {[member: string]: unknown} {
	if (!isObject(JSON.parse(text))) throw new Error("it is no object");
	return Object.fromEntries([...jsonMembers(text)].map(([name, value]) => [name, jsonValue(value)]));
}

/** Returns true for an object of JSON that is no array. */
export function isObject(v: unknown): v is {[member: string]: unknown} {
	return typeof v === "object" && v !== null && !Array.isArray(v);
}
