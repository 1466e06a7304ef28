/* One call whole: how it ended and why, its arguments and output, its connections, times and origin. */
import {useState} from "preact/hooks";
import type {Schemas} from "../../api/client";
import {useRead} from "../../api/use";
import {en} from "../../en";
import {meReviews, useEvery} from "../../me";
import {link} from "../../route";
import {CodeView} from "../../ui/code";
import {jsonShown} from "../../ui/json";
import {Empty, Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {ResultView} from "../../ui/result";
import {Facts, Table} from "../../ui/table";
import {bytes, duration, Text} from "../../ui/text";
import {seenOne} from "./seen";
import {failureFix, failureWords} from "./words";

const t = en.calls;
const MICRO = 1000;
/* A call that runs is read again as often. */
const OPEN_MS = 3000;
const LIST_MAX = 200;
const exact = new Intl.DateTimeFormat("en-GB", {dateStyle: "medium", timeStyle: "medium", hourCycle: "h23"});

type Call = Schemas["Execution"];
type Detail = Schemas["ExecutionDetail"];

/* Draws a time with its milliseconds: calls are that short. */
function Exact({at}: {at: string | null | undefined}) {
	return at ? (
		<time dateTime={at} title={at}>
			{exact.format(new Date(at))}
			<span class="quiet">.{String(new Date(at).getMilliseconds()).padStart(3, "0")}</span>
		</time>
	) : null;
}

export function CallOne({id}: {id: string}) {
	return meReviews() ? <Whole id={id} /> : <Seen id={id} />;
}

function Whole({id}: {id: string}) {
	const read = useRead("/api/executions/{id}", {path: {id}}),
		e = read.data;
	useEvery(OPEN_MS, () => e?.state === "open" && read.reload());
	return (
		<Frame e={e} again={read.reload}>
			<ProblemNote problem={read.problem} again={read.reload} />
			{e === undefined ? (
				read.problem ? null : (
					<Loading />
				)
			) : (
				<>
					<Ending e={e} />
					<Origin e={e} />
					<Arguments e={e} />
					<Output e={e} />
					<Connections e={e} />
				</>
			)}
		</Frame>
	);
}

/* A viewer's page: what the list says of the call. */
function Seen({id}: {id: string}) {
	const known = seenOne(id),
		newest = useRead(known ? null : "/api/executions", {query: {limit: LIST_MAX}});
	const e = known ?? newest.data?.items.find(x => x.id === id);
	return (
		<Frame e={e} again={known ? undefined : newest.reload}>
			<ProblemNote problem={newest.problem} again={newest.reload} />
			{e ? (
				<>
					<Ending e={e} />
					<Origin e={e} />
					<Note>
						<p>{t.reviewersOnly}</p>
					</Note>
				</>
			) : newest.loading ? (
				<Loading />
			) : newest.problem ? null : (
				<Empty title={t.notListed}>
					<p>{t.notListedWhy}</p>
				</Empty>
			)}
		</Frame>
	);
}

function Frame({e, again, children}: {e: Call | undefined; again?: () => void; children: preact.ComponentChildren}) {
	return (
		<Page
			title={e?.tool ?? t.one}
			heading={
				e ? (
					<>
						<Text text={e.tool} /> <span class="quiet plain-weight">{t.kinds[e.kind]}</span>
					</>
				) : undefined
			}
			back={[link("calls"), t.title]}
			actions={
				again ? (
					<button type="button" onClick={again}>
						{t.again}
					</button>
				) : null
			}
		>
			{children}
		</Page>
	);
}

function Ending({e}: {e: Call}) {
	const state = e.outcome ?? e.state;
	return (
		<Part title={t.ending} actions={<State state={state} />}>
			<p>{Object.hasOwn(t.means, state) ? t.means[state] : ""}</p>
			{e.failure_mode ? (
				<Note kind={e.outcome === "done" ? "info" : "bad"}>
					<p>
						<strong>
							<Text text={failureWords(e.failure_mode)} />
						</strong>{" "}
						<code>
							<Text text={e.failure_mode} />
						</code>
					</p>
					{failureFix(e.failure_mode) ? <p>{failureFix(e.failure_mode)}</p> : null}
				</Note>
			) : null}
			{e.restored ? (
				<Note>
					<p>{t.restored}</p>
				</Note>
			) : null}
			<Facts
				facts={[
					[t.begun, <Exact at={e.created_at} />],
					[t.started, e.started_at ? <Exact at={e.started_at} /> : null],
					[t.endedAt, e.ended_at ? <Exact at={e.ended_at} /> : null],
					[t.queued, e.started_at ? duration(new Date(e.started_at).getTime() - new Date(e.created_at).getTime()) : null],
					[t.time, e.duration_ms != null ? duration(e.duration_ms) : null],
					[t.cpu, e.cpu_us != null ? duration(e.cpu_us / MICRO) : null],
					[t.deadline, <Exact at={e.deadline} />],
					[t.delivered, e.delivered == null ? null : e.delivered ? t.wasDelivered : t.notDelivered],
				]}
			/>
		</Part>
	);
}

function Origin({e}: {e: Call}) {
	return (
		<Part title={t.origin} actions={<a href={link("calls", {tool: e.tool})}>{t.sameTool}</a>}>
			<Facts
				facts={[
					[
						t.principal,
						<a href={link("calls", {principal: e.principal})}>
							<Text text={e.principal} />
						</a>,
					],
					[t.listener, t.listeners[e.listener]],
					[t.client, e.client ? <Text text={e.client} max={200} /> : null],
					[t.protocol, e.protocol ? <Text text={e.protocol} max={60} /> : null],
					[t.version, e.version_id ? <Version e={e} /> : null],
					[
						t.hash,
						e.hash ? (
							<a href={link("calls", {hash: e.hash})}>
								<code>{e.hash}</code>
							</a>
						) : null,
					],
					[
						t.trace,
						e.trace_id ? (
							meReviews() ? (
								<a href={link("calls", {search: e.trace_id})}>
									<code>{e.trace_id}</code>
								</a>
							) : (
								<code>{e.trace_id}</code>
							)
						) : null,
					],
					[t.span, e.span_id ? <code>{e.span_id}</code> : null],
					[t.session, e.session_id ? <code>{e.session_id}</code> : null],
					[t.id, <code>{e.id}</code>],
				]}
			/>
		</Part>
	);
}

/* Finds the version among those of the name that was called: a tool may have another name by now. */
function Version({e}: {e: Call}) {
	const versions = useRead("/api/versions", {query: {tool: e.tool, limit: LIST_MAX}});
	const approvals = useRead("/api/approvals", {query: {tool: e.tool, kind: "tool", limit: LIST_MAX}});
	const version = versions.data?.items.find(v => v.version_id === e.version_id);
	const approval = approvals.data?.items.find(a => a.version_id === e.version_id && a.hash === e.hash && a.state === "approved");
	return (
		<>
			{version ? (
				<a href={link("tools", version.tool_id, "versions", String(version.version))}>{t.versionOf(version.version)}</a>
			) : (
				<code>{e.version_id}</code>
			)}
			{approval ? (
				<>
					{" "}
					· <a href={link("approvals", approval.id)}>{t.itsApproval}</a>
				</>
			) : null}
		</>
	);
}

function Arguments({e}: {e: Detail}) {
	const [raw, setRaw] = useState(false),
		text = e.arguments ?? "";
	return (
		<Part title={t.arguments} actions={<Raw raw={raw} setRaw={setRaw} what={t.arguments} />}>
			<CodeView label={t.argumentsText} text={raw ? text : jsonShown(text)} lang="json" />
			<p class="quiet">
				{t.kept}{" "}
				{e.args_sha256 ? (
					<>
						{t.argumentsHash} <code>{e.args_sha256}</code>
					</>
				) : null}
			</p>
		</Part>
	);
}

function Raw({raw, setRaw, what}: {raw: boolean; setRaw: (raw: boolean) => void; what: string}) {
	return (
		<button type="button" class="small" aria-pressed={raw} aria-label={`${t.raw}: ${what}`} onClick={() => setRaw(!raw)}>
			{t.raw}
		</button>
	);
}

function Output({e}: {e: Detail}) {
	const [raw, setRaw] = useState(false);
	return (
		<>
			{e.truncated ? (
				<Note>
					<p>{t.truncated}</p>
				</Note>
			) : null}
			<Part title={t.result} actions={e.result ? <Raw raw={raw} setRaw={setRaw} what={t.result} /> : null}>
				{e.result ? (
					raw ? (
						<CodeView label={en.result.text} text={e.result} />
					) : (
						<ResultView text={e.result} />
					)
				) : (
					<p class="quiet">{t.noResult}</p>
				)}
			</Part>
			<Part title={t.stdout}>
				{e.stdout ? (
					<>
						<p class="quiet">
							{bytes(new TextEncoder().encode(e.stdout).length)}. {t.stdoutWhy}
						</p>
						<pre class="plain" tabIndex={0} role="group" aria-label={t.stdout}>
							<Text text={e.stdout} />
						</pre>
					</>
				) : (
					<p class="quiet">{t.noStdout}</p>
				)}
			</Part>
		</>
	);
}

function Connections({e}: {e: Detail}) {
	const rows = (e.network ?? []).map((c, i) => ({...c, i}));
	return (
		<Part title={t.connections}>
			{rows.length === 0 ? (
				<p class="quiet">{t.noConnections}</p>
			) : (
				<Table
					label={t.connections}
					rows={rows}
					keyOf={c => String(c.i)}
					columns={[
						{
							name: t.host,
							kind: "wide",
							cell: c => (
								<>
									<Text text={c.host || c.address} max={300} />
									{c.port ? `:${c.port}` : ""}{" "}
									{c.host && c.address ? (
										<span class="quiet">
											<Text text={c.address} max={100} />
										</span>
									) : null}
								</>
							),
						},
						{
							name: t.verdict,
							cell: c => (
								<>
									<State
										state={c.verdict}
										kind={c.verdict === "connected" ? "good" : c.verdict === "connecting" ? "info" : "bad"}
									/>{" "}
									<Text text={c.reason} max={300} />
								</>
							),
						},
						{name: t.netProtocol, kind: "narrow", cell: c => <Text text={c.protocol} max={30} />},
						{name: t.in, kind: "number", cell: c => bytes(c.bytes_in)},
						{name: t.out, kind: "number", cell: c => bytes(c.bytes_out)},
						{name: t.time, kind: "number", cell: c => duration(c.duration_ms)},
					]}
				/>
			)}
		</Part>
	);
}
