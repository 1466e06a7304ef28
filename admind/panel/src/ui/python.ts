/* Colours of Python. This file and the parser are fetched when the first code is shown. */
import {highlightTree, tagHighlighter, tags as t} from "@lezer/highlight";
import {parser} from "@lezer/python";
import type {Mark} from "./lines";

const looks = tagHighlighter([
	{tag: t.keyword, class: "tok-keyword"},
	{tag: [t.bool, t.null, t.number], class: "tok-number"},
	{tag: t.string, class: "tok-string"},
	{tag: t.special(t.string), class: "tok-string"},
	{tag: t.comment, class: "tok-comment"},
	{tag: [t.function(t.definition(t.variableName)), t.definition(t.className)], class: "tok-name"},
]);

/** Lists the colours of a text, ascending. */
export function pythonMarks(text: string): Mark[] {
	const marks: Mark[] = [];

	highlightTree(parser.parse(text), looks, (from, to, look) => void marks.push({from, to, look}));
	return marks;
}
