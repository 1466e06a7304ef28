/* Fields of the editors. Each shows below itself what a field of the browser hides (ui/unseen.tsx). */
import type {ComponentProps} from "preact";
import {useRef, useState} from "preact/hooks";
import {en} from "../../en";
import {Area, Field} from "../../ui/form";
import {isObject, jsonElements, jsonMembers, jsonPretty} from "../../ui/json";
import {Unseen} from "../../ui/unseen";
import {objectOf} from "./fields";

const t = en.edit;
const NUMBERS = /^\s*(?:0|[1-9]\d*)(?:\s*,\s*(?:0|[1-9]\d*))*\s*$/;

/** Draws a field of one line. */
export function Line(p: ComponentProps<typeof Field>) {
	return (
		<>
			<Field {...p} />
			<Unseen text={p.value} one />
		</>
	);
}

/** Draws a field of several lines. */
export function Lines(p: ComponentProps<typeof Area>) {
	return (
		<>
			<Area {...p} />
			<Unseen text={p.value} />
		</>
	);
}

/** Returns what is wrong with a JSON text of this form; undefined: nothing. An empty text is none. */
export function jsonWrong(text: string, form: "object" | "array" | "any"): string | undefined {
	if (text.trim() === "") return undefined;
	try {
		const value: unknown = JSON.parse(text);
		if (form === "object" && !isObject(value)) return t.noObject;
		if (form === "array" && !Array.isArray(value)) return t.noArray;
		if (isObject(value)) jsonMembers(text);
		return undefined;
	} catch (e) {
		return `${t.notJson} ${e instanceof Error ? e.message : ""}`.slice(0, 300);
	}
}

/** Draws a field for JSON. The form is not sent while its text is no JSON. */
export function JsonArea({form = "object", ...p}: ComponentProps<typeof Area> & {form?: "object" | "array" | "any"}) {
	const wrong = jsonWrong(p.value, form);
	return <Lines {...p} code error={wrong} refuse={wrong} />;
}

/* Returns a JSON text in one form: the whole around a part writes its blanks anew. */
function canon(text: string): string {
	return text.trim() === "" ? "" : jsonPretty(text);
}

/** Keeps what is typed of a JSON text: half of it is no JSON yet, and its blanks must not change under the fingers. Returns what
 * the field shows, and a function that takes what was typed and the text that it makes. */
export function useShown(text: string, shown: string, onText: (text: string) => void): [string, (typed: string, made: string) => void] {
	const [typed, setTyped] = useState<{of: string; shown: string}>();

	return [
		typed !== undefined && typed.of === canon(text) ? typed.shown : shown,
		(now, made) => {
			setTyped({of: canon(made), shown: now});
			if (canon(made) !== canon(text)) onText(made);
		},
	];
}

/** Keeps a list of rows beside the JSON text that they make, so that a row may be half written. `read` makes rows of a
 * text, `write` a text of rows, or undefined where they make none; then the text before stays. */
export function useRows<R>(
	text: string,
	onText: (text: string) => void,
	read: (text: string) => R[],
	write: (rows: R[]) => string | undefined,
): [R[], (rows: R[]) => void] {
	const [rows, setRows] = useState(() => read(text));
	const last = useRef(canon(text));
	let now = rows;

	if (last.current !== canon(text)) {
		last.current = canon(text);
		now = read(text);
		setRows(now);
	}
	return [
		now,
		next => {
			setRows(next);
			const made = write(next);
			if (made === undefined || canon(made) === last.current) return;
			last.current = canon(made);
			onText(made);
		},
	];
}

/** Returns true if a row's name is that of another row. */
export function twice(names: readonly string[], i: number): boolean {
	return names.some((n, k) => k !== i && n === names[i]);
}

interface ListProps {
	label: string;
	hint?: string;
	text: string;
	onText: (text: string) => void;
	max: number;
}

interface Pair {
	name: string;
	value: string;
}

/** Returns true if a JSON text is an object whose values are all texts, so that Pairs can show them. */
export function allTexts(text: string): boolean {
	return jsonWrong(text, "object") === undefined && [...jsonMembers(text === "" ? "{}" : text).values()].every(v => v.startsWith('"'));
}

