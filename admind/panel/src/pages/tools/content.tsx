/* The content of one version: code, what it may, its arguments, and all else that its hash covers. */
import type {Schemas} from "../../api/client";
import {en} from "../../en";
import {BlobFacts} from "../../ui/blob";
import {CodeView} from "../../ui/code";
import {jsonMembers, jsonPretty} from "../../ui/json";
import {SchemaTable} from "../../ui/schema";
import {Facts} from "../../ui/table";
import {count, duration, Hash, Made, Text} from "../../ui/text";

type Version = Schemas["Version"];
const t = en.tools;

function Names({names}: {names: readonly string[]}) {
	return (
		<>
			{names.map((n, i) => (
				<>
					{i > 0 ? ", " : ""}
					<code>
						<Text text={n} strict />
					</code>
				</>
			))}
		</>
	);
}

/** Draws a version whole. `source` is the text of its answer, whose JSON is shown as it was written: a parser of the browser
 * rounds large numbers. */
export function Content({v, source}: {v: Version; source: string}) {
	const members = jsonMembers(source),
		json = (n: string) => ((members.get(n) ?? "null") === "null" ? undefined : jsonPretty(members.get(n)!));
	const raw = (
		[
			["input_schema", t.inputSchema],
			["output_schema", t.outputSchema],
			["annotations", t.annotations],
			["arguments", t.suggestions],
			["icons", t.icons],
			["meta", t.meta],
		] as const
	).flatMap(([n, label]) => (json(n) === undefined ? [] : [[label, json(n)!] as const]));
	/* A page has two versions, and no two parts of a page have one name. */
	const named = (what: string) => t.ofVersion(what, v.version);
	const needs = v.client_capabilities ?? [];
	const limits = Object.entries(v.limits).filter(([, value]) => value !== null);
	return (
		<>
			<Facts
				facts={[
					[t.state, en.states[v.approval_status] ?? v.approval_status],
					[t.kind, t.kinds[v.kind]],
					[t.made, <Made at={v.created_at} by={v.created_by} />],
					[t.how, t.sources[v.change_source]],
					[t.hash, <Hash hash={v.version_hash} />],
					[t.titleOf, v.title ? <Text text={v.title} strict /> : null],
					[t.uri, v.uri ? <Text text={v.uri} strict /> : null],
					[t.executable, v.executable ? <Text text={v.executable} strict /> : null],
					[t.digest, v.executable_digest ? <Hash hash={v.executable_digest} /> : null],
					[t.mime, v.mime_type ? <Text text={v.mime_type} strict /> : null],
					[t.ttl, v.ttl_ms == null ? null : duration(v.ttl_ms)],
					[t.confirmed, v.confirm ? t.confirmedYes : null],
					[t.task, v.task ? (en.edit.tasks[v.task] ?? v.task) : null],
					[t.blob, v.blob ? <BlobFacts base64={v.blob} /> : null],
					[t.note, v.change_summary ? <Text text={v.change_summary} /> : null],
				]}
			/>
			{v.description ? (
				<>
					<h3>{t.description}</h3>
					<p class="prose">
						<Text text={v.description} strict />
					</p>
				</>
			) : null}
			{v.python_code !== null && v.python_code !== undefined ? (
				<>
					<h3>{t.code}</h3>
					<CodeView label={named(t.code)} text={v.python_code} lang="python" />
				</>
			) : null}
			{v.spec ? (
				<>
					<h3>{t.spec}</h3>
					<CodeView label={named(t.spec)} text={json("spec") ?? ""} lang="json" />
				</>
			) : null}
			{v.text ? (
				<>
					<h3>{t.text}</h3>
					<CodeView label={named(t.text)} text={v.text} />
				</>
			) : null}
			<h3>{t.rights}</h3>
			{v.secrets.length + v.modules.length + v.requires.length + needs.length + limits.length === 0 ? (
				<p class="quiet">{t.noRights}</p>
			) : (
				<Facts
					facts={[
						[t.secrets, v.secrets.length ? <Names names={v.secrets} /> : null],
						[t.modules, v.modules.length ? <Names names={v.modules} /> : null],
						[t.requires, v.requires.length ? <Names names={v.requires} /> : null],
						[t.capabilities, needs.length ? <Names names={needs} /> : null],
						...limits.map(([name, value]): [string, string] => [en.limits[name]?.[0] ?? name, count(value)]),
					]}
				/>
			)}
			<h3>{t.arguments}</h3>
			<SchemaTable label={named(t.arguments)} schema={v.input_schema} text={members.get("input_schema")} />
			<details>
				<summary>{t.rawSchemas}</summary>
				{raw.map(([label, text]) => (
					<CodeView key={label} label={named(label)} text={text} lang="json" />
				))}
			</details>
		</>
	);
}
