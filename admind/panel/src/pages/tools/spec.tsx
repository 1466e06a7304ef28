/*
 * The specification of a tool without code: the program and its arguments
 * (docs/TOOLS.md, "Commands"), or one declared request ("REST calls"). The form
 * changes members of the JSON text, so what has no field here stays as it was,
 * and the text itself can be edited, too.
 */
import {useState} from "preact/hooks";
import {en} from "../../en";
import {Choice, Tick} from "../../ui/form";
import {jsonMembers} from "../../ui/json";
import {type Change, type Fields, memberSet, objectOf} from "./fields";
import {allTexts, Held, JsonArea, jsonWrong, Line, Lines, Numbers, Pairs, Texts, twice, useRows} from "./parts";

const t = en.edit;
/* As the schema of `spec` (admind/tooldef/schemas/shared.json) and docs/TOOLS.md. */
const ARGV_MAX = 256;
const ENV_MAX = 64;
const PAIRS_MAX = 64;
const PARAMETERS_MAX = 64;
const METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
const PLACES = ["path", "query", "header", "cookie", "body"];
const BODIES = ["", "json", "form", "whole", "text"];
const ANSWERS = ["", "auto", "json", "text", "status"];

/* The members of a specification, and a function that sets the text of one. */
interface Spec {
	get: (name: string) => string;
	set: (name: string, value: string | undefined) => void;
}

