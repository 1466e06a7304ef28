/*
 * Text that others wrote: names, descriptions, code, results.
 *
 * Attackers: a model, a tool, a client or a server elsewhere chooses these
 * characters and wants the reader to see another text than the one that counts,
 * or to run a script here. Preact makes text nodes of strings, so no character
 * is ever markup. show() makes the rest visible by the rule of decision 0065:
 * all that has no form of its own, turns the direction or joins with a
 * neighbour is written as \u{hex}, and a backslash that would look like such an
 * escape as \u{5c}.
 */
import type {ComponentChildren} from "preact";
import {en} from "../en";

/* Controls but newline and tab, format characters (bidi, zero-width), private
 * use, surrogates, unassigned, separators of lines, blanks but the space, and
 * characters that Unicode ignores by default. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/u;
const ASCII_ONLY = /[^\n\x20-\x7e]/u;
const ESCAPE_LIKE = /\\(?=[ux]\{)/;
/* More combining marks than these on one letter cover the lines beside it. */
const MARKS_MAX = 3;
const MARKS = new RegExp(`(\\p{M}{${MARKS_MAX}})(\\p{M}+)`, "u");

function hex(c: string): string {
	return `\\u{${c.codePointAt(0)!.toString(16)}}`;
}

/** One piece of shown text: as it is written, or an escape. */
export interface Piece {
	text: string;
	escape: boolean;
}

/** Splits text into what is shown as it is and escapes. `strict` escapes all but printable ASCII and newlines, for what
 * is reviewed; else newlines and tabs stay, and so do letters of all scripts. */
export function showPieces(text: string, strict = false): Piece[] {
	const pattern = new RegExp(
		`${ESCAPE_LIKE.source}|${strict ? ASCII_ONLY.source : `(?![\\n\\t])(?:${HIDDEN.source})|${MARKS.source}`}`,
		"gu",
	);
	const pieces: Piece[] = [];
	let at = 0;

	for (const m of text.matchAll(pattern)) {
		const kept = m[1] ?? "";
		const plain = text.slice(at, m.index) + kept;
		if (plain !== "") pieces.push({text: plain, escape: false});
		pieces.push({text: [...m[0].slice(kept.length)].map(hex).join(""), escape: true});
		at = m.index + m[0].length;
	}
	if (at < text.length) pieces.push({text: text.slice(at), escape: false});
	return pieces;
}

/** Returns the text with its escapes, where no element can be: titles, labels. */
export function show(text: string, strict = false): string {
	return showPieces(text, strict)
		.map(p => p.text)
		.join("");
}

/** Draws text that others wrote. `max` cuts after that many characters, and says so. */
export function Text({text, strict, max}: {text: string | null | undefined; strict?: boolean; max?: number}) {
	if (text === null || text === undefined) return null;
	const cut = max !== undefined && text.length > max;
	return (
		<bdi>
			{showPieces(cut ? text.slice(0, max) : text, strict).map(p => (p.escape ? <span class="escape">{p.text}</span> : p.text))}
			{cut ? "…" : ""}
		</bdi>
	);
}

/** Draws a hash short, with the whole in its title. */
export function Hash({hash}: {hash: string | null | undefined}) {
	return hash ? (
		<code class="hash" title={hash}>
			{hash.slice(0, 12)}
		</code>
	) : null;
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
	["day", 86400],
	["hour", 3600],
	["minute", 60],
	["second", 1],
];
const relative = new Intl.RelativeTimeFormat("en", {numeric: "auto", style: "narrow"});
const exact = new Intl.DateTimeFormat("en-GB", {dateStyle: "medium", timeStyle: "medium"});
const date = new Intl.DateTimeFormat("en-GB", {dateStyle: "medium"});

/** Draws a time as "5 min ago", with the date in its title; a date alone where it is over 30 days away. */
export function Time({at}: {at: string | null | undefined}) {
	if (!at) return null;
	const when = new Date(at),
		s = (when.getTime() - Date.now()) / 1000;
	const [unit, size] = UNITS.find(([, n]) => Math.abs(s) >= n) ?? ["second", 1];
	const text = Math.abs(s) > 30 * 86400 ? date.format(when) : relative.format(Math.trunc(s / size), unit);
	return (
		<time dateTime={at} title={exact.format(when)}>
			{text}
		</time>
	);
}

/** Draws when somebody made something, and who. */
export function Made({at, by}: {at: string | null | undefined; by: string | null | undefined}) {
	return (
		<>
			<Time at={at} />{" "}
			{by ? (
				<span class="quiet">
					{en.by} <Text text={by} />
				</span>
			) : null}
		</>
	);
}

/** Returns a duration of milliseconds for people. */
export function duration(ms: number | null | undefined): string {
	if (ms === null || ms === undefined) return "–";
	if (ms < 1000) return `${Math.round(ms)} ms`;
	if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
	const s = Math.round(ms / 1000);
	return s % 60 === 0 ? `${s / 60} min` : `${Math.floor(s / 60)} min ${s % 60} s`;
}

/** Returns a number of bytes for people. */
export function bytes(n: number | null | undefined): string {
	if (n === null || n === undefined) return "–";
	return n < 1024 ? `${n} B` : n < 1048576 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / 1048576).toFixed(1)} MiB`;
}

/** Returns a count with separators between thousands. */
export function count(n: number | null | undefined): string {
	return n === null || n === undefined ? "–" : n.toLocaleString("en");
}

/** Draws text for screen readers alone. */
export function Hidden({children}: {children: ComponentChildren}) {
	return <span class="hidden">{children}</span>;
}
