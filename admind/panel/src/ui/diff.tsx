/*
 * The difference of two texts that others wrote.
 *
 * Attackers: the author of the text after the change, who wants a change to be
 * overlooked. Each line is shown by the rules of ui/lines.ts. The search for the
 * shortest difference is not trusted: diffHolds() compares its steps with both
 * texts, and where they do not hold, everything is shown as replaced. What is
 * folded is equal in both texts, and the row says how many lines there are.
 * Changes of blanks are hidden only on demand, never those of indentation, which
 * Python reads, and a row says how many lines that hides.
 */
import {Fragment} from "preact";
import {useEffect, useMemo, useState} from "preact/hooks";
import {en} from "../en";
import {type Lang, LineText, useMarks} from "./code";
import {lineBare, lineRows, linesOf, type Mark} from "./lines";
import {diffHolds, listDiff, type Step, Work} from "./linediff";
import {count} from "./text";
import {type Ranges, WordDiff} from "./worddiff";

/* As LINEDIFF_EDITS_MAX of common/text/linediff.h. */
const EDITS_MAX = 1024;
/* Work of the search for lines that changed. 1024 edits alone take half of a million; the rest are equal lines on the way. */
const LINE_STEPS_MAX = 8_000_000;
/* Pairs of lines in one change that are compared. */
const PAIRS_MAX = 900;
const CONTEXT = 3;
/* Rows that are drawn at once. */
const ROWS = 1000;
const NONE: ReadonlySet<number> = new Set();
const KEY = "mcpbox-diff-split";
const WIDE = matchMedia("(min-width: 1000px)");
/* All differences of a page have one layout. */
const layouts = new Set<() => void>();

/** Lines that are the same, or lines that were removed and those that were added in their place. */
type Group = {same: {a: number; b: number}[]} | {dels: number[]; adds: number[]};

/* Returns a line without what an ignored change of blanks changes. The indentation stays. */
function withoutBlanks(line: string): string {
	const indent = /^[ \t]*/.exec(line)![0];
	const rest = line
		.slice(indent.length)
		.replace(/[ \t]+/g, " ")
		.trimEnd();
	return rest === "" ? "\n" : `${indent}${rest}\n`;
}

function groupsOf(steps: readonly Step[]): Group[] {
	const groups: Group[] = [];

	for (const s of steps) {
		let g = groups.at(-1);
		if (s.kind === "same") {
			if (g === undefined || !("same" in g)) groups.push((g = {same: []}));
			g.same.push(s);
		} else {
			if (g === undefined || "same" in g) groups.push((g = {dels: [], adds: []}));
			if (s.kind === "del") g.dels.push(s.a);
			else g.adds.push(s.b);
		}
	}
	return groups;
}

/* One side of a row. */
interface Side {
	line: number;
	kind: "same" | "del" | "add";
	changed?: Ranges;
	/* So many equal lines follow, which have no row. */
	more?: number;
}
type DrawnRow = {fold: number; at: number} | {left?: Side; right?: Side};

/* Makes rows of lines; equal ones are counted, as ui/lines.ts says. */
function sides(at: readonly number[], lines: readonly string[], kind: Side["kind"]): Side[] {
	return lineRows(at.map(i => lines[i]!)).map(r => ({line: at[r.line]!, kind, more: r.times - 1}));
}

/* Makes the rows of a change. Each removed line is compared with the first added line that is like it, in order, so that
 * what changed within a line is marked. Long changes are compared line by line. */
function changeRows(
	g: {dels: number[]; adds: number[]},
	a: readonly string[],
	b: readonly string[],
	words: WordDiff,
	split: boolean,
): DrawnRow[] {
	const left = sides(g.dels, a, "del"),
		right = sides(g.adds, b, "add"),
		pairs: [number, number][] = [];
	const search = left.length * right.length <= PAIRS_MAX;

	for (let i = 0, k = 0; i < left.length && k < right.length; i++)
		for (let j = search ? k : i; j < (search ? right.length : Math.min(i + 1, right.length)); j++) {
			const [la, lb] = words.pair(left[i]!.line, right[j]!.line);
			if (la.length + lb.length === 0) continue;
			[left[i]!.changed, right[j]!.changed] = [la, lb];
			pairs.push([i, j]);
			k = j + 1;
			break;
		}
	if (!split) return [...left.map(l => ({left: l})), ...right.map(r => ({right: r}))];
	const rows: DrawnRow[] = [];
	let i = 0,
		j = 0;
	for (const [toI, toJ] of [...pairs, [left.length, right.length] as const]) {
		for (; i < toI || j < toJ; i++, j++) rows.push({left: i < toI ? left[i] : undefined, right: j < toJ ? right[j] : undefined});
		[i, j] = [toI, toJ];
		if (i < left.length && j < right.length) rows.push({left: left[i++], right: right[j++]});
	}
	return rows;
}

