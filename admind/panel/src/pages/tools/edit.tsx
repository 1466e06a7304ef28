/*
 * Drafts a tool, prompt or resource, or a new version of one (docs/decisions/0111).
 * The draft takes the road of every draft: it serves nobody until a person
 * approved its hash.
 *
 * A form keeps only what the person changed. All else is the version's that the
 * page shows, and the request names that version's hash, so that content of a
 * client never goes out unread under a person's name.
 */
import {useEffect, useMemo, useRef, useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {Exact} from "../../api/exact";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {go, link} from "../../route";
import {Choice, Form} from "../../ui/form";
import {jsonMembers} from "../../ui/json";
import {done, doneThere, Loading, Note, ProblemNote} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {ResultView} from "../../ui/result";
import {SchemaForm, type Values} from "../../ui/schema";
import {ServerChoice, useServers} from "../../ui/servers";
import {Text} from "../../ui/text";
import {made, type Result, Submit, useDraft} from "./draft";
import {type Change, type Fields, fieldsAll, fieldsChanged, fieldsNew, fieldsOf, type Kind, type ObjectKind, type Version} from "./fields";
import {Calling, Limits, Renamed, ResourceFacts, Rights, Schemas as SchemaFields} from "./more";
import {Arguments, ObjectContent} from "./object";
import {Line, Lines} from "./parts";
import {SpecForm} from "./spec";

const t = en.tools,
	e = en.edit;
/** The objects that can be drafted; a template is a resource with a URI template. */
export type Drafted = "tool" | "prompt" | "resource";
const KINDS: Kind[] = ["python", "command", "http"];
const TITLES = {tool: t.newTitle, prompt: en.prompts.newPrompt, resource: en.prompts.newResource};
const CREATE = {tool: "create_tool", prompt: "create_prompt", resource: "create_resource"} as const;

interface Where {
	/** The server's name and id, and the exposed name of what exists. */
	server: string;
	serverId: string;
	tool?: string;
}

/* Draws all fields of a draft. */
function Content({
	object,
	f,
	before,
	onChange,
	where,
	onDerive,
}: {
	object: ObjectKind;
	f: Fields;
	before: Fields;
	onChange: Change;
	where: Where;
	onDerive?: () => void;
}) {
	const parts = {object, f, before, onChange},
		tool = object === "tool";

	return (
		<>
			<Line
				label={t.name}
				hint={t.nameHint}
				value={f.name}
				onValue={name => onChange({name})}
				required
				maxLength={64}
				autofocus={where.tool === undefined}
			/>
			{where.tool === undefined ? null : <Renamed from={before.name} to={f.name} />}
			<Line label={t.titleOf} hint={t.titleHint} value={f.title} onValue={title => onChange({title})} maxLength={200} />
			<Lines
				label={t.description}
				hint={tool ? (f.kind === "python" ? e.descriptionHint : t.descriptionHint) : undefined}
				value={f.description}
				onValue={description => onChange({description})}
				required={tool && f.kind !== "python"}
				rows={2}
				maxLength={2000}
			/>
			{tool ? (
				<Choice
					label={t.kind}
					hint={e.kindHints[f.kind]}
					value={f.kind}
					onValue={kind => onChange({kind: kind as Kind})}
					options={KINDS.map(k => [k, t.kinds[k]] as const)}
				/>
			) : null}
			{object === "resource" || object === "template" ? <ResourceFacts {...parts} /> : null}
			{object === "prompt" || object === "template" ? <Arguments f={f} onChange={onChange} /> : null}
			{!tool ? (
				<ObjectContent object={object} f={f} onChange={onChange} />
			) : f.kind === "python" ? (
				<Lines
					label={t.code}
					hint={t.codeHint}
					code
					rows={18}
					value={f.python_code}
					onValue={v => onChange({python_code: v})}
					required
				/>
			) : (
				<>
					{f.kind === "command" ? (
						<Line
							label={t.executable}
							hint={e.executableHint}
							value={f.executable}
							onValue={executable => onChange({executable})}
							required
							maxLength={4096}
						/>
					) : null}
					<SpecForm key={f.kind} f={f} onChange={onChange} />
				</>
			)}
			{f.kind === "static" ? null : <Rights key={where.serverId} {...parts} {...where} />}
			{object === "prompt" ? null : <Calling {...parts} />}
			<Limits {...parts} />
			<SchemaFields {...parts} onDerive={onDerive} />
		</>
	);
}

/** Draws the form of something new. */
export function ToolNew({object, server}: {object: Drafted; server: string}) {
	const [where, setWhere] = useState(server),
		servers = useServers(where),
		draft = useDraft();
	const [f, setF] = useState<Fields>(() => ({...fieldsNew(object === "tool" ? "python" : "static"), python_code: object === "tool" ? t.firstCode : ""}));
	const at = where || servers.items[0]?.id || "",
		name = servers.nameOf(at);
	/* A family of resources is known by its braces, and needs code. */
	const family = object === "resource" && f.uri.includes("{"),
		shown: Fields = family ? {...f, kind: "python"} : f,
		kind: ObjectKind = family ? "template" : object;
	const act = useAction(async () => {
		const result = await draft.run(CREATE[object], {server_id: at, ...fieldsAll(kind, shown)});
		if (result !== undefined) {
			doneThere(object === "tool" ? t.drafted : en.prompts.drafted);
			go(link("tools", made(result).id ?? "", "edit"));
		}
	});

	return (
		<Page
			title={TITLES[object]}
			back={object === "tool" ? [link("tools"), t.title] : [link("prompts"), en.prompts.title]}
			intro={t.draftWhy}
		>
			<ProblemNote problem={servers.problem} again={servers.reload} />
			{servers.none ? (
				<Note kind="warn">
					<p>
						{t.noServer} <a href={link("servers")}>{en.servers.title}</a>
					</p>
				</Note>
			) : null}
			<Part title={t.content}>
				<Form label={t.makeDraft} busy={act.busy} problem={act.problem} action={act.run} disabled={!at}>
					<ServerChoice servers={servers} label={t.server} value={at} onValue={setWhere} />
					<Content
						object={kind}
						f={shown}
						before={fieldsNew(shown.kind)}
						onChange={some => setF({...f, ...some})}
						where={{server: name, serverId: at}}
					/>
					{draft.bad ? <ResultView text={draft.bad.result} /> : null}
				</Form>
			</Part>
		</Page>
	);
}

/** Draws the editor of a tool, a prompt or a resource: content, a try of a tool in the sandbox, and the request for review. */
export function ToolEdit({id}: {id: string}) {
	const read = useRead("/api/tools/{id}", {path: {id}}),
		tool = read.data?.tool;
	const version = useRead(tool === undefined ? null : "/api/tools/{id}/versions/{id2}", {path: {id, id2: String(tool?.version)}});
	/* While a newer version is fetched the one before stays, and so does what was typed. */
	const last = useRef<{v: Version; source: string}>(undefined);
	if (version.data !== undefined && version.text !== undefined) last.current = {v: version.data, source: version.text};
	const held = last.current;

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
			<ProblemNote problem={read.problem ?? version.problem} again={read.problem ? read.reload : version.reload} />
			{tool === undefined || held === undefined ? (
				read.problem || version.problem ? null : (
					<Loading />
				)
			) : tool.deleted_at ? (
				<Note kind="warn">
					<p>{e.deleted}</p>
				</Note>
			) : tool.kind === "mcp" ? (
				<Note kind="warn">
					<p>
						{e.mcpWhy} <a href={link("sources")}>{en.sources.title}</a>
					</p>
				</Note>
			) : (
				<>
					<Editor key={id} tool={tool} {...held} onDone={read.reload} />
					<div class="columns">
						{tool.object !== "tool" ? null : held.v.kind === "http" ? (
							<Part title={t.tryTitle(held.v.version)}>
								<p class="quiet">{e.httpNoTry}</p>
							</Part>
						) : (
							<Try {...held} />
						)}
						<Submit id={id} v={held.v} onDone={read.reload} />
					</div>
				</>
			)}
		</Page>
	);
}

