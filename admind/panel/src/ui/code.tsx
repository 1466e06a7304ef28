/*
 * Code and other text of several lines that a person reviews.
 *
 * Attackers: the author of the text. ui/lines.ts says which characters become
 * escapes. A number of ours can't be forged: numbers stand in a column that no
 * text reaches, since a line that is too wide breaks within its own column. Long
 * lines, equal lines and lines that are not drawn yet are said in words of ours,
 * in rows without a number. Colours are a help of another parser than Python's,
 * so no colour is fainter than plain text.
 */
import {useEffect, useMemo, useState} from "preact/hooks";
import {en} from "../en";
import {lineBare, lineCells, lineParts, lineRows, linesOf, type Mark, marksByLine, type Part} from "./lines";
import {bytes, count} from "./text";

export type Lang = "python" | "json" | "text";

/* A longer line shows its beginning and a button. */
const LINE_MAX = 2000;
const LINE_SHOWN = 1000;
/* Rows that are drawn at once. A click draws as many again: one of 500,000 rows would not end. */
const ROWS = 1000;
/* Longer texts have no colours: the parser would hold the page up. */
const COLOURS_MAX = 300_000;

/* A string without an end counts as a string: else each quote of a text that was cut would search to its end. */
const JSON_TOKENS = /"(?:[^"\\\n]|\\.)*(?:"(\s*:)?)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;

function* jsonMarks(text: string): Generator<Mark> {
	for (const m of text.matchAll(JSON_TOKENS))
		yield {
			from: m.index,
			to: m.index + m[0].length - (m[1]?.length ?? 0),
			look: m[1] !== undefined ? "tok-name" : m[0][0] === '"' ? "tok-string" : "tok-number",
		};
}

/** Returns the colours of each line of a text: of Python once its parser is there. */
export function useMarks(text: string, lines: readonly string[], lang: Lang): Mark[][] {
	const [made, set] = useState<{text: string; marks: Mark[][]}>();
	const json = useMemo(() => (lang === "json" && text.length <= COLOURS_MAX ? marksByLine(lines, jsonMarks(text)) : []), [text, lang]);

	useEffect(() => {
		let here = true;
		if (lang === "python" && text.length <= COLOURS_MAX)
			import("./python").then(
				p => here && set({text, marks: marksByLine(lines, p.pythonMarks(text))}),
				() => undefined,
			);
		return () => {
			here = false;
		};
	}, [text, lang]);
	return lang === "json" ? json : lang === "python" && made?.text === text ? made.marks : [];
}

function draw(part: Part, i: number) {
	return part.look ? (
		<span key={i} class={part.look}>
			{part.text}
		</span>
	) : (
		part.text
	);
}

/** Draws one line, without its newline: escapes, colours, and the ranges that changed as <ins> or <del>. */
export function LineText({
	text,
	marks,
	changed,
	as,
}: {
	text: string;
	marks?: readonly Mark[];
	changed?: readonly (readonly [number, number])[];
	as?: "ins" | "del";
}) {
	const [open, setOpen] = useState(false);
	const long = text.length > LINE_MAX && !open;
	/* Half of a pair of surrogates would look like an odd character of the author's. */
	const cut = /[\ud800-\udbff]/.test(text[LINE_SHOWN - 1] ?? "") ? LINE_SHOWN - 1 : LINE_SHOWN;
	/* The same elements as before are not compared again: a page has thousands of lines. */
	const parts = useMemo(() => {
		const Changed = as ?? "span";
		return (
			<>
				{lineParts(long ? text.slice(0, cut) : text, text.length > LINE_MAX ? [] : marks, changed).map((p, i) =>
					p.changed && as !== undefined ? <Changed key={i}>{draw(p, i)}</Changed> : draw(p, i),
				)}
			</>
		);
	}, [text, marks, changed, as, long]);

	return (
		<>
			{parts}
			{long ? (
				<button type="button" class="small fold" onClick={() => setOpen(true)}>
					{en.code.longLine(count(text.length - cut))}
				</button>
			) : null}
		</>
	);
}

/** Draws a text of several lines with numbers. It is a region that can be scrolled by keys, so it needs a name. */
export function CodeView({text, label, lang = "text"}: {text: string; label: string; lang?: Lang}) {
	const lines = useMemo(() => linesOf(text), [text]);
	const rows = useMemo(() => lineRows(lines), [lines]);
	const escapes = useMemo(() => lines.reduce((n, l) => n + lineCells(lineBare(l)).filter(c => c.escape).length, 0), [lines]);
	const marks = useMarks(text, lines, lang);
	const [shown, setShown] = useState(ROWS);
	const ends = text === "" || text.endsWith("\n");
	const left = rows.length - shown;

	useEffect(() => setShown(ROWS), [text]);
	return (
		<div class="code-box">
			<p class="code-info quiet">
				<span>{text === "" ? en.code.empty : en.code.size(lines.length, bytes(new TextEncoder().encode(text).length))}</span>
				{escapes > 0 ? <span class="code-escapes">{en.code.escapes(escapes)}</span> : null}
			</p>
			{text === "" ? null : (
				<div class="code-view" role="region" aria-label={label} tabIndex={0}>
					<pre>
						{rows.slice(0, shown).map(r => (
							<>
								<span key={r.line} class="line" data-n={r.line + 1}>
									<code>
										<LineText text={lineBare(lines[r.line]!)} marks={marks[r.line]} />
										{"\n"}
									</code>
								</span>
								{r.times > 1 ? (
									<span class="line ours">{en.code.equal(r.line + 2, r.line + r.times, r.line + 1)}</span>
								) : null}
							</>
						))}
						{left <= 0 && !ends ? <span class="line ours">{en.code.noNewline}</span> : null}
					</pre>
					{left > 0 ? (
						<p class="code-more">
							<button type="button" class="small" onClick={() => setShown(shown + ROWS)}>
								{en.code.rest(count(Math.min(left, ROWS)), count(left))}
							</button>
						</p>
					) : null}
				</div>
			)}
		</div>
	);
}
