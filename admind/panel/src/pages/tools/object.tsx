/* What prompts and resources have and tools have not: arguments with suggestions, and content that is text or bytes. */
import {useId, useState} from "preact/hooks";
import {en} from "../../en";
import {BlobFacts} from "../../ui/blob";
import {Tick} from "../../ui/form";
import {jsonElements, jsonMembers} from "../../ui/json";
import {type Change, type Fields, memberSet, type ObjectKind} from "./fields";
import {Held, jsonWrong, Line, Lines, Texts, twice, useRows} from "./parts";

const t = en.tools,
	p = en.prompts,
	e = en.edit;
/* As admind/tooldef/schemas/shared.json. */
const ARGUMENTS_MAX = 32;
const VALUES_MAX = 200;
/* As docs/TOOLS.md, "Prompts and resources". */
const BLOB_MAX = 512 * 1024;

/** Draws the arguments of a prompt, or the variables of a family of resources, as fields. */
export function Arguments({f, onChange}: {f: Fields; onChange: Change}) {
	const text = f.arguments;
	const odd = jsonWrong(text, "array") !== undefined || (text !== "" && jsonElements(text).some(a => jsonWrong(a, "object") !== undefined));
	const set = (arguments_: string) => onChange({arguments: arguments_ === "" && text !== "" ? "[]" : arguments_});

	return odd ? (
		<Held label={t.arguments} form="array" text={text} onText={set} />
	) : (
		<ArgumentList text={text} onText={set} />
	);
}

function nameOf(argument: string): string {
	const name = jsonMembers(argument).get("name") ?? '""';
	return name.startsWith('"') ? (JSON.parse(name) as string) : name;
}

function ArgumentList({text, onText}: {text: string; onText: (text: string) => void}) {
	const [rows, set] = useRows<string>(
		text,
		onText,
		s => (s === "" ? [] : jsonElements(s)),
		list => {
			const names = list.map(nameOf);
			return names.some((n, i) => n === "" || twice(names, i)) ? undefined : list.length === 0 ? "" : `[${list.join(",")}]`;
		},
	);
	const names = rows.map(nameOf);

	return (
		<fieldset>
			<legend>{t.arguments}</legend>
			<p class="hint">{p.argumentsHint}</p>
			{rows.map((r, i) => {
				const members = jsonMembers(r),
					word = (n: string) => ((members.get(n) ?? '""').startsWith('"') ? (JSON.parse(members.get(n) ?? '""') as string) : members.get(n)!);
				const one = (n: string, value: string | undefined) => set(rows.map((x, k) => (k === i ? memberSet(x, n, value) || "{}" : x)));
				const wrong = twice(names, i) ? e.twice : undefined;
				return (
					<div class="parameter" key={i} role="group" aria-label={p.argumentNo(i + 1)}>
						<div class="filters">
							<Line
								label={p.argumentName(i + 1)}
								value={word("name")}
								onValue={v => one("name", JSON.stringify(v))}
								required
								maxLength={38}
								error={wrong}
								refuse={wrong}
							/>
							<Line
								label={p.argumentTitle(i + 1)}
								value={word("title")}
								onValue={v => one("title", v === "" ? undefined : JSON.stringify(v))}
								maxLength={200}
							/>
							<Tick
								label={p.argumentNeeded(i + 1)}
								value={members.get("required") === "true"}
								onValue={v => one("required", String(v))}
							/>
							<button type="button" onClick={() => set(rows.filter((_, k) => k !== i))}>
								{p.argumentRemove(i + 1)}
							</button>
						</div>
						<Lines
							label={p.argumentWhat(i + 1)}
							rows={1}
							value={word("description")}
							onValue={v => one("description", v === "" ? undefined : JSON.stringify(v))}
							maxLength={500}
						/>
						<Texts
							label={p.argumentValues(i + 1)}
							text={members.get("values") ?? ""}
							onText={v => one("values", v === "" ? undefined : v)}
							max={VALUES_MAX}
						/>
					</div>
				);
			})}
			{rows.length < ARGUMENTS_MAX ? (
				<p>
					<button type="button" onClick={() => set([...rows, '{"name":"","required":true}'])}>
						{p.argumentAdd}
					</button>
				</p>
			) : null}
		</fieldset>
	);
}

/** Draws the content of a prompt or resource: a text, bytes of a file, or code. */
export function ObjectContent({object, f, onChange}: {object: ObjectKind; f: Fields; onChange: Change}) {
	const family = object === "template",
		byCode = f.kind === "python";

	return (
		<>
			<Tick
				label={p.byCode}
				hint={family ? p.familyNeedsCode : p.byCodeHint}
				value={byCode}
				onValue={on => onChange({kind: on ? "python" : "static"})}
				disabled={family}
			/>
			{byCode ? (
				<Lines
					label={t.code}
					hint={p.codeHint}
					code
					rows={18}
					value={f.python_code}
					onValue={v => onChange({python_code: v})}
					required
				/>
			) : f.blob !== "" ? (
				<>
					<BlobFacts base64={f.blob} />
					<p>
						<button type="button" onClick={() => onChange({blob: ""})}>
							{e.blobToText}
						</button>
					</p>
				</>
			) : (
				<Lines
					label={t.text}
					hint={object === "prompt" ? p.textHint : undefined}
					code
					rows={14}
					value={f.text}
					onValue={text => onChange({text})}
					required
				/>
			)}
			{object === "resource" && !byCode ? <BlobFile onBlob={blob => onChange({blob})} /> : null}
		</>
	);
}

/* Reads a file of this computer. Its name is not used. */
function BlobFile({onBlob}: {onBlob: (base64: string) => void}) {
	const id = useId(),
		[wrong, setWrong] = useState<string>();
	const take = async (file: File | undefined) => {
		setWrong(undefined);
		if (file === undefined) return;
		if (file.size > BLOB_MAX) {
			setWrong(e.blobLarge);
			return;
		}
		const raw = new Uint8Array(await file.arrayBuffer());
		let text = "";
		for (const b of raw) text += String.fromCharCode(b);
		onBlob(btoa(text));
	};

	return (
		<div class="field">
			<label for={id}>{e.blobFile}</label>
			<input
				id={id}
				type="file"
				aria-describedby={`${id}-hint`}
				onChange={ev => void take(ev.currentTarget.files?.[0]).catch(() => setWrong(e.blobUnread))}
			/>
			<p class="hint" id={`${id}-hint`}>
				{e.blobHint}
			</p>
			{wrong ? (
				<p class="error" role="alert">
					{wrong}
				</p>
			) : null}
		</div>
	);
}
