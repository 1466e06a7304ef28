/*
 * JSON text as it was written. A parser of the browser rounds numbers above 2^53
 * and moves members whose names are numbers, so a reviewer could read another
 * value than the one that is approved. Here tokens stay as they are; only the
 * blanks between them change.
 */
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
