/* Asks for more: a host, another MCP server as a source, or the operations of an OpenAPI document. Each waits for an approval. */
import {useId, useState} from "preact/hooks";
import {api} from "../../api/client";
import {useAction} from "../../api/use";
import {en} from "../../en";
import {link} from "../../route";
import {Area, Choice, Field, Form} from "../../ui/form";
import {done, Note} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Text} from "../../ui/text";

const t = en.servers;
const AUTH = ["none", "bearer", "header", "oauth"] as const;
/* The body of a request holds a document of this size. */
const DOCUMENT_MAX = 1_048_576;
type Auth = (typeof AUTH)[number];

export function Ask({id}: {id: string}) {
	return (
		<div class="columns">
			<Part title={t.askHost}>
				<Host id={id} />
			</Part>
			<Part title={t.askSource}>
				<Source id={id} />
			</Part>
			<Part title={t.askOpenapi}>
				<Openapi id={id} />
			</Part>
		</div>
	);
}

function Host({id}: {id: string}) {
	const [host, setHost] = useState(""),
		[why, setWhy] = useState("");
	const act = useAction(async () => {
		await api.post("/api/servers/{id}/network", {path: {id}, body: {host, ...(why ? {justification: why} : {})}});
		done(t.asked(host));
		setHost("");
		setWhy("");
	});
	return (
		<Form label={t.askHost} busy={act.busy} problem={act.problem} action={act.run}>
			<Field label={t.host} hint={t.hostHint} value={host} onValue={setHost} required maxLength={255} />
			<Field label={t.justification} value={why} onValue={setWhy} maxLength={2000} />
		</Form>
	);
}

function Source({id}: {id: string}) {
	const [name, setName] = useState(""),
		[url, setUrl] = useState(""),
		[auth, setAuth] = useState<Auth>("none"),
		[secret, setSecret] = useState(""),
		[header, setHeader] = useState("");
	const act = useAction(async () => {
		await api.post("/api/servers/{id}/sources", {
			path: {id},
			body: {
				name,
				url,
				auth_type: auth,
				...(auth === "bearer" || auth === "header" ? {auth_secret_name: secret} : {}),
				...(auth === "header" ? {auth_header_name: header} : {}),
			},
		});
		done(t.asked(name));
		setName("");
		setUrl("");
	});
	return (
		<Form label={t.askSource} busy={act.busy} problem={act.problem} action={act.run}>
			<Field label={t.name} hint={t.nameHint} value={name} onValue={setName} required maxLength={24} />
			<Field
				label={t.url}
				type="url"
				value={url}
				onValue={setUrl}
				required
				maxLength={2048}
				placeholder="https://mcp.example.org/mcp"
			/>
			<Choice
				label={t.auth}
				value={auth}
				onValue={v => setAuth(AUTH.find(a => a === v) ?? "none")}
				options={Object.entries(t.auths)}
			/>
			{auth === "bearer" || auth === "header" ? (
				<Field label={t.secret} hint={t.secretHint} value={secret} onValue={setSecret} required />
			) : null}
			{auth === "header" ? <Field label={t.header} value={header} onValue={setHeader} required /> : null}
		</Form>
	);
}

function Openapi({id}: {id: string}) {
	const [text, setText] = useState(""),
		[base, setBase] = useState(""),
		[some, setSome] = useState(""),
		[bad, setBad] = useState<string>(),
		file = useId();
	const read = async (chosen: File | undefined) => {
		setBad(chosen !== undefined && chosen.size > DOCUMENT_MAX ? t.fileBig : undefined);
		if (chosen !== undefined && chosen.size <= DOCUMENT_MAX) setText(await chosen.text());
	};
	const [made, setMade] = useState<{
		count: number;
		message: string;
		skipped: string[];
		missing_hosts: string[];
		missing_secrets: string[];
	}>();
	const act = useAction(async () => {
		setBad(undefined);
		let document: Record<string, never>;
		try {
			document = JSON.parse(text) as Record<string, never>;
		} catch {
			setBad(t.notJson);
			return;
		}
		const operations = some
			.split("\n")
			.map(x => x.trim())
			.filter(x => x !== "");
		setMade(
			(
				await api.post("/api/servers/{id}/openapi", {
					path: {id},
					body: {document, ...(base ? {base_url: base} : {}), ...(operations.length > 0 ? {operations} : {})},
				})
			).data,
		);
	});
	return (
		<>
			<Form label={t.importOpenapi} busy={act.busy} problem={act.problem} action={act.run}>
				<Area label={t.document} hint={t.documentHint} error={bad} code rows={6} value={text} onValue={setText} required />
				<div class="field">
					<label for={file}>{t.file}</label>
					<input
						id={file}
						type="file"
						accept=".json,application/json"
						aria-describedby={`${file}-hint`}
						onChange={e => void read(e.currentTarget.files?.[0])}
					/>
					<p class="hint" id={`${file}-hint`}>
						{t.fileHint}
					</p>
				</div>
				<Area label={t.operations} hint={t.operationsHint} rows={2} value={some} onValue={setSome} />
				<Field label={t.base} hint={t.baseHint} type="url" value={base} onValue={setBase} />
			</Form>
			{made ? (
				<Note kind={made.count > 0 ? "good" : "warn"}>
					<p>
						<Text text={made.message} /> <a href={link("approvals")}>{en.approvals.title}</a>
					</p>
					{made.missing_hosts.length > 0 ? (
						<p>
							{t.missingHosts}: <Text text={made.missing_hosts.join(", ")} />
						</p>
					) : null}
					{made.missing_secrets.length > 0 ? (
						<p>
							{t.missingSecrets}: <Text text={made.missing_secrets.join(", ")} />
						</p>
					) : null}
					{made.skipped.length > 0 ? (
						<details>
							<summary>{t.skipped(made.skipped.length)}</summary>
							<ul>
								{made.skipped.map(x => (
									<li key={x}>
										<Text text={x} />
									</li>
								))}
							</ul>
						</details>
					) : null}
				</Note>
			) : null}
		</>
	);
}
