/* Parts of the editors that most kinds have: rights, limits, annotations, schemas and the rest of a version. */
import type {ComponentChildren} from "preact";
import {useEffect, useState} from "preact/hooks";
import {usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {link} from "../../route";
import {Choice, Field, Tick} from "../../ui/form";
import {jsonMembers} from "../../ui/json";
import {Names} from "../../ui/names";
import {ProblemNote} from "../../ui/notice";
import {Text} from "../../ui/text";
import {type Change, fieldFits, type Fields, memberSet, type ObjectKind} from "./fields";
import {JsonArea, jsonWrong, Line} from "./parts";

const t = en.edit;
/* As admind/tooldef/schemas/shared.json. */
const SECRETS_MAX = 64;
const MODULES_MAX = 32;
const HOSTS_MAX = 64;
const CAPABILITIES = ["elicitation", "elicitation.url", "sampling", "sampling.tools", "roots", "tasks"];
const TASKS = ["", "forbidden", "optional", "required", "after_questions"];
const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
const TTL_MAX = 31_536_000_000;
/* A server's limit alone: code that is too long never becomes a version. */
const LIMITS = Object.entries(en.limits).filter(([n]) => n !== "code_bytes");

interface Props {
	object: ObjectKind;
	f: Fields;
	/** The form of the version before: what is there already and can't be taken away. */
	before: Fields;
	onChange: Change;
}

/* Draws a part that can be folded. It is open at first where the version has something there, so that nothing of it is
 * overlooked, and opens where a field in it stops the form: the browser shows no fault of a field that it can't show. */
function More({title, open, children}: {title: string; open: boolean; children: ComponentChildren}) {
	const [first] = useState(open);
	return (
		<details class="more" open={first} onInvalidCapture={e => (e.currentTarget.open = true)}>
			<summary>{title}</summary>
			{children}
		</details>
	);
}

/** Draws what a version asks for: secrets, modules, hosts, and what a client must be able to do. `server` is its name,
 * `serverId` its id, `tool` the exposed name of what exists. */
export function Rights({object, f, onChange, server, serverId, tool}: Props & {server: string; serverId: string; tool?: string}) {
	const fits = (n: keyof Fields) => fieldFits(object, f.kind, n);
	const secrets = useRead(server && fits("secrets") ? "/api/servers/{name}/secrets" : null, {path: {name: server}}),
		hosts = usePages("/api/network", {query: {server: serverId, state: "active", limit: 200}}),
		modules = usePages("/api/modules", {query: {state: "available", limit: 200}});
	useEffect(() => modules.more?.(), [modules.items.length, modules.more === undefined]);
	const granted = tool === undefined ? [] : modules.items.filter(m => m.tools.includes(tool));

	return (
		<More title={t.rights} open={f.secrets.length + f.modules.length + f.requires.length + f.client_capabilities.length > 0}>
			{fits("secrets") ? (
				<>
					<ProblemNote problem={secrets.problem} again={secrets.reload} />
					<Names
						label={t.secrets}
						hint={t.secretsHint}
						known={(secrets.data?.items ?? []).map(s => [s.key, s.has_value ? "" : t.noValue] as const)}
						value={f.secrets}
						onValue={v => onChange({secrets: v})}
						other={t.secretOther}
						max={SECRETS_MAX}
					/>
				</>
			) : null}
			{fits("modules") ? (
				<>
					<ProblemNote problem={modules.problem} again={modules.reload} />
					<Names
						label={t.modules}
						hint={tool === undefined ? t.modulesLater : t.modulesHint}
						known={granted.map(m => [`${m.name}==${m.version}`, ""] as const)}
						value={f.modules}
						onValue={v => onChange({modules: v})}
						other={tool === undefined ? undefined : t.moduleOther}
						max={MODULES_MAX}
					/>
				</>
			) : null}
			{fits("requires") ? (
				<>
					<ProblemNote problem={hosts.problem} again={hosts.reload} />
					<Names
						label={t.hosts}
						hint={t.hostsHint}
						known={hosts.items.map(h => [hostOf(h.host, h.port, h.proto), t.granted] as const)}
						value={f.requires}
						onValue={v => onChange({requires: v})}
						other={t.hostOther}
						max={HOSTS_MAX}
					/>
					<p>
						<a href={link("servers", serverId)}>{t.askHost}</a>
					</p>
				</>
			) : (
				<p class="quiet">{f.kind === "http" ? t.httpFollows : null}</p>
			)}
			{f.kind === "command" ? <p class="quiet">{t.commandRights}</p> : null}
			<Names
				label={t.capabilities}
				hint={t.capabilitiesHint}
				known={CAPABILITIES.map(c => [c, ""] as const)}
				value={f.client_capabilities}
				onValue={v => onChange({client_capabilities: v})}
				max={CAPABILITIES.length}
			/>
		</More>
	);
}

/* Returns a grant as a version names it. */
function hostOf(host: string, port: number | null | undefined, proto: string | null | undefined): string {
	const bare = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
	return `${proto === "udp" ? "udp:" : ""}${bare}${port == null ? "" : `:${port}`}`;
}

/** Draws how a tool is called: confirmed or not, as a task, and what its annotations say. */
export function Calling({object, f, onChange}: Props) {
	return (
		<More title={t.calling} open={f.confirm || f.task !== "" || f.annotations !== ""}>
			{object === "tool" ? (
				<>
					<Tick
						label={t.confirm}
						hint={f.kind === "http" ? t.confirmHttp : t.confirmHint}
						value={f.confirm}
						onValue={confirm => onChange({confirm})}
					/>
					<Choice
						label={t.task}
						hint={t.taskHint}
						value={f.task}
						onValue={task => onChange({task})}
						options={TASKS.map(n => [n, t.tasks[n] ?? n] as const)}
					/>
				</>
			) : null}
			{object === "tool" ? <ToolHints f={f} onChange={onChange} /> : object === "prompt" ? null : <ResourceHints f={f} onChange={onChange} />}
		</More>
	);
}

/* Returns a member's JSON text of an object that may be half written, "" where there is none. */
function part(text: string, name: string): string {
	return jsonWrong(text, "object") === undefined && text.trim() !== "" ? (jsonMembers(text).get(name) ?? "") : "";
}

function useHints(f: Fields, onChange: Change) {
	const set = (name: string, value: string) => {
		/* Hints that were there can't be taken away, so the last one leaves an object without any. */
		const made = memberSet(f.annotations, name, value === "" ? undefined : value);
		onChange({annotations: made === "" && f.annotations !== "" ? "{}" : made});
	};
	return {broken: jsonWrong(f.annotations, "object") !== undefined, get: (name: string) => part(f.annotations, name), set};
}

function word(json: string): string {
	return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

function ToolHints({f, onChange}: {f: Fields; onChange: Change}) {
	const h = useHints(f, onChange);

	return (
		<fieldset>
			<legend>{t.annotations}</legend>
			<p class="hint">{t.annotationsHint}</p>
			{h.broken ? null : (
				<div class="columns">
					{HINTS.map(n => (
						<Choice
							key={n}
							label={t.hints[n] ?? n}
							value={h.get(n)}
							onValue={v => h.set(n, v)}
							options={[
								["", t.notSaid],
								["true", t.yes],
								["false", t.no],
							]}
						/>
					))}
					<Line
						label={t.annotationTitle}
						value={word(h.get("title"))}
						onValue={v => h.set("title", v === "" ? "" : JSON.stringify(v))}
						maxLength={200}
					/>
				</div>
			)}
		</fieldset>
	);
}

function ResourceHints({f, onChange}: {f: Fields; onChange: Change}) {
	const h = useHints(f, onChange),
		said = h.get("audience"),
		audience = said === "" ? [] : (JSON.parse(said) as string[]);

	return (
		<fieldset>
			<legend>{t.annotations}</legend>
			<p class="hint">{t.annotationsHint}</p>
			{(["user", "assistant"] as const).map(who => (
				<Tick
					key={who}
					label={t.audience[who]}
					value={audience.includes(who)}
					onValue={on => {
						const now = [...audience.filter(a => a !== who), ...(on ? [who] : [])];
						h.set("audience", now.length === 0 ? "" : JSON.stringify(now));
					}}
				/>
			))}
			<Field
				label={t.priority}
				hint={t.priorityHint}
				value={h.get("priority")}
				pattern="0|1|1\.0+|0\.[0-9]+"
				onValue={v => /^[0-9.]*$/.test(v) && h.set("priority", v)}
			/>
			<Line
				label={t.lastModified}
				value={word(h.get("lastModified"))}
				onValue={v => h.set("lastModified", v === "" ? "" : JSON.stringify(v))}
				maxLength={40}
			/>
		</fieldset>
	);
}

/** Draws the limits of one call. */
export function Limits({object, f, before, onChange}: Props) {
	if (!fieldFits(object, f.kind, "limits")) return null;
	return (
		<More title={t.limits} open={Object.keys(f.limits).length > 0}>
			<p class="hint">{t.limitsHint}</p>
			<div class="columns">
				{LIMITS.map(([n, [label, range]]) => {
					const [min, max] = range.split(" to ").map(Number);
					return (
						<Field
							key={n}
							type="number"
							label={label}
							hint={before.limits[n] === undefined ? range : `${range}. ${t.stays}`}
							min={min}
							max={max}
							required={before.limits[n] !== undefined}
							value={f.limits[n] ?? ""}
							onValue={v => onChange({limits: {...f.limits, [n]: v}})}
						/>
					);
				})}
			</div>
		</More>
	);
}

/** Draws schemas, icons and the rest that is JSON. */
export function Schemas({object, f, before, onChange, onDerive}: Props & {onDerive?: () => void}) {
	const fits = (n: keyof Fields) => fieldFits(object, f.kind, n),
		any = f.input_schema !== before.input_schema;

	return (
		<More title={t.schemas} open={f.output_schema !== ""}>
			{fits("input_schema") ? (
				<>
					<JsonArea
						label={t.inputSchema}
						hint={f.kind === "command" ? t.inputSchemaCommand : t.inputSchemaHint}
						rows={8}
						value={f.input_schema}
						onValue={v => onChange({input_schema: v})}
					/>
					{onDerive && before.input_schema !== "" && !any ? (
						<p>
							<button type="button" class="small" onClick={onDerive}>
								{t.derive}
							</button>
						</p>
					) : null}
				</>
			) : null}
			{object === "tool" && !fits("input_schema") ? <p class="quiet">{t.httpFollows}</p> : null}
			{fits("output_schema") ? (
				<JsonArea
					label={t.outputSchema}
					hint={before.output_schema === "" ? t.outputSchemaHint : `${t.outputSchemaHint} ${t.stays}`}
					rows={6}
					value={f.output_schema}
					onValue={v => onChange({output_schema: v})}
					required={before.output_schema !== ""}
				/>
			) : null}
			<JsonArea
				form="array"
				label={t.icons}
				hint={t.iconsHint}
				rows={3}
				value={f.icons}
				onValue={v => onChange({icons: v})}
				required={before.icons !== ""}
			/>
			<JsonArea
				label={t.meta}
				hint={t.metaHint}
				rows={3}
				value={f.meta}
				onValue={v => onChange({meta: v})}
				required={before.meta !== ""}
			/>
		</More>
	);
}

/** Draws what a resource says of itself beside its content. */
export function ResourceFacts({object, f, before, onChange}: Props) {
	return (
		<>
			<Line
				label={object === "template" ? t.uriTemplate : en.tools.uri}
				hint={en.prompts.uriHint}
				value={f.uri}
				onValue={uri => onChange({uri})}
				required
				maxLength={1024}
			/>
			<Line
				label={en.prompts.mime}
				hint={en.prompts.mimeHint}
				value={f.mime_type}
				onValue={v => onChange({mime_type: v})}
				maxLength={255}
			/>
			<Field
				type="number"
				label={t.ttl}
				hint={before.ttl_ms === "" ? t.ttlHint : `${t.ttlHint} ${t.stays}`}
				min={0}
				max={TTL_MAX}
				required={before.ttl_ms !== ""}
				value={f.ttl_ms}
				onValue={v => onChange({ttl_ms: v})}
			/>
		</>
	);
}

/** Says the name of what a draft changes when it gets another one. */
export function Renamed({from, to}: {from: string; to: string}) {
	return from === to ? null : (
		<p class="quiet">
			{t.renamed} <Text text={from} strict />
		</p>
	);
}
