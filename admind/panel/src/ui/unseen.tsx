/*
 * Characters of a text in a field that the field does not show.
 *
 * Attackers: a model wrote the text, and a person changes a word of it and sends
 * the rest under his own name. A field of the browser turns directions, hides
 * what has no width, and cuts newlines from a line. So each line that has such a
 * character is shown below its field by the rule of ui/text.tsx.
 */
import {useMemo} from "preact/hooks";
import {en} from "../en";
import {linesOf} from "./lines";
import {count, showPieces, Text} from "./text";

/* Lines that are drawn; the others are counted. */
const LINES_MAX = 8;
/* Characters of a line around the first that is hidden. */
const BEFORE = 40;
const SHOWN = 200;
/* A line without one of these hides nothing. Most lines have none, and each typed letter asks again. */
const MAYBE = /[^\n\t\x20-\x7e]|\\(?=[ux]\{)/;

interface Found {
	line: number;
	text: string;
}

function find(text: string, one: boolean): Found[] {
	return linesOf(text).flatMap((line, i) => {
		/* A newline is seen in a field of several lines alone. */
		const bare = one ? line.replaceAll("\n", "\r") : line.replace(/\n$/, "");
		if (!MAYBE.test(bare)) return [];
		const pieces = showPieces(bare),
			first = pieces.findIndex(p => p.escape);
		if (first === -1) return [];
		const at = pieces.slice(0, first).reduce((n, p) => n + p.text.length, 0);
		return [{line: i + 1, text: bare.slice(Math.max(0, at - BEFORE), at + SHOWN)}];
	});
}

/** Draws the lines of a field's text that have hidden characters. `one`: the field has a single line. */
export function Unseen({text, one}: {text: string; one?: boolean}) {
	const found = useMemo(() => find(text, one === true), [text, one]);

	if (found.length === 0) return null;
	return (
		<div class="unseen" role="note">
			<p>{en.edit.unseen(count(found.length))}</p>
			<ul class="lines">
				{found.slice(0, LINES_MAX).map(f => (
					<li key={f.line}>
						{one ? null : `${f.line}: `}
						<code>
							<Text text={f.text} />
						</code>
					</li>
				))}
			</ul>
			{found.length > LINES_MAX ? <p>{en.edit.unseenMore(count(found.length - LINES_MAX))}</p> : null}
		</div>
	);
}
