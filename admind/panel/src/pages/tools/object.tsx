/*
 * Drafts a prompt or a resource, or a new version of one, by the management
 * tools (docs/decisions/0111). A client can say more of one: icons, annotations, limits.
 */
import {useState} from "preact/hooks";
import type {Schemas} from "../../api/client";
import {useAction, usePages} from "../../api/use";
import {en} from "../../en";
import {go, link} from "../../route";
import {Area, Choice, Field, Form, Tick} from "../../ui/form";
import {done, doneThere, ProblemNote} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {ResultView} from "../../ui/result";
import {made, useDraft} from "./draft";
import {NoServer} from "./edit";

const t = en.tools,
	p = en.prompts;
const ARGUMENTS_MAX = 32;
/** The objects beside tools that can be drafted; a template is a resource with a URI template. */
export type Drafted = "prompt" | "resource";

interface Argument {
	name: string;
	description: string;
	required: boolean;
}

/* Draws the arguments of a prompt as fields. */
function Arguments({list, onList}: {list: readonly Argument[]; onList: (list: Argument[]) => void}) {
	const set = (i: number, change: Partial<Argument>) => onList(list.map((a, j) => (j === i ? {...a, ...change} : a)));
	return (
		<fieldset>
			<legend>{t.arguments}</legend>
			<p class="hint">{p.argumentsHint}</p>
			{list.map((a, i) => (
				<div class="filters" key={i} role="group" aria-label={p.argumentNo(i + 1)}>
					<Field label={p.argumentName(i + 1)} value={a.name} onValue={name => set(i, {name})} required maxLength={38} />
					<Field
						label={p.argumentWhat(i + 1)}
						value={a.description}
						onValue={description => set(i, {description})}
						maxLength={500}
					/>
					<Tick label={p.argumentNeeded(i + 1)} value={a.required} onValue={required => set(i, {required})} />
					<button type="button" onClick={() => onList(list.filter((_, j) => j !== i))}>
						{p.argumentRemove(i + 1)}
					</button>
				</div>
			))}
			{list.length < ARGUMENTS_MAX ? (
				<p>
					<button type="button" onClick={() => onList([...list, {name: "", description: "", required: true}])}>
						{p.argumentAdd}
					</button>
				</p>
			) : null}
		</fieldset>
	);
}

/** Draws the form of a new prompt or resource. */
export function ObjectNew({object, server}: {object: Drafted; server: string}) {
	const prompt = object === "prompt",
		servers = usePages("/api/servers", {query: {limit: 200}});
	const [where, setWhere] = useState(server),
		[name, setName] = useState(""),
		[description, setDescription] = useState("");
	const [text, setText] = useState(""),
		[code, setCode] = useState(false),
		[uri, setUri] = useState(""),
		[mime, setMime] = useState("");
	const [args, setArgs] = useState<Argument[]>([]);
	/* A family of resources is known by its braces. */
	const family = !prompt && uri.includes("{"),
		byCode = code || family;
	const draft = useDraft(),
		at = where || servers.items[0]?.id || "";
	const act = useAction(async () => {
		const result = await draft.run(prompt ? "create_prompt" : "create_resource", {
			server_id: at,
			name,
			description,
			...(byCode ? {python_code: text} : {text}),
			...(prompt ? {arguments: args} : family ? {uri_template: uri} : {uri}),
			...(mime && !prompt ? {mime_type: mime} : {}),
		});
		if (result !== undefined) {
			doneThere(p.drafted);
			go(link("tools", made(result).id ?? "", "edit"));
		}
	});

	return (
		<Page title={prompt ? p.newPrompt : p.newResource} back={[link("prompts"), p.title]} intro={t.draftWhy}>
			<ProblemNote problem={servers.problem} again={servers.reload} />
			{!servers.loading && !servers.problem && servers.items.length === 0 ? <NoServer /> : null}
			<Part title={t.content}>
				<Form label={t.makeDraft} busy={act.busy} problem={act.problem} action={act.run} disabled={!at}>
					<Choice label={t.server} value={at} onValue={setWhere} options={servers.items.map(s => [s.id, s.name] as const)} />
					<Field label={t.name} hint={t.nameHint} value={name} onValue={setName} required maxLength={64} autofocus />
					<Area label={t.description} value={description} onValue={setDescription} rows={2} maxLength={2000} />
					{prompt ? (
						<Arguments list={args} onList={setArgs} />
					) : (
						<>
							<Field label={t.uri} hint={p.uriHint} value={uri} onValue={setUri} required maxLength={1024} />
							<Field label={p.mime} hint={p.mimeHint} value={mime} onValue={setMime} maxLength={255} />
						</>
					)}
					<Tick
						label={p.byCode}
						hint={family ? p.familyNeedsCode : p.byCodeHint}
						value={byCode}
						onValue={setCode}
						disabled={family}
					/>
					<Area
						label={byCode ? t.code : t.text}
						hint={byCode ? p.codeHint : prompt ? p.textHint : undefined}
						code
						rows={14}
						value={text}
						onValue={setText}
						required
					/>
					{draft.bad ? <ResultView text={draft.bad.result} /> : null}
				</Form>
			</Part>
		</Page>
	);
}

/** Draws the editor of a version's text or code and description. */
export function ObjectEditor({v, onDone}: {v: Schemas["Version"]; onDone: () => void}) {
	const prompt = v.object === "prompt",
		byCode = v.python_code !== null && v.python_code !== undefined;
	const before = byCode ? (v.python_code ?? "") : (v.text ?? ""),
		[text, setText] = useState(before),
		[description, setDescription] = useState(v.description ?? "");
	const draft = useDraft(),
		changed = text !== before,
		redescribed = description !== (v.description ?? "");
	const act = useAction(async () => {
		const result = await draft.run(
			prompt ? "update_prompt" : "update_resource",
			{
				[prompt ? "prompt_id" : "resource_id"]: v.tool_id,
				...(changed ? (byCode ? {python_code: text} : {text}) : {}),
				...(redescribed ? {description} : {}),
			},
			v,
		);
		if (result !== undefined) {
			done(p.drafted);
			onDone();
		}
	});

	return (
		<Part title={t.editing(v.version)}>
			<Form label={t.makeDraft} busy={act.busy} problem={act.problem} action={act.run} disabled={!changed && !redescribed}>
				<Area label={t.description} value={description} onValue={setDescription} rows={2} maxLength={2000} />
				{v.blob ? (
					<p class="quiet">{p.blobStays}</p>
				) : (
					<Area
						label={byCode ? t.code : t.text}
						hint={byCode ? p.codeHint : prompt ? p.textHint : undefined}
						code
						rows={18}
						value={text}
						onValue={setText}
						required
					/>
				)}
				{draft.bad ? <ResultView text={draft.bad.result} /> : null}
			</Form>
		</Part>
	);
}