/* Lists the rows of all groups: parts that did not change are folded but for three lines around a change. */
function rowsOf(
	groups: readonly Group[],
	a: readonly string[],
	b: readonly string[],
	words: WordDiff,
	split: boolean,
	open: ReadonlySet<number>,
): DrawnRow[] {
	const rows: DrawnRow[] = [];

	groups.forEach((g, i) => {
		if (!("same" in g)) {
			rows.push(...changeRows(g, a, b, words, split));
			return;
		}
		const head = i === 0 ? 0 : CONTEXT,
			tail = i === groups.length - 1 ? 0 : CONTEXT,
			folded = g.same.length - head - tail;
		const fold = folded > 1 && !open.has(i);
		for (const [k, s] of g.same.entries())
			if (fold && k === head) rows.push({fold: folded, at: i});
			else if (!fold || k < head || k >= head + folded)
				rows.push({left: {line: s.a, kind: "same"}, right: {line: s.b, kind: "same"}});
	});
	return rows;
}

function Content({side, lines, marks, last}: {side: Side; lines: readonly string[]; marks: Mark[][]; last: boolean}) {
	const line = lines[side.line]!;
	return (
		<code>
			<LineText
				text={lineBare(line)}
				marks={marks[side.line]}
				changed={side.changed}
				as={side.kind === "del" ? "del" : side.kind === "add" ? "ins" : undefined}
			/>
			{last && !line.endsWith("\n") ? <span class="ours"> {en.code.noNewline}</span> : null}
			{side.more ? <span class="ours"> {en.diff.more(count(side.more))}</span> : null}
		</code>
	);
}

const SIGNS = {same: " ", del: "−", add: "+"};

function useWide(): boolean {
	const [wide, set] = useState(WIDE.matches);

	useEffect(() => {
		const f = () => set(WIDE.matches);
		WIDE.addEventListener("change", f);
		return () => WIDE.removeEventListener("change", f);
	}, []);
	return wide;
}

