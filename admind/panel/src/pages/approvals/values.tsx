/* Values of a request's content, which others wrote: strictly escaped, since they are reviewed. */
import {en} from "../../en";
import {LineText} from "../../ui/code";
import {State} from "../../ui/notice";
import {bytes, count, duration} from "../../ui/text";

/* Fields of a version that are JSON, in the text that was stored. */
export const JSON_FIELDS = new Set(["icons", "meta", "input_schema", "output_schema", "annotations", "arguments", "spec"]);

/** Returns a number with its unit, by the name of its field or limit. */
export function amount(name: string, n: number): string {
	if (name.endsWith("_ms")) return n < 1000 ? duration(n) : `${duration(n)} (${count(n)} ms)`;
	if (name.endsWith("_bytes") || name === "size") return n < 1024 ? bytes(n) : `${bytes(n)} (${count(n)} B)`;
	return name === "network_rate" ? `${bytes(n)}/min (${count(n)} B)` : count(n);
}

/** Draws a value that is reviewed, as a line of code: each blank shows, and a newline is an escape. */
export function Code({text}: {text: unknown}) {
	return (
		<code class="value">
			<LineText text={String(text)} />
		</code>
	);
}

/** Draws a value of a field: a word, a number or a list. null is said in words. */
export function Value({name, value}: {name: string; value: unknown}) {
	if (value === null || value === undefined)
		return <span class="quiet">{name === "port" ? en.approvals.ports : en.approvals.absent}</span>;
	if (typeof value === "number") return <>{amount(name, value)}</>;
	if (Array.isArray(value))
		return value.length === 0 ? (
			<span class="quiet">{en.none}</span>
		) : (
			<ul class="plain-list">
				{value.map((v, i) => (
					<li key={i}>
						<Code text={v} />
					</li>
				))}
			</ul>
		);
	return <Code text={value} />;
}

/** Returns a field's name for people; an unknown one as it is. */
export function fieldName(field: string): string {
	return Object.hasOwn(en.approvals.fields, field) ? en.approvals.fields[field]! : field;
}

/** Draws names that are new, gone or as before, each with its word. */
export function Changes({plus, minus, same}: {plus: string[]; minus: string[]; same: string[]}) {
	const row = (list: string[], word: string, kind: "warn" | "info" | "good") =>
		list.map(n => (
			<li key={`${word} ${n}`}>
				<State state={word} kind={kind} /> <Code text={n} />
			</li>
		));
	return (
		<ul class="plain-list">
			{row(plus, en.approvals.isNew, "warn")}
			{row(minus, en.approvals.isGone, "good")}
			{row(same, en.approvals.isSame, "info")}
		</ul>
	);
}