/** Draws the members of a JSON object whose values are texts. `text` is "" for no members. */
export function Pairs({label, hint, text, onText, max}: ListProps) {
	const [rows, set] = useRows<Pair>(
		text,
		onText,
		s => [...jsonMembers(s === "" ? "{}" : s)].map(([name, v]) => ({name, value: JSON.parse(v) as string})),
		list =>
			list.some((r, i) => r.name === "" || twice(list.map(x => x.name), i))
				? undefined
				: list.length === 0
					? ""
					: objectOf(list.map(r => [r.name, JSON.stringify(r.value)] as const)),
	);
	const names = rows.map(r => r.name),
		one = (i: number, change: Partial<Pair>) => set(rows.map((r, k) => (k === i ? {...r, ...change} : r)));

	return (
		<fieldset>
			<legend>{label}</legend>
			{hint ? <p class="hint">{hint}</p> : null}
			{rows.map((r, i) => {
				const wrong = twice(names, i) ? t.twice : undefined;
				return (
					<div class="filters" key={i} role="group" aria-label={t.rowOf(label, i + 1)}>
						<Line label={t.nameOf(label, i + 1)} value={r.name} onValue={name => one(i, {name})} required error={wrong} refuse={wrong} />
						<Lines label={t.valueOf(label, i + 1)} rows={1} value={r.value} onValue={value => one(i, {value})} />
						<button type="button" onClick={() => set(rows.filter((_, k) => k !== i))}>
							{t.removeOf(label, i + 1)}
						</button>
					</div>
				);
			})}
			{rows.length < max ? (
				<p>
					<button type="button" onClick={() => set([...rows, {name: "", value: ""}])}>
						{t.addTo(label)}
					</button>
				</p>
			) : null}
		</fieldset>
	);
}

/** Draws a JSON array of texts, each with a field of its own; their order counts. One with other values is drawn as JSON. */
export function Texts(p: ListProps) {
	const odd = jsonWrong(p.text, "array") !== undefined || (p.text !== "" && !jsonElements(p.text).every(e => e.startsWith('"')));
	return odd ? <Held {...p} form="array" /> : <TextList {...p} />;
}

function TextList({label, hint, text, onText, max}: ListProps) {
	const [rows, set] = useRows<string>(
		text,
		onText,
		s => (s === "" ? [] : jsonElements(s).map(e => JSON.parse(e) as string)),
		list => (list.length === 0 ? "" : JSON.stringify(list)),
	);
	return (
		<fieldset>
			<legend>{label}</legend>
			{hint ? <p class="hint">{hint}</p> : null}
			{rows.map((r, i) => (
				<div class="filters" key={i} role="group" aria-label={t.rowOf(label, i + 1)}>
					<Lines label={t.itemOf(label, i + 1)} rows={1} value={r} onValue={v => set(rows.map((x, k) => (k === i ? v : x)))} />
					{i > 0 ? (
						<button
							type="button"
							onClick={() => set(rows.map((x, k) => (k === i - 1 ? rows[i]! : k === i ? rows[i - 1]! : x)))}
						>
							{t.upOf(label, i + 1)}
						</button>
					) : null}
					<button type="button" onClick={() => set(rows.filter((_, k) => k !== i))}>
						{t.removeOf(label, i + 1)}
					</button>
				</div>
			))}
			{rows.length < max ? (
				<p>
					<button type="button" onClick={() => set([...rows, ""])}>
						{t.addTo(label)}
					</button>
				</p>
			) : null}
		</fieldset>
	);
}

/** Draws a JSON array of whole numbers as a text with commas. `text` is "" for none. */
export function Numbers({label, hint, text, onText}: {label: string; hint?: string; text: string; onText: (text: string) => void}) {
	const [shown, set] = useShown(text, text === "" ? "" : jsonElements(text).join(", "), onText);
	const wrong = shown.trim() === "" || NUMBERS.test(shown) ? undefined : t.noNumbers;

	return (
		<Line
			label={label}
			hint={hint}
			value={shown}
			error={wrong}
			refuse={wrong}
			onValue={v => set(v, v.trim() === "" ? "" : NUMBERS.test(v) ? `[${v}]` : text)}
		/>
	);
}

/** Draws a JSON value as its text. The form is not sent while it is no JSON. */
export function Held({
	label,
	hint,
	text,
	onText,
	rows,
	form = "any",
}: {
	label: string;
	hint?: string;
	text: string;
	onText: (text: string) => void;
	rows?: number;
	form?: "object" | "array" | "any";
}) {
	const [shown, set] = useShown(text, canon(text).trimEnd(), onText);
	return (
		<JsonArea
			form={form}
			label={label}
			hint={hint}
			rows={rows ?? 3}
			value={shown}
			onValue={v => set(v, jsonWrong(v, form) === undefined ? v.trim() : text)}
		/>
	);
}