/** Draws the difference of two texts. It is a region that can be scrolled by keys, so it needs a name. */
export function DiffView({before, after, label, lang = "text"}: {before: string; after: string; label: string; lang?: Lang}) {
	const [ignore, setIgnore] = useState(false);
	/* What was opened, of which groups: of others it means nothing. */
	const [opened, setOpened] = useState<{of: readonly Group[]; open: ReadonlySet<number>; shown: number}>();
	const [wanted, setWanted] = useState(sessionStorage.getItem(KEY) === "1");
	const wide = useWide(),
		split = wide && wanted;
	const a = useMemo(() => linesOf(before), [before]),
		b = useMemo(() => linesOf(after), [after]);
	const marksA = useMarks(before, a, lang),
		marksB = useMarks(after, b, lang);
	const {groups, hidden, added, removed} = useMemo(() => {
		const ka = ignore ? a.map(withoutBlanks) : a,
			kb = ignore ? b.map(withoutBlanks) : b;
		let steps = listDiff(ka, kb, EDITS_MAX, new Work(LINE_STEPS_MAX));
		if (!diffHolds(steps, ka, kb))
			steps = [...a.map((_, i) => ({kind: "del" as const, a: i})), ...b.map((_, i) => ({kind: "add" as const, b: i}))];
		return {
			groups: groupsOf(steps),
			hidden: steps.filter(s => s.kind === "same" && a[s.a] !== b[s.b]).length,
			added: steps.filter(s => s.kind === "add").length,
			removed: steps.filter(s => s.kind === "del").length,
		};
	}, [a, b, ignore]);
	const {open, shown} = opened?.of === groups ? opened : {open: NONE, shown: ROWS};
	const words = useMemo(() => new WordDiff(a, b, lineBare), [groups]);
	const rows = useMemo(() => rowsOf(groups, a, b, words, split, open), [words, split, open]);

	useEffect(() => {
		const f = () => setWanted(sessionStorage.getItem(KEY) === "1");
		layouts.add(f);
		return () => void layouts.delete(f);
	}, []);
	const choose = (on: boolean) => {
		sessionStorage.setItem(KEY, on ? "1" : "0");
		for (const f of layouts) f();
	};
	return (
		<div class="code-box">
			<div class="code-info">
				<span class="diff-added">{en.diff.added(count(added))}</span>
				<span class="diff-removed">{en.diff.removed(count(removed))}</span>
				<label class="diff-blanks">
					<input type="checkbox" checked={ignore} onChange={e => setIgnore(e.currentTarget.checked)} />
					{en.diff.ignore}
				</label>
				{wide ? (
					<span class="choices" role="group" aria-label={en.diff.layout}>
						<button type="button" class="small" aria-pressed={!wanted} onClick={() => choose(false)}>
							{en.diff.unified}
						</button>
						<button type="button" class="small" aria-pressed={wanted} onClick={() => choose(true)}>
							{en.diff.split}
						</button>
					</span>
				) : null}
			</div>
			{hidden > 0 ? (
				<p class="quiet" role="status">
					{en.diff.hidden(count(hidden))}
				</p>
			) : null}
			{words.spent ? <p class="quiet">{en.diff.wholeLines}</p> : null}
			{added + removed === 0 ? <p class="quiet">{hidden > 0 ? en.diff.onlyBlanks : en.diff.same}</p> : null}
			<div class="code-view diff" role="region" aria-label={label} tabIndex={0}>
				<table class={split ? "split" : "unified"}>
					{split ? (
						<colgroup>
							<col class="num" />
							<col />
							<col class="num" />
							<col />
						</colgroup>
					) : null}
					<thead class="hidden">
						<tr>
							{(split ? en.diff.splitHead : en.diff.unifiedHead).map(h => (
								<th key={h} scope="col">
									{h}
								</th>
							))}
						</tr>
					</thead>
					<tbody>
						{rows.slice(0, shown).map((r, i) =>
							"fold" in r ? (
								<tr key={`f${r.at}`} class="folded">
									<td colSpan={4}>
										<button
											type="button"
											class="small plain"
											onClick={() => setOpened({of: groups, open: new Set([...open, r.at]), shown})}
										>
											{en.diff.unfold(count(r.fold))}
										</button>
									</td>
								</tr>
							) : split ? (
								<tr key={i}>
									<Half side={r.left} lines={a} marks={marksA} />
									<Half side={r.right} lines={b} marks={marksB} />
								</tr>
							) : (
								<Unified key={i} row={r} a={a} b={b} marksA={marksA} marksB={marksB} />
							),
						)}
					</tbody>
				</table>
				{rows.length > shown ? (
					<p class="code-more">
						<button type="button" class="small" onClick={() => setOpened({of: groups, open, shown: shown + ROWS})}>
							{en.diff.rest(count(Math.min(ROWS, rows.length - shown)), count(rows.length - shown))}
						</button>
					</p>
				) : null}
			</div>
		</div>
	);
}

function Half({side, lines, marks}: {side: Side | undefined; lines: readonly string[]; marks: Mark[][]}) {
	if (side === undefined)
		return (
			<Fragment>
				<td class="num" />
				<td class="none" />
			</Fragment>
		);
	return (
		<Fragment>
			<td class={`num ${side.kind}`}>{side.line + 1}</td>
			<td class={`text ${side.kind}`}>
				<span class="sign">{SIGNS[side.kind]}</span>
				<Content side={side} lines={lines} marks={marks} last={side.line === lines.length - 1} />
			</td>
		</Fragment>
	);
}

function Unified({
	row,
	a,
	b,
	marksA,
	marksB,
}: {
	row: {left?: Side; right?: Side};
	a: readonly string[];
	b: readonly string[];
	marksA: Mark[][];
	marksB: Mark[][];
}) {
	const side = row.right ?? row.left!,
		after = row.right !== undefined,
		lines = after ? b : a;
	return (
		<tr>
			<td class={`num ${side.kind}`}>{row.left ? row.left.line + 1 : null}</td>
			<td class={`num ${side.kind}`}>{row.right ? row.right.line + 1 : null}</td>
			<td class={`sign ${side.kind}`}>{SIGNS[side.kind]}</td>
			<td class={`text ${side.kind}`}>
				<Content side={side} lines={lines} marks={after ? marksB : marksA} last={side.line === lines.length - 1} />
			</td>
		</tr>
	);
}
