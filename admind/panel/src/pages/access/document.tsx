/* The access document: its parts to read, the keys of its issuers, and the text to change. */
import {useState} from "preact/hooks";
import {api} from "../../api/client";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {CodeView} from "../../ui/code";
import {Area, Form} from "../../ui/form";
import {done, Empty, Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Facts, Table} from "../../ui/table";
import {count, Hash, Text, Time} from "../../ui/text";

const t = en.access;
const PARTS = ["issuers", "rules", "permission_sets", "administrators", "endpoints"] as const;

/** Draws the document. */
export function Document() {
	const read = useRead("/api/access"),
		d = read.data,
		[edit, setEdit] = useState(false);
	const refresh = useAction(async (issuer: string) => {
		const {data} = await api.post("/api/access/refresh", {body: {issuer}});
		done(t.refreshStates[data.items[0]?.state ?? "due"]);
		read.reload();
	});

	if (d === undefined) return read.problem ? <ProblemNote problem={read.problem} again={read.reload} /> : <Loading />;
	const document = d.document;
	return (
		<>
			{d.why && document ? (
				<Note kind="bad">
					<p>
						<Text text={d.why} />
					</p>
				</Note>
			) : null}
			<Part
				title={t.document}
				actions={
					<>
						{document ? <State state={d.in_force ? t.inForce : t.notInForce} kind={d.in_force ? "good" : "warn"} /> : null}
						{meAdministers() && !edit ? (
							<button type="button" onClick={() => setEdit(true)}>
								{t.changeDocument}
							</button>
						) : null}
					</>
				}
			>
				{edit ? (
					<Edit
						text={document ? JSON.stringify(document, null, 2) : "{}"}
						etag={document ? read.etag : null}
						reload={read.reload}
						onClose={() => setEdit(false)}
					/>
				) : document === null ? (
					<Empty title={t.noDocument}>
						<p>{t.noDocumentWhy}</p>
					</Empty>
				) : (
					<>
						<Facts
							facts={[
								[t.resource, document.resource ? <Text text={document.resource} strict /> : null],
								[t.hash, <Hash hash={d.sha256} />],
								[
									t.stored,
									<>
										<Time at={d.stored_at} /> <Text text={d.actor} />
									</>,
								],
								...PARTS.map((p): [string, string | null] => [
									t.parts[p],
									document[p]?.length ? count(document[p]!.length) : null,
								]),
							]}
						/>
						{PARTS.flatMap(p =>
							document[p]?.length
								? [
										<details key={p}>
											<summary>
												{t.parts[p]} ({document[p]!.length})
											</summary>
											<CodeView label={t.parts[p]} text={JSON.stringify(document[p], null, 2)} lang="json" />
										</details>,
									]
								: [],
						)}
					</>
				)}
			</Part>
			{d.keys.length > 0 ? (
				<Part title={t.issuerKeys}>
					<ProblemNote problem={refresh.problem} />
					<Table
						label={t.issuerKeys}
						rows={d.keys}
						keyOf={k => k.issuer}
						columns={[
							{
								name: t.issuer,
								kind: "wide",
								cell: k => (
									<>
										<Text text={k.issuer} />
										{k.error ? (
											<div class="error plain-weight">
												<Text text={k.error} max={400} />
											</div>
										) : null}
									</>
								),
							},
							{name: t.keyCount, kind: "number", cell: k => count(k.count)},
							{name: t.fetched, cell: k => (k.fetched_at ? <Time at={k.fetched_at} /> : t.never)},
							{name: t.next, cell: k => <Time at={k.next_at} />},
							...(meAdministers()
								? [
										{
											name: en.actions,
											cell: (k: (typeof d.keys)[number]) => (
												<button
													type="button"
													class="small"
													aria-disabled={refresh.busy}
													onClick={() => refresh.run(k.issuer)}
												>
													{t.refresh}
												</button>
											),
										},
									]
								: []),
						]}
					/>
				</Part>
			) : null}
			{d.telemetry ? (
				<Part title={t.telemetry}>
					<Facts
						facts={[
							[t.collector, <Text text={d.telemetry.endpoint} strict />],
							[t.sent, d.telemetry.sent_at ? <Time at={d.telemetry.sent_at} /> : t.never],
							[t.spans, count(d.telemetry.spans)],
							[t.waiting, count(d.telemetry.waiting)],
							[t.dropped, count(d.telemetry.dropped)],
							[t.rejected, count(d.telemetry.rejected)],
							[t.lastError, d.telemetry.error ? <Text text={d.telemetry.error} max={400} /> : null],
						]}
					/>
				</Part>
			) : null}
		</>
	);
}

function Edit({text: before, etag, reload, onClose}: {text: string; etag: string | null; reload: () => void; onClose: () => void}) {
	const [text, setText] = useState(before),
		[bad, setBad] = useState<string>();
	const act = useAction(async () => {
		setBad(undefined);
		let document: Record<string, never>;
		try {
			document = JSON.parse(text) as Record<string, never>;
		} catch (e) {
			setBad(`${t.notJson} ${e instanceof Error ? e.message : ""}`);
			return;
		}
		await api.put("/api/access", {body: document, match: etag ?? undefined});
		done(t.documentSet);
		reload();
		onClose();
	});
	return (
		<Form label={t.storeDocument} busy={act.busy} problem={act.problem} action={act.run} onCancel={onClose}>
			<p class="quiet">{t.editWhy}</p>
			{act.problem?.failure_mode === "hash_mismatch" ? (
				<Note kind="warn">
					<p>{t.stale}</p>
				</Note>
			) : null}
			<Area label={t.documentText} error={bad} code rows={24} value={text} onValue={setText} required />
		</Form>
	);
}
