/* Any two versions of a tool, side by side. Both are fetched whole, so the difference is made here of what is shown. */
import {usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {goWords, link} from "../../route";
import {DiffView} from "../../ui/diff";
import {Choice} from "../../ui/form";
import {Loading, Note, ProblemNote} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Table} from "../../ui/table";
import {Text} from "../../ui/text";
import type {Schemas} from "../../api/client";

const t = en.tools;
type Version = Schemas["Version"];
/* Long fields are compared line by line; the rest is a table. */
const LONG: [keyof Version, "python" | "json" | "text"][] = [
	["python_code", "python"],
	["spec", "json"],
	["text", "text"],
	["input_schema", "json"],
	["output_schema", "json"],
	["annotations", "json"],
];
const SHORT: (keyof Version)[] = [
	"name",
	"title",
	"description",
	"kind",
	"executable",
	"uri",
	"secrets",
	"modules",
	"requires",
	"limits",
	"blob",
];
const BLOB_SHOWN = 200;

function textOf(value: unknown): string {
	return value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2);
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
	const long = x && y ? LONG.filter(([k]) => textOf(x[k]) !== textOf(y[k])) : [];
	const short = x && y ? SHORT.filter(k => textOf(x[k]) !== textOf(y[k])) : [];

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
					{long.length + short.length > 0 ? (
						<p class="quiet">{t.comparedFields}</p>
					) : x.version_hash === y.version_hash ? (
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
								keyOf={k => k}
								columns={[
									{name: t.field, cell: k => t.fieldNames[k] ?? k},
									{
										name: t.before,
										kind: "wide",
										cell: k => (
											<del class="value">
												<Text text={textOf(x[k])} strict max={k === "blob" ? BLOB_SHOWN : undefined} />
											</del>
										),
									},
									{
										name: t.after,
										kind: "wide",
										cell: k => (
											<ins class="value">
												<Text text={textOf(y[k])} strict max={k === "blob" ? BLOB_SHOWN : undefined} />
											</ins>
										),
									},
								]}
							/>
						</Part>
					) : null}
					{long.map(([k, lang]) => (
						<Part key={k} title={t.fieldNames[k] ?? k}>
							<DiffView label={t.differenceOf(t.fieldNames[k] ?? k)} before={textOf(x[k])} after={textOf(y[k])} lang={lang} />
						</Part>
					))}
				</>
			)}
		</Page>
	);
}
