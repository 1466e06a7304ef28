/*
 * The difference of two lists of words (lines, or parts of a line): the shortest
 * one by Myers' algorithm ("An O(ND) Difference Algorithm", 1986), with two
 * bounds on its work, because the texts are foreign: so many edits, and so many
 * steps. Steps are counted, not timed, so every reader gets the same difference.
 * Above a bound all between the equal beginning and the equal end counts as
 * replaced: right, but not short.
 */

/** One step: `same` has both places, `del` only the one before, `add` only the one after. */
export type Step = {kind: "same"; a: number; b: number} | {kind: "del"; a: number} | {kind: "add"; b: number};

/** Work that is left. Whoever shares one shares its bound. */
export class Work {
	/** `left`: the steps that may be taken. */
	constructor(public left: number) {}

	/** Takes n steps. Returns false where fewer are left; from then on none are. */
	take(n: number): boolean {
		this.left = this.left >= n ? this.left - n : -1;
		return this.left >= 0;
	}
}

/* Tells whether the farthest way to diagonal k in round d is by an added word. `v` has round d - 1: the farthest place in
 * `a` on its diagonal k is v[k + d - 1]. */
function byAdding(v: Int32Array, k: number, d: number): boolean {
	return k === -d || (k !== d && v[k + d - 2]! < v[k + d]!);
}

/* Finds the steps between a[from..a1) and b[from..b1). Undefined: they take more than `max` edits, or more work. */
function myers(a: Int32Array, b: Int32Array, from: number, a1: number, b1: number, max: number, work: Work): Step[] | undefined {
	const n = a1 - from,
		m = b1 - from,
		rounds: Int32Array[] = [];

	for (let d = 0; d <= Math.min(max, n + m); d++) {
		const v = rounds[d - 1],
			next = new Int32Array(2 * d + 1);
		rounds.push(next);
		for (let k = -d; k <= d; k += 2) {
			const first = v === undefined ? 0 : byAdding(v, k, d) ? v[k + d]! : v[k + d - 2]! + 1;
			let x = first;
			while (x < n && x - k < m && a[from + x] === b[from + x - k]) x++;
			if (!work.take(x - first + 1)) return undefined;
			next[k + d] = x;
			if (k === n - m && x >= n) return back(rounds, from, n, m);
		}
	}
	return undefined;
}

/* Walks from the end to the beginning, by the rounds that led to the end. */
function back(rounds: readonly Int32Array[], from: number, n: number, m: number): Step[] {
	const steps: Step[] = [];
	let x = n,
		y = m;

	for (let d = rounds.length - 1; d >= 0; d--) {
		const v = rounds[d - 1],
			k = x - y,
			adding = v !== undefined && byAdding(v, k, d);
		const before = v === undefined ? 0 : adding ? v[k + d]! : v[k + d - 2]!;
		const start = v === undefined ? 0 : adding ? before : before + 1;
		while (x > start) steps.push({kind: "same", a: from + --x, b: from + --y});
		if (v === undefined) break;
		if (adding) steps.push({kind: "add", b: from + --y});
		else steps.push({kind: "del", a: from + --x});
	}
	return steps.reverse();
}

/* Gives equal words equal numbers, so that long words are read once and not at each comparison. */
function numbered(words: readonly string[], numbers: Map<string, number>): Int32Array {
	return Int32Array.from(words, w => {
		const known = numbers.get(w);
		if (known !== undefined) return known;
		numbers.set(w, numbers.size);
		return numbers.size - 1;
	});
}

/** Lists the steps that make the words `b` of the words `a`, with at most `max` edits if there is such a way and `work`
 * suffices to find it. */
export function listDiff(a: readonly string[], b: readonly string[], max: number, work: Work): Step[] {
	const numbers = new Map<string, number>(),
		na = numbered(a, numbers),
		nb = numbered(b, numbers),
		steps: Step[] = [];
	let from = 0,
		a1 = a.length,
		b1 = b.length;

	while (from < a1 && from < b1 && na[from] === nb[from]) {
		steps.push({kind: "same", a: from, b: from});
		from++;
	}
	while (a1 > from && b1 > from && na[a1 - 1] === nb[b1 - 1]) {
		a1--;
		b1--;
	}
	const middle = myers(na, nb, from, a1, b1, max, work);
	if (middle !== undefined) for (const s of middle) steps.push(s);
	else {
		for (let i = from; i < a1; i++) steps.push({kind: "del", a: i});
		for (let i = from; i < b1; i++) steps.push({kind: "add", b: i});
	}
	for (let i = 0; a1 + i < a.length; i++) steps.push({kind: "same", a: a1 + i, b: b1 + i});
	return steps;
}

/** Returns true if the steps name each place of both lists once, in order, and `same` only equal words. A fault of the
 * search would hide a change; this check does not trust it. */
export function diffHolds(steps: readonly Step[], a: readonly string[], b: readonly string[]): boolean {
	let i = 0,
		k = 0;

	for (const s of steps)
		if (s.kind === "same" ? s.a !== i++ || s.b !== k++ || a[s.a] !== b[s.b] : s.kind === "del" ? s.a !== i++ : s.b !== k++)
			return false;
	return i === a.length && k === b.length;
}
