/* The content itself: what differs from the last approved version, all of it, and the answer of the API as it came. */
import {useState} from "preact/hooks";
import type {ComponentChildren} from "preact";
import {en} from "../../en";
import {BlobFacts} from "../../ui/blob";
import {CodeView, type Lang} from "../../ui/code";
import {DiffView} from "../../ui/diff";
import {Loading, Note} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Table} from "../../ui/table";
import {Hidden} from "../../ui/text";
import type {Drawn} from "./content";
import {jsonPretty, jsonShown} from "./json";
import {patchAfter, patchAscii, patchUndo} from "./patch";
import type {Difference} from "./rights";
import {JSON_FIELDS, fieldName, Value} from "./values";
import {viewedHas, viewedSet} from "./reviewed";

type Field = Difference["fields"][number];

/* These name the version itself, and stand at the head of the page or in the whole content. */
const OWN = new Set(["format", "server_id", "tool_id", "server", "name", "exposed_name"]);
/* Rights have these. */
const RIGHTS = new Set(["secrets", "modules", "requires", "client_capabilities", "confirm", "annotations"]);

function langOf(field: string, drawn: Drawn): Lang {
	const kind = (drawn.request.content as {kind?: string}).kind;
	return JSON_FIELDS.has(field) ? "json" : field === "code" && kind === "python" ? "python" : "text";
}

function textOf(drawn: Drawn, field: string): string {
	const value = (drawn.request.content as Record<string, unknown>)[field];
	return JSON_FIELDS.has(field) ? (drawn.members.get(field) ?? "") : typeof value === "string" ? value : "";
}

/** Draws a part with a box that says it was looked at. The mark is of this hash: other content has none. */
export function Seen({name, title, hash, children}: {name: string; title: string; hash: string; children: ComponentChildren}) {
	const [seen, setSeen] = useState(viewedHas(hash, name));

	return (
		<div class="seen" data-part={name}>
			<div class="head">
				<h3>{title}</h3>
				<label class="diff-blanks">
					<input
						type="checkbox"
						checked={seen}
						onChange={e => {
							viewedSet(hash, name, e.currentTarget.checked);
							setSeen(e.currentTarget.checked);
						}}
					/>{" "}
					{en.approvals.viewed}
					<Hidden>: {title}</Hidden>
				</label>
			</div>
			{seen ? <p class="quiet">{en.approvals.viewedWhy}</p> : children}
		</div>
	);
}

/* Draws the difference of a field that the server compared line by line. */
function Lines({field, unified, drawn}: {field: string; unified: string; drawn: Drawn}) {
	let after = textOf(drawn, field),
		lang = langOf(field, drawn),
		before = patchUndo(after, unified);

	if (before === undefined && JSON_FIELDS.has(field) && patchAscii(patchAfter(unified)) === after) {
		after = patchAfter(unified);
		before = patchUndo(after, unified);
	}
	if (before === undefined)
		return (
			<>
				<Note kind="warn">
					<p>{en.approvals.asWritten}</p>
				</Note>
				<CodeView text={unified} label={fieldName(field)} />
			</>
		);
	if (lang === "json") [before, after] = [before === "" ? "" : jsonShown(before), after === "" ? "" : jsonShown(after)];
	return <DiffView before={before} after={after} label={fieldName(field)} lang={lang} />;
}

function isLong({field, before, after}: Field): boolean {
	return JSON_FIELDS.has(field) || [before, after].some(v => typeof v === "string" && (v.length > 80 || v.includes("\n")));
}

function side(field: string, value: Field["before"]): string {
	const text = typeof value === "string" ? value : "";
	return JSON_FIELDS.has(field) && text !== "" ? jsonShown(text) : text;
}

