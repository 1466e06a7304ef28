/*
 * Arguments by a JSON Schema: as a table to read, and as a form to fill. Where the
 * schema's own text is given, its values show as they were written, and what is
 * typed as JSON stays the text that was typed.
 */
import {useState} from "preact/hooks";
import {exactText} from "../api/exact";
import {en} from "../en";
import {Area, Choice, Field, Tick} from "./form";
import {isObject, jsonElements, jsonMembers, jsonObject, jsonPretty, jsonValue} from "./json";
import {Table} from "./table";
import {show, Text} from "./text";

export type Schema = {[member: string]: unknown};
export type Values = {[member: string]: unknown};
const t = en.schema;

interface Argument {
	name: string;
	schema: Schema;
	/** Its members as they were written. */
	texts: Map<string, string>;
	required: boolean;
}

/* The members of a JSON text; none where it is no object, or names one twice. */
function membersOf(text: string | undefined): Map<string, string> {
	try {
		return text !== undefined && isObject(JSON.parse(text)) ? jsonMembers(text) : new Map();
	} catch {
		return new Map();
	}
}

/* A schema is another's text: its members are read as own properties, so that names like `constructor` find nothing else. */
function argumentsOf(schema: unknown, text = JSON.stringify(schema)): Argument[] {
	const own = isObject(schema) && Object.hasOwn(schema, "properties") ? schema.properties : undefined;
	const required = isObject(schema) && Array.isArray(schema.required) ? schema.required : [];
	if (!isObject(own)) return [];
	const texts = membersOf(membersOf(text).get("properties"));
	return Object.entries(own).map(([name, s]) => ({
		name,
		schema: isObject(s) ? s : {},
		texts: membersOf(texts.get(name)),
		required: required.includes(name),
	}));
}

/* Lists the values of `enum`, each as its text; undefined where it has none. */
function choicesOf({schema, texts}: Argument): string[] | undefined {
	if (!Array.isArray(schema.enum)) return undefined;
	return jsonElements(texts.get("enum") ?? JSON.stringify(schema.enum));
}

function typeOf(a: Argument): string {
	const choices = choicesOf(a),
		s = a.schema;
	if (choices !== undefined) return choices.join(", ");
	return typeof s.type === "string" ? s.type : Array.isArray(s.type) ? s.type.join(", ") : t.any;
}

/** Draws the arguments of a schema as a table. */
export function SchemaTable({schema, text, label = t.title}: {schema: unknown; text?: string; label?: string}) {
	const rows = argumentsOf(schema, text);
	return rows.length === 0 ? (
		<p class="quiet">{t.none}</p>
	) : (
		<Table
			label={label}
			rows={rows}
			keyOf={r => r.name}
			columns={[
				{
					name: t.name,
					cell: r => (
						<>
							<code>
								<Text text={r.name} strict />
							</code>
							{r.required ? (
								<>
									{" "}
									<span class="quiet">{t.required}</span>
								</>
							) : null}
						</>
					),
				},
				{name: t.type, cell: r => <Text text={typeOf(r)} max={200} strict />},
				{
					name: t.default,
					cell: r =>
						r.texts.has("default") ? (
							<code>
								<Text text={r.texts.get("default")} max={200} strict />
							</code>
						) : null,
				},
				{
					name: t.description,
					kind: "wide",
					cell: r => (typeof r.schema.description === "string" ? <Text text={r.schema.description} max={1000} /> : null),
				},
			]}
		/>
	);
}

/* Text of a field becomes a value of the type; what is no such value stays text, and the server says so at its name. */
function valueOf(s: Schema, text: string): unknown {
	if (s.type === "string") return text;
	try {
		return jsonValue(text);
	} catch {
		return text;
	}
}

function textOf(s: Schema, value: unknown): string {
	return value === undefined ? "" : s.type === "string" && typeof value === "string" ? value : exactText(value);
}

function One({a, values, set}: {a: Argument; values: Values; set: (value: unknown) => void}) {
	/* What stands in the field: half of a JSON text is no value yet, and must not change under the fingers. */
	const [typed, setTyped] = useState<{text: string; value: unknown}>();
	const label = show(a.name, true),
		value = Object.hasOwn(values, a.name) ? values[a.name] : undefined;
	const hint = typeof a.schema.description === "string" ? <Text text={a.schema.description} max={300} /> : undefined;

	if (a.schema.type === "boolean")
		return (
			<Tick
				label={label}
				hint={typeof a.schema.description === "string" ? show(a.schema.description) : undefined}
				value={value === true}
				onValue={set}
			/>
		);
	const words = choicesOf(a);
	if (words !== undefined)
		return (
			<Choice
				label={label}
				hint={hint}
				required={a.required}
				value={value === undefined ? "" : exactText(value)}
				onValue={v => set(v === "" ? undefined : jsonValue(v))}
				options={[["", ""] as const, ...words.map(w => [w, show(w)] as const)]}
			/>
		);
	const plain = a.schema.type === "string" || a.schema.type === "integer" || a.schema.type === "number";
	const onValue = (text: string) => {
		const next = text === "" && !(a.required && a.schema.type === "string") ? undefined : valueOf(a.schema, text);
		setTyped({text, value: next});
		set(next);
	};
	const shown = typed !== undefined && typed.value === value ? typed.text : textOf(a.schema, value);
	return plain ? (
		<Field
			label={label}
			hint={hint}
			required={a.required && a.schema.type !== "string"}
			value={shown}
			onValue={onValue}
			placeholder={a.texts.has("default") ? show(a.texts.get("default")!).slice(0, 80) : undefined}
		/>
	) : (
		<Area code label={label} hint={hint ?? t.asJson} rows={3} value={shown} onValue={onValue} />
	);
}

/** Draws a form for the arguments of a schema, whose text is `source`. The values are an object of JSON; they can be edited as
 * text, too. A value is an Exact where the browser would round it: exactText() writes all. */
export function SchemaForm({
	schema,
	source,
	values,
	onValues,
}: {
	schema: unknown;
	source?: string;
	values: Values;
	onValues: (values: Values) => void;
}) {
	const rows = argumentsOf(schema, source);
	const [text, setText] = useState<string>(),
		[bad, setBad] = useState(false);

	if (text !== undefined || rows.length === 0)
		return (
			<>
				<Area
					code
					label={t.json}
					rows={8}
					value={text ?? jsonPretty(exactText(values))}
					error={bad ? t.notJson : undefined}
					onValue={v => {
						setText(v);
						try {
							onValues(jsonObject(v));
							setBad(false);
						} catch {
							setBad(true);
						}
					}}
				/>
				{rows.length > 0 ? (
					<p>
						<button type="button" class="small" onClick={() => setText(undefined)}>
							{t.fields}
						</button>
					</p>
				) : null}
			</>
		);
	return (
		<>
			{rows.map(a => (
				<One
					key={a.name}
					a={a}
					values={values}
					set={value => {
						/* Entries, not assignment: a member named __proto__ is a member like any other. */
						const rest = Object.entries(values).filter(([name]) => name !== a.name);
						onValues(Object.fromEntries(value === undefined ? rest : [...rest, [a.name, value]]));
					}}
				/>
			))}
			<p>
				<button type="button" class="small" onClick={() => setText(jsonPretty(exactText(values)))}>
					{t.json}
				</button>
			</p>
		</>
	);
}
