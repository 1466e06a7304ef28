/*
 * The members of a draft of a tool, prompt or resource: those that the
 * management tools' schemas have (admind/tooldef/schemas), as texts of a form.
 * tests/panel/editing compares the two. JSON stays the text that it was.
 */
import type {Schemas} from "../../api/client";
import {Exact} from "../../api/exact";
import {jsonMembers, jsonPretty} from "../../ui/json";

export type Version = Schemas["Version"];
export type ObjectKind = Version["object"];
export type Kind = Version["kind"];

/** A form's content. JSON members are texts; "" means that the version has none. */
export interface Fields {
	name: string;
	title: string;
	description: string;
	kind: Kind;
	python_code: string;
	text: string;
	blob: string;
	executable: string;
	spec: string;
	uri: string;
	mime_type: string;
	ttl_ms: string;
	arguments: string;
	input_schema: string;
	output_schema: string;
	annotations: string;
	icons: string;
	meta: string;
	secrets: string[];
	modules: string[];
	requires: string[];
	client_capabilities: string[];
	task: string;
	confirm: boolean;
	limits: Record<string, string>;
}
export type FieldName = keyof Fields;
/** Changes some members of a form. */
export type Change = (some: Partial<Fields>) => void;

const JSONS = ["spec", "arguments", "input_schema", "output_schema", "annotations", "icons", "meta"] as const;
const LISTS = ["secrets", "modules", "requires", "client_capabilities"] as const;
const TEXTS = ["title", "description", "python_code", "text", "blob", "executable", "uri", "mime_type", "task"] as const;
/** The members that hold JSON. */
export const JSON_FIELDS: ReadonlySet<string> = new Set(JSONS);
/** Members that a draft can change and never take away: their schema has no value that means "none". */
export const STAYS: ReadonlySet<string> = new Set(["output_schema", "ttl_ms", "limits", "task"]);

/** Returns the form of something that is not there yet. */
export function fieldsNew(kind: Kind): Fields {
	return {
		name: "",
		title: "",
		description: "",
		kind,
		python_code: "",
		text: "",
		blob: "",
		executable: "",
		spec: "",
		uri: "",
		mime_type: "",
		ttl_ms: "",
		arguments: "",
		input_schema: "",
		output_schema: "",
		annotations: "",
		icons: "",
		meta: "",
		secrets: [],
		modules: [],
		requires: [],
		client_capabilities: [],
		task: "",
		confirm: false,
		limits: {},
	};
}

/** Returns the form of a version. `source` is the text of its answer: numbers of JSON stay as they are there. */
export function fieldsOf(v: Version, source: string): Fields {
	const members = jsonMembers(source),
		f = fieldsNew(v.kind);

	f.name = v.name;
	for (const n of TEXTS) f[n] = v[n] ?? "";
	for (const n of JSONS) f[n] = (members.get(n) ?? "null") === "null" ? "" : jsonPretty(members.get(n)!).trimEnd();
	for (const n of LISTS) f[n] = v[n] ?? [];
	f.ttl_ms = v.ttl_ms == null ? "" : String(v.ttl_ms);
	f.confirm = v.confirm ?? false;
	f.limits = Object.fromEntries(Object.entries(v.limits).flatMap(([n, x]) => (x == null ? [] : [[n, String(x)]])));
	return f;
}

/** Returns true if an object of this kind can have the field. */
export function fieldFits(object: ObjectKind, kind: Kind, field: FieldName): boolean {
	const code = kind === "python",
		tool = object === "tool";
	switch (field) {
		case "name":
		case "title":
		case "description":
		case "icons":
		case "meta":
			return true;
		case "python_code":
		case "modules":
			return code;
		case "client_capabilities":
		case "limits":
			return kind !== "static";
		case "requires":
			return code || kind === "command";
		case "secrets":
			return code;
		case "spec":
			return kind === "command" || kind === "http";
		case "executable":
			return kind === "command";
		case "kind":
		case "output_schema":
		case "task":
		case "confirm":
			return tool;
		case "input_schema":
			return tool && kind !== "http";
		case "annotations":
			return object !== "prompt";
		case "text":
			return kind === "static";
		case "blob":
			return kind === "static" && object === "resource";
		case "uri":
		case "mime_type":
		case "ttl_ms":
			return object === "resource" || object === "template";
		case "arguments":
			return object === "prompt" || object === "template";
	}
}

function same(a: unknown, b: unknown): boolean {
	return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function changedLimits(before: Fields, now: Fields): Record<string, number> {
	return Object.fromEntries(
		Object.entries(now.limits).flatMap(([n, text]) => (text === "" || text === before.limits[n] ? [] : [[n, Number(text)]])),
	);
}

/** Returns what a form changes, as arguments of the management tool that makes the draft. */
export function fieldsChanged(object: ObjectKind, before: Fields, now: Fields): Record<string, unknown> {
	const out: Record<string, unknown> = {};

	for (const field of Object.keys(now) as FieldName[]) {
		const value = now[field];
		if (!fieldFits(object, now.kind, field) || same(value, before[field])) continue;
		if (field === "limits") {
			const limits = changedLimits(before, now);
			if (Object.keys(limits).length > 0) out.limits = limits;
		} else if (field === "ttl_ms") {
			if (now.ttl_ms !== "") out.ttl_ms = Number(now.ttl_ms);
		} else if (JSON_FIELDS.has(field)) {
			if ((value as string).trim() !== "") out[field] = new Exact((value as string).trim());
		} else if (field === "uri") out[object === "template" ? "uri_template" : "uri"] = value;
		else if (!(STAYS.has(field) && value === "")) out[field] = value;
	}
	/* Text or bytes are the content, never both. */
	if (now.kind === "static") delete out[now.blob === "" ? "blob" : "text"];
	return out;
}

/** Returns what a form says of something new, without its server. */
export function fieldsAll(object: ObjectKind, now: Fields): Record<string, unknown> {
	const out = fieldsChanged(object, fieldsNew(now.kind), now);
	/* REST's word for a tool of code is the default; a prompt's and a resource's kind follows from its content. */
	return {name: now.name, ...out, ...(object === "tool" ? {kind: now.kind} : {})};
}

/** Returns the JSON text of an object with one member set, or taken away. The others keep their text and their place. Throws
 * where the text is no object. */
export function memberSet(text: string, name: string, value: string | undefined): string {
	const members = text.trim() === "" ? new Map<string, string>() : jsonMembers(text);

	if (value === undefined) members.delete(name);
	else members.set(name, value);
	return members.size === 0 ? "" : objectOf(members);
}

/** Returns a JSON object of members, each with the text of its value. */
export function objectOf(members: Iterable<readonly [string, string]>): string {
	const all = [...members].map(([n, v]) => `${JSON.stringify(n)}:${v}`);
	return jsonPretty(`{${all.join(",")}}`).trimEnd();
}