/* Returns a JSON text's string; another value stays the JSON that it is. */
function textOf(json: string): string {
	return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

function texted(value: string): string | undefined {
	return value === "" ? undefined : JSON.stringify(value);
}

/** Draws the specification as a form, or as its text. */
export function SpecForm({f, onChange}: {f: Fields; onChange: Change}) {
	const [raw, setRaw] = useState(false);
	const broken = jsonWrong(f.spec, "object") !== undefined;

	if (raw || broken)
		return (
			<>
				<JsonArea
					label={t.spec}
					hint={f.kind === "http" ? t.httpHint : t.commandHint}
					rows={18}
					value={f.spec}
					onValue={spec => onChange({spec})}
					required
				/>
				{broken ? null : (
					<p>
						<button type="button" class="small" onClick={() => setRaw(false)}>
							{en.schema.fields}
						</button>
					</p>
				)}
			</>
		);
	const members = jsonMembers(f.spec.trim() === "" ? "{}" : f.spec);
	const spec: Spec = {
		get: name => members.get(name) ?? "",
		set: (name, value) => onChange({spec: memberSet(f.spec, name, value === "" ? undefined : value)}),
	};
	return (
		<>
			{f.kind === "http" ? <Request spec={spec} /> : <Command spec={spec} />}
			<p>
				<button type="button" class="small" onClick={() => setRaw(true)}>
					{t.specRaw}
				</button>
			</p>
		</>
	);
}

function Command({spec}: {spec: Spec}) {
	return (
		<>
			<Texts label={t.argv} hint={t.argvHint} text={spec.get("argv")} onText={v => spec.set("argv", v === "" ? "[]" : v)} max={ARGV_MAX} />
			<Line label={t.stdin} hint={t.stdinHint} value={textOf(spec.get("stdin"))} onValue={v => spec.set("stdin", texted(v))} />
			<Members label={t.env} hint={t.envHint} spec={spec} name="env" max={ENV_MAX} />
			<Numbers label={t.okCodes} hint={t.okCodesHint} text={spec.get("ok_exit_codes")} onText={v => spec.set("ok_exit_codes", v)} />
		</>
	);
}

/* Draws a member that is an object of texts; one with other values as JSON. */
function Members({label, hint, spec, name, max}: {label: string; hint?: string; spec: Spec; name: string; max: number}) {
	const text = spec.get(name);
	return allTexts(text) ? (
		<Pairs label={label} hint={hint} text={text} onText={v => spec.set(name, v)} max={max} />
	) : (
		<Held label={label} hint={hint} text={text} onText={v => spec.set(name, v)} />
	);
}

function Request({spec}: {spec: Spec}) {
	const method = textOf(spec.get("method"));
	return (
		<>
			<div class="columns">
				<Choice
					label={t.method}
					value={method}
					onValue={v => spec.set("method", texted(v))}
					options={["", ...(METHODS.includes(method) || method === "" ? [] : [method]), ...METHODS].map(m => [m, m] as const)}
					required
				/>
				<Line label={t.url} hint={t.urlHint} value={textOf(spec.get("url"))} onValue={v => spec.set("url", texted(v))} required />
			</div>
			<Parameters text={spec.get("parameters")} onText={v => spec.set("parameters", v)} />
			<Members label={t.query} hint={t.fixedHint} spec={spec} name="query" max={PAIRS_MAX} />
			<Members label={t.headers} hint={t.fixedHint} spec={spec} name="headers" max={PAIRS_MAX} />
			<Choice
				label={t.body}
				hint={t.bodyHint}
				value={textOf(spec.get("body"))}
				onValue={v => spec.set("body", texted(v))}
				options={BODIES.map(b => [b, t.bodies[b] ?? b] as const)}
			/>
			<Answer text={spec.get("response")} onText={v => spec.set("response", v)} />
			<div class="columns">
				<Count label={t.redirects} spec={spec} name="redirects" max={10} />
				<Count label={t.requestTime} spec={spec} name="timeout_ms" />
				<Count label={t.answerBytes} spec={spec} name="max_bytes" />
			</div>
			<Texts
				label={t.redirectHosts}
				hint={t.redirectHostsHint}
				text={spec.get("redirect_hosts")}
				onText={v => spec.set("redirect_hosts", v)}
				max={PAIRS_MAX}
			/>
		</>
	);
}

function Count({label, spec, name, max}: {label: string; spec: Spec; name: string; max?: number}) {
	return (
		<Line
			type="number"
			label={label}
			value={spec.get(name)}
			onValue={v => /^\d*$/.test(v) && spec.set(name, v.replace(/^0+(?=\d)/, ""))}
			min={0}
			max={max}
		/>
	);
}

/* Draws `response`: how the answer becomes the result. */
function Answer({text, onText}: {text: string; onText: (text: string) => void}) {
	if (jsonWrong(text, "object") !== undefined) return <Held label={t.answer} text={text} onText={onText} />;
	const members = jsonMembers(text === "" ? "{}" : text);
	const part: Spec = {
		get: name => members.get(name) ?? "",
		set: (name, value) => onText(memberSet(text, name, value === "" ? undefined : value)),
	};
	return (
		<fieldset>
			<legend>{t.answer}</legend>
			<div class="columns">
				<Choice
					label={t.answerAs}
					value={textOf(part.get("as"))}
					onValue={v => part.set("as", texted(v))}
					options={ANSWERS.map(a => [a, t.answers[a] ?? a] as const)}
				/>
				<Line label={t.pointer} hint={t.pointerHint} value={textOf(part.get("pointer"))} onValue={v => part.set("pointer", texted(v))} />
				<Numbers label={t.success} hint={t.successHint} text={part.get("success")} onText={v => part.set("success", v)} />
			</div>
			<Texts label={t.answerHeaders} text={part.get("headers")} onText={v => part.set("headers", v)} max={PAIRS_MAX} />
		</fieldset>
	);
}

interface Parameter {
	name: string;
	text: string;
}

/* Draws the parameters of a request: the tool's arguments, each with its place. */
function Parameters(p: {text: string; onText: (text: string) => void}) {
	return jsonWrong(p.text, "object") === undefined ? <ParameterList {...p} /> : <Held label={t.parameters} {...p} />;
}

function ParameterList({text, onText}: {text: string; onText: (text: string) => void}) {
	const [rows, set] = useRows<Parameter>(
		text,
		onText,
		s => [...jsonMembers(s === "" ? "{}" : s)].map(([name, v]) => ({name, text: v})),
		list =>
			list.some((r, i) => r.name === "" || twice(list.map(x => x.name), i))
				? undefined
				: list.length === 0
					? ""
					: objectOf(list.map(r => [r.name, r.text] as const)),
	);
	const names = rows.map(r => r.name),
		one = (i: number, change: Partial<Parameter>) => set(rows.map((r, k) => (k === i ? {...r, ...change} : r)));

	return (
		<fieldset>
			<legend>{t.parameters}</legend>
			<p class="hint">{t.parametersHint}</p>
			{rows.map((r, i) => (
				<ParameterRow
					key={i}
					no={i + 1}
					row={r}
					doubled={twice(names, i)}
					onRow={change => one(i, change)}
					onRemove={() => set(rows.filter((_, k) => k !== i))}
				/>
			))}
			{rows.length < PARAMETERS_MAX ? (
				<p>
					<button type="button" onClick={() => set([...rows, {name: "", text: '{"in":"query"}'}])}>
						{t.addTo(t.parameters)}
					</button>
				</p>
			) : null}
		</fieldset>
	);
}

function ParameterRow({
	no,
	row,
	doubled,
	onRow,
	onRemove,
}: {
	no: number;
	row: Parameter;
	doubled: boolean;
	onRow: (change: Partial<Parameter>) => void;
	onRemove: () => void;
}) {
	const wrong = doubled ? t.twice : undefined,
		odd = jsonWrong(row.text, "object") !== undefined;
	const members = odd ? new Map<string, string>() : jsonMembers(row.text);
	const get = (name: string) => members.get(name) ?? "",
		set = (name: string, value: string | undefined) => onRow({text: memberSet(row.text, name, value === "" ? undefined : value) || "{}"});
	const at = textOf(get("in"));

	return (
		<div class="parameter" role="group" aria-label={t.rowOf(t.parameters, no)}>
			<div class="filters">
				<Line label={t.parameterName(no)} value={row.name} onValue={name => onRow({name})} required error={wrong} refuse={wrong} />
				{odd ? null : (
					<>
						<Choice
							label={t.parameterPlace(no)}
							value={at}
							onValue={v => set("in", JSON.stringify(v))}
							options={(PLACES.includes(at) ? PLACES : [at, ...PLACES]).map(p => [p, p] as const)}
						/>
						<Line label={t.parameterWire(no)} value={textOf(get("name"))} onValue={v => set("name", texted(v))} />
						<Tick
							label={t.parameterNeeded(no)}
							value={get("required") === "true" || (get("required") === "" && at === "path")}
							onValue={v => set("required", v === (at === "path") ? undefined : String(v))}
						/>
					</>
				)}
				<button type="button" onClick={onRemove}>
					{t.removeOf(t.parameters, no)}
				</button>
			</div>
			{odd ? (
				<Held label={t.parameterWhole(no)} text={row.text} onText={text => onRow({text})} />
			) : (
				<>
					<Lines
						label={t.parameterWhat(no)}
						rows={1}
						value={textOf(get("description"))}
						onValue={v => set("description", texted(v))}
					/>
					<Held label={t.parameterSchema(no)} hint={t.parameterSchemaHint} rows={2} text={get("schema")} onText={v => set("schema", v)} />
				</>
			)}
		</div>
	);
}
