/* Arguments by a JSON Schema: as a table to read, and as a form to fill. */
import {useState} from "preact/hooks";
import {en} from "../en";
import {Area, Choice, Field, Tick} from "./form";
import {Table} from "./table";
import {show, Text} from "./text";

export type Schema = {[member: string]: unknown};
export type Values = {[member: string]: unknown};
const t = en.schema;

function isObject(v: unknown): v is Schema {
	return typeof v === "object" && v !== null && !Array.isArray(v);
}

interface Argument {
	name: string;
	schema: Schema;
	required: boolean;
}

/* A schema is another's text: its members are read as own properties, so that names like `constructor` find nothing else. */
function argumentsOf(schema: unknown): Argument[] {
	const own = isObject(schema) && Object.hasOwn(schema, "properties") ? schema.properties : undefined;
	const required = isObject(schema) && Array.isArray(schema.required) ? schema.required : [];
	return isObject(own)
		? Object.entries(own).map(([name, s]) => ({name, schema: isObject(s) ? s : {}, required: required.includes(name)}))
		: [];
}

function typeOf(s: Schema): string {
	if (Array.isArray(s.enum)) return s.enum.map(v => JSON.stringify(v)).join(", ");
	return typeof s.type === "string" ? s.type : Array.isArray(s.type) ? s.type.join(", ") : t.any;
}

/** Draws the arguments of a schema as a table. */
export function SchemaTable({schema, label = t.title}: {schema: unknown; label?: string}) {
	const rows = argumentsOf(schema);
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
				{name: t.type, cell: r => <Text text={typeOf(r.schema)} max={200} strict />},
				{
					name: t.default,
					cell: r =>
						Object.hasOwn(r.schema, "default") ? (
							<code>
								<Text text={JSON.stringify(r.schema.default)} max={200} strict />
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
		return JSON.parse(text);
	} catch {
		return text;
	}
}

function textOf(s: Schema, value: unknown): string {
	return value === undefined ? "" : s.type === "string" && typeof value === "string" ? value : JSON.stringify(value);
}

function One({a, values, set}: {a: Argument; values: Values; set: (value: unknown) => void}) {
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
	if (Array.isArray(a.schema.enum)) {
		const words = a.schema.enum.map(v => JSON.stringify(v));
		return (
			<Choice
				label={label}
				hint={hint}
				required={a.required}
				value={value === undefined ? "" : JSON.stringify(value)}
				onValue={v => set(v === "" ? undefined : JSON.parse(v))}
				options={[["", ""] as const, ...words.map(w => [w, show(w)] as const)]}
			/>
		);
	}
	const plain = a.schema.type === "string" || a.schema.type === "integer" || a.schema.type === "number";
	const onValue = (text: string) => set(text === "" && !(a.required && a.schema.type === "string") ? undefined : valueOf(a.schema, text));
	return plain ? (
		<Field
			label={label}
			hint={hint}
			required={a.required && a.schema.type !== "string"}
			value={textOf(a.schema, value)}
			onValue={onValue}
			placeholder={Object.hasOwn(a.schema, "default") ? show(JSON.stringify(a.schema.default)).slice(0, 80) : undefined}
		/>
	) : (
		<Area code label={label} hint={hint ?? t.asJson} rows={3} value={textOf(a.schema, value)} onValue={onValue} />
	);
}

/** Draws a form for the arguments of a schema. The values are an object of JSON; they can be edited as text, too. */
export function SchemaForm({schema, values, onValues}: {schema: unknown; values: Values; onValues: (values: Values) => void}) {
	const rows = argumentsOf(schema);
	const [text, setText] = useState<string>(),
		[bad, setBad] = useState(false);

	if (text !== undefined || rows.length === 0)
		return (
			<>
				<Area
					code
					label={t.json}
					rows={8}
					value={text ?? JSON.stringify(values, null, 2)}
					error={bad ? t.notJson : undefined}
					onValue={v => {
						setText(v);
						try {
							const parsed: unknown = JSON.parse(v);
							setBad(!isObject(parsed));
							if (isObject(parsed)) onValues(parsed);
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
				<button type="button" class="small" onClick={() => setText(JSON.stringify(values, null, 2))}>
					{t.json}
				</button>
			</p>
		</>
	);
}
