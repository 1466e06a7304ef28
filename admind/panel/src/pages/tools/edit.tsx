/*
 * Drafts a tool, or a new version of one (docs/decisions/0111). The draft takes
 * the road of every draft: it serves nobody until a person approved its hash.
 */
import {useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction, usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {go, link} from "../../route";
import {Area, Choice, Field, Form} from "../../ui/form";
import {done, doneThere, Loading, Note, ProblemNote} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {ResultView} from "../../ui/result";
import {SchemaForm, type Values} from "../../ui/schema";
import {Text} from "../../ui/text";
import {made, type Result, Submit, useDraft} from "./draft";
import {ObjectEditor} from "./object";

const t = en.tools;

/** Says that a draft needs a server first. */
export function NoServer() {
	return (
		<Note kind="warn">
			<p>
				{t.noServer} <a href={link("servers")}>{en.servers.title}</a>
			</p>
		</Note>
	);
}

/** Draws the form of a new tool. */
export function ToolNew({server}: {server: string}) {
	const servers = usePages("/api/servers", {query: {limit: 200}});
	const [where, setWhere] = useState(server),
		[name, setName] = useState(""),
		[description, setDescription] = useState(""),
		[code, setCode] = useState(t.firstCode);
	const draft = useDraft(),
		at = where || servers.items[0]?.id || "";
	const act = useAction(async () => {
		const result = await draft.run("create_tool", {server_id: at, name, description, python_code: code});
		if (result !== undefined) {
			doneThere(t.drafted);
			go(link("tools", made(result).id ?? "", "edit"));
		}
	});

	return (
		<Page title={t.newTitle} back={[link("tools"), t.title]} intro={t.draftWhy}>
			<ProblemNote problem={servers.problem} again={servers.reload} />
			{!servers.loading && !servers.problem && servers.items.length === 0 ? <NoServer /> : null}
			<Part title={t.content}>
				<Form label={t.makeDraft} busy={act.busy} problem={act.problem} action={act.run} disabled={!at}>
					<Choice label={t.server} value={at} onValue={setWhere} options={servers.items.map(s => [s.id, s.name] as const)} />
					<Field label={t.name} hint={t.nameHint} value={name} onValue={setName} required maxLength={64} autofocus />
					<Area
						label={t.description}
						hint={t.descriptionHint}
						value={description}
						onValue={setDescription}
						required
						rows={2}
						maxLength={2000}
					/>
					<Area label={t.code} hint={t.codeHint} code rows={18} value={code} onValue={setCode} required />
					{draft.bad ? <ResultView text={draft.bad.result} /> : null}
				</Form>
			</Part>
		</Page>
	);
}

/** Draws the editor of a Python tool, a prompt or a resource: content, a try of a tool in the sandbox, and the request for review. */
export function ToolEdit({id}: {id: string}) {
	const read = useRead("/api/tools/{id}", {path: {id}}),
		tool = read.data?.tool;
	const version = useRead(tool === undefined ? null : "/api/tools/{id}/versions/{id2}", {path: {id, id2: String(tool?.version)}}),
		v = version.data;

	return (
		<Page
			title={t.editTitle}
			heading={
				tool ? (
					<>
						{t.edit} <Text text={tool.exposed_name} />
					</>
				) : undefined
			}
			back={[link("tools", id), t.backToOne]}
			intro={t.draftWhy}
		>
			<ProblemNote problem={read.problem ?? version.problem} again={read.reload} />
			{tool === undefined || v === undefined ? (
				read.problem || version.problem ? null : (
					<Loading />
				)
			) : tool.object !== "tool" ? (
				<>
					<ObjectEditor key={id} v={v} onDone={read.reload} />
					<Submit id={id} v={v} onDone={read.reload} />
				</>
			) : v.kind !== "python" ? (
				<Note kind="warn">
					<p>{t.onlyPython}</p>
				</Note>
			) : (
				<>
					<Editor key={id} v={v} onDone={read.reload} />
					<div class="columns">
						<Try v={v} />
						<Submit id={id} v={v} onDone={read.reload} />
					</div>
				</>
			)}
		</Page>
	);
}

function Editor({v, onDone}: {v: Schemas["Version"]; onDone: () => void}) {
	const [code, setCode] = useState(v.python_code ?? ""),
		[description, setDescription] = useState(v.description ?? "");
	const draft = useDraft(),
		changed = code !== v.python_code || description !== (v.description ?? "");
	const act = useAction(async () => {
		const result = await draft.run(
			"update_tool",
			{
				tool_id: v.tool_id,
				...(code !== v.python_code ? {python_code: code} : {}),
				...(description !== (v.description ?? "") ? {description} : {}),
			},
			v,
		);
		if (result !== undefined) {
			done(t.drafted);
			onDone();
		}
	});

	return (
		<Part title={t.editing(v.version)}>
			<Form label={t.makeDraft} busy={act.busy} problem={act.problem} action={act.run} disabled={!changed}>
				<Area label={t.description} value={description} onValue={setDescription} required rows={2} maxLength={2000} />
				<Area label={t.code} hint={t.codeHint} code rows={20} value={code} onValue={setCode} required />
				{draft.bad ? <ResultView text={draft.bad.result} /> : null}
			</Form>
		</Part>
	);
}

function Try({v}: {v: Schemas["Version"]}) {
	const [values, setValues] = useState<Values>({}),
		[result, setResult] = useState<Result>();
	const act = useAction(async () => {
		setResult(undefined);
		const body = {name: "test_code" as const, arguments: {tool_id: v.tool_id, arguments: values}};
		setResult((await api.post("/api/drafts", {body, match: `"${v.version_hash}"`})).data);
	});

	return (
		<Part
			title={t.tryTitle(v.version)}
			actions={result ? <a href={link("calls", {tool: v.exposed_name, kind: "test"})}>{t.tries}</a> : null}
		>
			<p class="quiet">{t.tryWhy}</p>
			<Form label={t.tryButton} busy={act.busy} problem={act.problem} action={act.run}>
				<SchemaForm schema={v.input_schema} values={values} onValues={setValues} />
			</Form>
			{result ? (
				<div role="status">
					<ResultView text={result.result} />
				</div>
			) : null}
		</Part>
	);
}