function Editor({tool, v, source, onDone}: {tool: Schemas["Tool"]; v: Version; source: string; onDone: () => void}) {
	const [typed, setTyped] = useState<Partial<Fields>>({}),
		[derive, setDerive] = useState(false),
		[newer, setNewer] = useState<{from: number; v: Version}>();
	const draft = useDraft(),
		mine = useRef<string>(undefined),
		base = useRef(v),
		before = useMemo(() => fieldsOf(v, source), [source]),
		now: Fields = {...before, ...typed};
	const changes = fieldsChanged(v.object, before, now);
	/* New content makes its schema anew, so the same content sent again takes the place of a schema of one's own. */
	const again = v.kind === "python" ? {python_code: now.python_code} : {spec: new Exact(now.spec)};
	const args = {...changes, ...(derive ? again : {})};
	const nothing = Object.keys(args).length === 0;

	useEffect(() => {
		if (base.current.version_hash === v.version_hash) return;
		if (mine.current === v.version_hash) {
			setTyped({});
			setDerive(false);
			setNewer(undefined);
		} else setNewer({from: base.current.version, v});
		base.current = v;
	}, [v.version_hash]);
	const act = useAction(async () => {
		const object = v.object === "template" ? "resource" : v.object;
		const result = await draft.run(
			object === "tool" ? "update_tool" : object === "prompt" ? "update_prompt" : "update_resource",
			{[`${object}_id`]: v.tool_id, ...args},
			v,
		);
		if (result === undefined) return;
		mine.current = made(result).version_hash;
		if (mine.current === undefined) {
			setDerive(false);
			done(e.nothingChanged);
			return;
		}
		done(object === "tool" ? t.drafted : en.prompts.drafted);
		onDone();
	});

	return (
		<Part title={t.editing(v.version)}>
			{newer ? (
				<Note kind="warn">
					<p role="status">
						{e.newer(newer.v.version)} <Text text={newer.v.created_by} />. {e.newerWhy}{" "}
						<a href={link("tools", v.tool_id, "compare", {a: String(newer.from), b: String(newer.v.version)})}>{t.compare}</a>
					</p>
				</Note>
			) : null}
			<Form label={t.makeDraft} busy={act.busy} problem={act.problem} action={act.run} disabled={nothing}>
				<Content
					object={v.object}
					f={now}
					before={before}
					onChange={some => setTyped({...typed, ...some})}
					where={{server: tool.server, serverId: tool.server_id, tool: tool.exposed_name}}
					onDerive={v.object === "tool" && now.kind === v.kind && v.kind !== "http" && !derive ? () => setDerive(true) : undefined}
				/>
				{derive ? (
					<p role="status">
						{e.derived}{" "}
						<button type="button" class="small" onClick={() => setDerive(false)}>
							{e.deriveNot}
						</button>
					</p>
				) : null}
				{draft.bad?.failure_mode === "hash_mismatch" ? (
					<p>
						<button
							type="button"
							onClick={() => {
								draft.clear();
								onDone();
							}}
						>
							{e.readAgain}
						</button>
					</p>
				) : null}
				{nothing ? <p class="quiet">{e.nothingYet}</p> : null}
				{draft.bad ? <ResultView text={draft.bad.result} /> : null}
			</Form>
		</Part>
	);
}

function Try({v, source}: {v: Version; source: string}) {
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
				<SchemaForm schema={v.input_schema} source={jsonMembers(source).get("input_schema")} values={values} onValues={setValues} />
			</Form>
			{result ? (
				<div role="status">
					<ResultView text={result.result} />
				</div>
			) : null}
		</Part>
	);
}
