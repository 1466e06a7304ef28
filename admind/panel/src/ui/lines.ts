/*
 * Lines of code that others wrote, for eyes: the rules of decision 0065 and of
 * common/text/show.h, so that a reviewer reads the same here and at a shell.
 *
 * Attackers: the author of the code wants a reviewer to read another text than
 * the one that runs. So all but printable ASCII is an escape \u{hex}, and so are
 * the last blanks of a line and blanks beyond 24. More than three equal escapes
 * are counted, a backslash that would look like an escape is \u{5c}. The cells
 * of a line cover its characters from left to right without a gap, so the shown
 * line can be turned back into exactly one text.
 */

/** Part of a line: the characters from `from` to `to`, and what is shown of them. */
export interface Cell {
	from: number;
	to: number;
	text: string;
	escape: boolean;
}

/* As SHOW_RUN_MAX, SHOW_BLANKS_MAX and SHOW_EQUAL_MAX of show.h. */
const RUN_MAX = 3;
const BLANKS_MAX = 24;
const EQUAL_MAX = 3;
/* The order bounds the work: only runs of up to 24 blanks are looked at for the line's end. */
const ODD = new RegExp(` {${BLANKS_MAX + 1},}| +$|\\\\(?=[ux]\\{)|([^\\x20-\\x7e])\\1*`, "gu");

/** Splits a text after its newlines. Only a last line may lack its newline. */
export function linesOf(text: string): string[] {
	return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** Returns a line without its newline. */
export function lineBare(line: string): string {
	return line.endsWith("\n") ? line.slice(0, -1) : line;
}

/** Splits a line, without its newline, into cells. */
export function lineCells(line: string): Cell[] {
	const cells: Cell[] = [];
	let at = 0;

	for (const m of line.matchAll(ODD)) {
		if (m.index > at) cells.push({from: at, to: m.index, text: line.slice(at, m.index), escape: false});
		const hex = m[0].codePointAt(0)!.toString(16),
			blanks = m[0][0] === " ",
			size = m[1]?.length ?? 1,
			times = m[0].length / size;
		at = m.index + m[0].length;
		if (times > RUN_MAX || blanks)
			cells.push({from: m.index, to: at, text: times > 1 ? `\\u{${hex}*${times}}` : `\\u{${hex}}`, escape: true});
		else
			for (let i = 0; i < times; i++)
				cells.push({from: m.index + i * size, to: m.index + (i + 1) * size, text: `\\u{${hex}}`, escape: true});
	}
	if (at < line.length) cells.push({from: at, to: line.length, text: line.slice(at), escape: false});
	return cells;
}

/** A row of a view: a line by its number from 0, and how many equal lines it stands for. */
export interface Row {
	line: number;
	times: number;
}

/** Lists the rows of lines. More than three equal lines in a row are one: thousands of them would push later lines out
 * of sight. */
export function lineRows(lines: readonly string[]): Row[] {
	const rows: Row[] = [];

	for (let i = 0; i < lines.length;) {
		let n = 1;
		while (i + n < lines.length && lines[i + n] === lines[i]) n++;
		if (n > EQUAL_MAX) rows.push({line: i, times: n});
		else for (let k = 0; k < n; k++) rows.push({line: i + k, times: 1});
		i += n;
	}
	return rows;
}

/** A colour of a part of a line. */
export interface Mark {
	from: number;
	to: number;
	look: string;
}

/** Divides marks of a whole text among its lines. */
export function marksByLine(lines: readonly string[], marks: Iterable<Mark>): Mark[][] {
	const all: Mark[][] = lines.map(() => []);
	let line = 0,
		start = 0;

	for (const m of marks) {
		while (line < lines.length && m.from >= start + lines[line]!.length) start += lines[line++]!.length;
		for (let k = line, s = start; k < lines.length && m.to > s; s += lines[k++]!.length)
			all[k]!.push({from: Math.max(m.from - s, 0), to: Math.min(m.to - s, lines[k]!.length), look: m.look});
	}
	return all;
}

/** A part of a line with one look. `changed`: a difference marks it. */
export interface Part {
	text: string;
	look: string;
	changed: boolean;
}

/** Splits a line into parts by its cells, its colours and the ranges [from, to) that changed. An escape is never split
 * and always looks like one. */
export function lineParts(line: string, marks: readonly Mark[] = [], changed: readonly (readonly [number, number])[] = []): Part[] {
	const edges = [...new Set([...marks.flatMap(m => [m.from, m.to]), ...changed.flat()])].sort((a, b) => a - b);
	const parts: Part[] = [];
	let e = 0,
		m = 0,
		c = 0;

	for (const cell of lineCells(line)) {
		for (let at = cell.from; at < cell.to;) {
			while (e < edges.length && edges[e]! <= at) e++;
			const to = cell.escape ? cell.to : Math.min(cell.to, edges[e] ?? cell.to);
			while (m < marks.length && marks[m]!.to <= at) m++;
			while (c < changed.length && changed[c]![1] <= at) c++;
			const mark = marks[m];
			parts.push({
				text: cell.escape ? cell.text : line.slice(at, to),
				changed: c < changed.length && changed[c]![0] < to,
				look: cell.escape ? "escape" : mark !== undefined && mark.from <= at ? mark.look : "",
			});
			at = to;
		}
	}
	return parts;
}