/** Draws what differs from the last approved version. */
export function Differences({drawn, difference}: {drawn: Drawn; difference: Difference}) {
	const t = en.approvals,
		hash = drawn.request.hash,
		d = difference;
	const limits = new Set((d.gains.limits ?? []).map(l => l.limit));
	const fields = d.fields.filter(f => !RIGHTS.has(f.field) && !limits.has(f.field) && (d.base !== null || !OWN.has(f.field)));
	const long = fields.filter(isLong),
		short = fields.filter(f => !isLong(f));

	if (d.diff.length === 0 && fields.length === 0) return <p>{t.onlyRights}</p>;
	return (
		<>
			{d.diff.map(({field, unified}) => (
				<Seen key={field} name={field} title={fieldName(field)} hash={hash}>
					<Lines field={field} unified={unified} drawn={drawn} />
				</Seen>
			))}
			{long.map(f => (
				<Seen key={f.field} name={f.field} title={fieldName(f.field)} hash={hash}>
					{f.field === "blob" ? <BlobFacts base64={side(f.field, f.after)} /> : null}
					<DiffView
						before={side(f.field, f.before)}
						after={side(f.field, f.after)}
						label={fieldName(f.field)}
						lang={JSON_FIELDS.has(f.field) ? "json" : "text"}
					/>
				</Seen>
			))}
			{short.length > 0 ? (
				<Seen name="other" title={t.otherFields} hash={hash}>
					<Table
						label={t.otherFields}
						rows={short}
						keyOf={f => f.field}
						columns={[
							{name: t.field, cell: f => fieldName(f.field)},
							{name: t.before, cell: f => <Value name={f.field} value={f.before} />},
							{name: t.after, cell: f => <Value name={f.field} value={f.after} />},
						]}
					/>
				</Seen>
			) : null}
		</>
	);
}

/* Tells whether a value needs lines of its own. */
function isBig(name: string, value: unknown): boolean {
	return (
		JSON_FIELDS.has(name) ||
		["code", "text", "blob"].includes(name) ||
		(typeof value === "string" && /\n|.{81}/.test(value)) ||
		(typeof value === "object" && !Array.isArray(value) && value !== null)
	);
}

/** Draws the whole content, field by field. The arguments of a call stand above as its permission. */
export function Whole({drawn}: {drawn: Drawn}) {
	const content = drawn.request.content as Record<string, unknown>,
		call = drawn.request.kind === "call";
	const names = [...drawn.members.keys()].filter(n => !call || n !== "arguments"),
		big = (n: string) => isBig(n, content[n]);

	return (
		<>
			{call ? <p class="quiet">{en.approvals.argumentsAbove}</p> : null}
			{names.filter(big).map(n => (
				<div key={n} class="seen">
					<h3>{fieldName(n)}</h3>
					{n === "blob" && typeof content[n] === "string" ? <BlobFacts base64={content[n] as string} /> : null}
					<CodeView
						text={
							typeof content[n] === "string" && !JSON_FIELDS.has(n)
								? (content[n] as string)
								: jsonShown(drawn.members.get(n)!)
						}
						label={fieldName(n)}
						lang={langOf(n, drawn)}
					/>
				</div>
			))}
			<Table
				label={en.approvals.otherFields}
				rows={names.filter(n => !big(n))}
				keyOf={n => n}
				columns={[
					{name: en.approvals.field, cell: n => fieldName(n)},
					{
						name: en.approvals.value,
						kind: "wide",
						cell: n =>
							typeof content[n] === "number" ? <code>{drawn.members.get(n)}</code> : <Value name={n} value={content[n]} />,
					},
				]}
			/>
		</>
	);
}

/** Draws the content with its three views. */
export function Contents({drawn, difference, waits}: {drawn: Drawn; difference: Difference | undefined; waits: boolean}) {
	const t = en.approvals,
		tool = drawn.request.kind === "tool";
	const views = tool ? (["changes", "whole", "raw"] as const) : (["whole", "raw"] as const);
	const [wanted, setWanted] = useState<"changes" | "whole" | "raw">();
	const view = wanted ?? (tool && (waits || difference !== undefined) ? "changes" : "whole");

	return (
		<Part
			title={t.content}
			actions={
				<span class="choices code-info" role="group" aria-label={t.views}>
					{views.map(v => (
						<button key={v} type="button" class="small" aria-pressed={v === view} onClick={() => setWanted(v)}>
							{t.viewNames[v]}
						</button>
					))}
				</span>
			}
		>
			{view === "raw" ? (
				<>
					<p class="quiet">{t.rawWhy}</p>
					<CodeView text={jsonPretty(drawn.raw)} label={t.viewNames.raw} lang="json" />
				</>
			) : view === "changes" && difference !== undefined ? (
				<Differences drawn={drawn} difference={difference} />
			) : view === "changes" && waits ? (
				<Loading />
			) : (
				<Whole drawn={drawn} />
			)}
		</Part>
	);
}
