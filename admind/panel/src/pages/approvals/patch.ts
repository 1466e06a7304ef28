/*
 * The two texts of a difference.
 *
 * The page needs the whole text before the change, to fold and unfold, and to
 * mark parts of a line. REST could give it as a version of the tool, but that
 * would be admind's word: an "approved version" that holds the change already
 * would hide it. The difference of GET …/diff is better: its process made it of
 * the very bytes of the request and of a base whose seal the vault has verified.
 * So the text before is made of the request's own text, which the ETag names, by
 * undoing the difference. Each line that the difference says is in the new text
 * is compared with that text. Where one does not fit, nothing is made up: the
 * page shows the difference as the server wrote it.
 */
import {linesOf} from "../../ui/lines";

const HUNK = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@\n?$/;

/** Undoes a difference: returns the text before. Undefined: the difference is not one of this text. */
export function patchUndo(after: string, unified: string): string | undefined {
	const lines = linesOf(after),
		rows = linesOf(unified),
		before: string[] = [];
	let at = 0;

	for (const [i, row] of rows.entries()) {
		const hunk = HUNK.exec(row);
		if (hunk !== null) {
			const to = Number(hunk[1]) - (hunk[2] === "0" ? 0 : 1);
			if (to < at || to > lines.length) return undefined;
			for (const line of lines.slice(at, to)) before.push(line);
			at = to;
			continue;
		}
		if (row[0] === "\\") continue;
		const text = rows[i + 1]?.[0] === "\\" ? row.slice(1, -1) : row.slice(1);
		if (row[0] === "-") before.push(text);
		else if ((row[0] === " " || row[0] === "+") && lines[at] === text) {
			at++;
			if (row[0] === " ") before.push(text);
		} else return undefined;
	}
	return before.concat(lines.slice(at)).join("");
}

/** Returns the new text of a difference that begins at the first line: "" where nothing was left. */
export function patchAfter(unified: string): string {
	const rows = linesOf(unified);
	return rows.map((r, i) => (r[0] !== "+" && r[0] !== " " ? "" : rows[i + 1]?.[0] === "\\" ? r.slice(1, -1) : r.slice(1))).join("");
}

/** Returns text with all but ASCII as JSON escapes: the form that REST gives JSON. */
export function patchAscii(text: string): string {
	return text.replace(/[^\x00-\x7f]/g, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
