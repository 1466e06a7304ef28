/* The content of one version: code, what it may, its arguments, and all else that its hash covers. */
import type {Schemas} from "../../api/client";
import {en} from "../../en";
import {CodeView} from "../../ui/code";
import {SchemaTable} from "../../ui/schema";
import {Facts} from "../../ui/table";
import {bytes, count, Hash, Made, Text} from "../../ui/text";

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

/** Draws a version whole. */
export function Content({v}: {v: Version}) {
	/* A page has two versions, and no two parts of a page have one name. */
	const named = (what: string) => t.ofVersion(what, v.version);
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
					[t.blob, v.blob ? bytes(Math.floor((v.blob.length * 3) / 4)) : null],
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
					<CodeView label={named(t.spec)} text={JSON.stringify(v.spec, null, 2)} lang="json" />
				</>
			) : null}
			{v.text ? (
				<>
					<h3>{t.text}</h3>
					<CodeView label={named(t.text)} text={v.text} />
				</>
			) : null}
			<h3>{t.rights}</h3>
			{v.secrets.length + v.modules.length + v.requires.length + limits.length === 0 ? (
				<p class="quiet">{t.noRights}</p>
			) : (
				<Facts
					facts={[
						[t.secrets, v.secrets.length ? <Names names={v.secrets} /> : null],
						[t.modules, v.modules.length ? <Names names={v.modules} /> : null],
						[t.requires, v.requires.length ? <Names names={v.requires} /> : null],
						...limits.map(([name, value]): [string, string] => [name, count(value)]),
					]}
				/>
			)}
			<h3>{t.arguments}</h3>
			<SchemaTable label={named(t.arguments)} schema={v.input_schema} />
			<details>
				<summary>{t.rawSchemas}</summary>
				<CodeView label={named(t.inputSchema)} text={JSON.stringify(v.input_schema, null, 2)} lang="json" />
				{v.output_schema ? (
					<CodeView label={named(t.outputSchema)} text={JSON.stringify(v.output_schema, null, 2)} lang="json" />
				) : null}
				{v.annotations ? <CodeView label={named(t.annotations)} text={JSON.stringify(v.annotations, null, 2)} lang="json" /> : null}
			</details>
		</>
	);
}
