/*
 * Finds the differences within pairs of lines. A change of many long lines has as many
 * pairs as the product of their numbers, so three things bound the work: words
 * of a line are found once, a pair is searched only if its lines can have enough
 * in common, and all pairs of a difference share one count of steps. The second
 * changes no result. After the third the lines left count as replaced whole.
 */
import {listDiff, Work} from "./linediff";

/** Ranges [from, to) of a line's characters. */
export type Ranges = [number, number][];

/* Words of a line; a line with more is replaced whole. */
export const WORDS_MAX = 400;
const EDITS_MAX = 120;
/* A pair takes at most some 15,000 steps, so this is some hundred of the worst pairs, or 100,000 pairs that have little in
 * common. */
export const WORD_STEPS_MAX = 2_000_000;
/* Lines are alike if a third of the longer one's characters is in both. */
const ALIKE = 3;
const WORD = /\w+|\s+|[^\w\s]/gu;

/* A line's words, how often each is there, and its length without blanks at its ends. */
interface Line {
	text: string;
	words: string[];
	bag: Map<string, number>;
	size: number;
}

/* Reads a line. Undefined: it has too many words. */
function read(text: string): Line | undefined {
	const words: string[] = [],
		bag = new Map<string, number>();

	for (const [word] of text.matchAll(WORD)) {
		if (words.length === WORDS_MAX) return undefined;
		words.push(word);
		bag.set(word, (bag.get(word) ?? 0) + 1);
	}
	return {text, words, bag, size: text.trim().length};
}

/* Returns how many characters both lines have in common at most, in whatever order. */
function commonAtMost(a: Line, b: Line): number {
	const [few, many] = a.bag.size <= b.bag.size ? [a.bag, b.bag] : [b.bag, a.bag];
	let n = 0;

	for (const [word, times] of few) n += word.trim().length * Math.min(times, many.get(word) ?? 0);
	return n;
}

/** Compares lines of two texts by their places. It keeps what it found, so a second question costs nothing. */
export class WordDiff {
	private readonly lines = [new Map<number, Line | undefined>(), new Map<number, Line | undefined>()] as const;
	private readonly found = new Map<number, [Ranges, Ranges]>();

	/** `a` and `b` are the lines; `bare` returns one without what is not compared. */
	constructor(
		private readonly a: readonly string[],
		private readonly b: readonly string[],
		private readonly bare: (line: string) => string,
		private readonly work = new Work(WORD_STEPS_MAX),
	) {}

	/** Returns true once the steps were not enough for a pair. */
	get spent(): boolean {
		return this.work.left < 0;
	}

	private line(side: 0 | 1, at: number): Line | undefined {
		const kept = this.lines[side];

		if (!kept.has(at)) {
			const line = read(this.bare((side === 0 ? this.a : this.b)[at]!));
			this.work.take(line?.words.length ?? WORDS_MAX);
			kept.set(at, line);
		}
		return kept.get(at);
	}

	/** Returns what differs between line i of the first text and line k of the second: ranges of each. None where the lines
	 * have little in common, or where no steps are left. */
	pair(i: number, k: number): [Ranges, Ranges] {
		const key = i * this.b.length + k,
			known = this.found.get(key);
		if (known !== undefined || this.spent) return known ?? [[], []];
		const got = this.search(i, k);
		this.found.set(key, got);
		return got;
	}

	private search(i: number, k: number): [Ranges, Ranges] {
		const a = this.line(0, i),
			b = this.line(1, k);

		if (a === undefined || b === undefined || !this.work.take(Math.min(a.bag.size, b.bag.size) + 1)) return [[], []];
		const enough = Math.max(a.size, b.size);
		if (commonAtMost(a, b) * ALIKE < enough) return [[], []];
		const {out, common} = ranges(a, b, this.work);
		return !this.spent && common * ALIKE >= enough ? out : [[], []];
	}
}

function ranges(a: Line, b: Line, work: Work): {out: [Ranges, Ranges]; common: number} {
	const out: [Ranges, Ranges] = [[], []];
	let x = 0,
		y = 0,
		common = 0;

	for (const s of listDiff(a.words, b.words, EDITS_MAX, work)) {
		if (s.kind === "same") {
			common += a.words[s.a]!.trim().length;
			x += a.words[s.a]!.length;
			y += a.words[s.a]!.length;
			continue;
		}
		const list = s.kind === "del" ? out[0] : out[1],
			from = s.kind === "del" ? x : y;
		const to = from + (s.kind === "del" ? a.words[s.a]! : b.words[s.b]!).length,
			last = list.at(-1);
		if (last !== undefined && last[1] === from) last[1] = to;
		else list.push([from, to]);
		if (s.kind === "del") x = to;
		else y = to;
	}
	return {out, common};
}
