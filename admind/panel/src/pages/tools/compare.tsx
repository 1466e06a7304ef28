/*
 * Any two versions of a tool, side by side. Both are fetched whole, so the
 * difference is made here of what is shown: every member of the content, as the
 * server wrote it. Long values are compared line by line; ui/diff.tsx and
 * ui/code.tsx fold what is equal or very long, say how much, and show it on demand.
 */
import {usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {goWords, link} from "../../route";
import {BlobFacts} from "../../ui/blob";
import {DiffView} from "../../ui/diff";
import {Choice} from "../../ui/form";
import {jsonMembers, jsonShown} from "../../ui/json";
import {Loading, Note, ProblemNote} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Table} from "../../ui/table";
import {Text} from "../../ui/text";

const t = en.tools;
/* Of a version, and not of its content. */
const APART = new Set([
	"tool_id",
	"version",
	"exposed_name",
	"approval_status",
	"version_hash",
	"serving",
	"change_source",
	"change_summary",
	"created_by",
	"created_at",
]);
const FIRST = ["python_code", "spec", "text"];
/* A longer value, or one of several lines, is compared line by line. */
const SHORT_MAX = 80;

interface Difference {
	name: string;
	before: string;
	after: string;
	json: boolean;
}

/* Returns a member as it is shown: a text as it is, a list of names a line each, other JSON formatted. "" for none. */
function shown(json: string | undefined): string {
	if (json === undefined || json === "null") return "";
	if (json.startsWith('"')) return JSON.parse(json) as string;
	if (json === "true") return en.edit.yes;
	if (json === "false") return en.edit.no;
	if (json.startsWith("[")) {
		const list = JSON.parse(json) as unknown[];
		if (list.every(v => typeof v === "string" && !v.includes("\n"))) return list.map(v => `${v as string}\n`).join("");
	}
	return jsonShown(json);
}

function isJson(json: string | undefined): boolean {
	return json !== undefined && (json.startsWith("{") || json.startsWith("["));
}

/* Lists the members that differ, content first. */
function differences(a: string, b: string): Difference[] {
	const x = jsonMembers(a),
		y = jsonMembers(b),
		names = [...new Set([...FIRST, ...x.keys(), ...y.keys()])].filter(n => !APART.has(n));
	return names
		.filter(n => x.get(n) !== y.get(n))
		.map(n => ({name: n, before: shown(x.get(n)), after: shown(y.get(n)), json: isJson(x.get(n) ?? "") || isJson(y.get(n))}))
		.filter(d => d.before !== d.after);
}

function isLong(d: Difference): boolean {
	return [d.before, d.after].some(v => v.length > SHORT_MAX || v.trimEnd().includes("\n"));
}

function nameOf(d: Difference): string {
	return Object.hasOwn(t.fieldNames, d.name) ? t.fieldNames[d.name]! : d.name;
}

export function ToolCompare({id, a, b}: {id: string; a: string | null; b: string | null}) {
	const versions = usePages("/api/versions", {query: {tool: id, limit: 200}});
	const newest = versions.items[0]?.version,
		from = a ?? (newest === undefined ? null : String(Math.max(1, newest - 1))),
		to = b ?? (newest === undefined ? null : String(newest));
	const before = useRead(from === null ? null : "/api/tools/{id}/versions/{id2}", {path: {id, id2: from ?? ""}});
	const after = useRead(to === null ? null : "/api/tools/{id}/versions/{id2}", {path: {id, id2: to ?? ""}});
	/* The newest ones; those of the address may be older. */
	const listed = versions.items.map(v => [String(v.version), `${v.version} (${en.states[v.state] ?? v.state})`] as const);
	const options = [
		...listed,
		...[...new Set([from, to])].flatMap(n => (n === null || listed.some(([k]) => k === n) ? [] : [[n, n] as const])),
	];
	const x = before.data,
		y = after.data;
	const all = before.text !== undefined && after.text !== undefined ? differences(before.text, after.text) : [];
	const short = all.filter(d => !isLong(d)),
		long = all.filter(isLong);

	return (
		<Page
			title={t.compareTitle}
			heading={
				y ? (
					<>
						<Text text={y.exposed_name} /> {t.compareTitle}
					</>
				) : undefined
			}
			back={[link("tools", id), t.backToOne]}
		>
			<div class="filters">
				<Choice label={t.before} value={from ?? ""} onValue={v => goWords({a: v})} options={options} />
				<Choice label={t.after} value={to ?? ""} onValue={v => goWords({b: v})} options={options} />
				{versions.more ? (
					<button type="button" onClick={versions.more}>
						{t.olderVersions}
					</button>
				) : null}
			</div>
			<ProblemNote
				problem={versions.problem ?? before.problem ?? after.problem}
				again={() => {
					versions.reload();
					before.reload();
					after.reload();
				}}
			/>
			{x === undefined || y === undefined ? (
				before.problem || after.problem ? null : (
					<Loading />
				)
			) : (
				<>
					{all.length > 0 ? null : x.version_hash === y.version_hash ? (
						<Note>
							<p>{t.same}</p>
						</Note>
					) : (
						<Note kind="warn">
							<p>{t.differUnseen}</p>
						</Note>
					)}
					{short.length > 0 ? (
						<Part title={t.fields}>
							<Table
								label={t.differenceOf(t.fields)}
								rows={short}
								keyOf={d => d.name}
								columns={[
									{name: t.field, cell: d => nameOf(d)},
									{
										name: t.before,
										kind: "wide",
										cell: d => (
											<del class="value">
												<Text text={d.before} strict />
											</del>
										),
									},
									{
										name: t.after,
										kind: "wide",
										cell: d => (
											<ins class="value">
												<Text text={d.after} strict />
											</ins>
										),
									},
								]}
							/>
						</Part>
					) : null}
					{long.map(d => (
						<Part key={d.name} title={nameOf(d)}>
							{d.name === "blob" ? [d.before, d.after].map((v, i) => (v === "" ? null : <BlobFacts key={i} base64={v} />)) : null}
							<DiffView
								label={t.differenceOf(nameOf(d))}
								before={d.before}
								after={d.after}
								lang={d.name === "python_code" ? "python" : d.json ? "json" : "text"}
							/>
						</Part>
					))}
				</>
			)}
		</Page>
	);
}
