/* Requests that wait for a person, and calls that failed. */
import {useState} from "preact/hooks";
import type {Schemas} from "../../api/client";
import {useRead} from "../../api/use";
import {en} from "../../en";
import {useEvery} from "../../me";
import {link} from "../../route";
import {Note, ProblemNote, State} from "../../ui/notice";
import {Part} from "../../ui/page";
import {count, Text, Time} from "../../ui/text";

const t = en.overview;
const REFRESH_MS = 30_000;
const SHOWN = 5;
const NOTES_MAX = 140;
type Dashboard = Schemas["Dashboard"];

/** Draws how many requests wait, by kind, and those that wait longest. */
export function Waiting({pending}: {pending: Dashboard["pending"]}) {
	const list = useRead("/api/approvals", {query: {state: "pending", limit: SHOWN}});
	const kinds = (["tool", "module", "network", "call"] as const).filter(k => pending[k] > 0);

	useEvery(REFRESH_MS, list.reload);
	return (
		<Part title={t.waits}>
			<ProblemNote problem={list.problem} again={list.reload} />
			{pending.all === 0 ? (
				<p class="quiet">{t.nothingWaits}</p>
			) : (
				<>
					<ul class="counted">
						{kinds.map(k => (
							<li key={k}>
								<a href={link("approvals", {state: "pending", kind: k})}>{t.kinds[k](pending[k])}</a>
							</li>
						))}
					</ul>
					<ul class="rows">
						{list.data?.items.map(a => (
							<li key={a.id}>
								<a href={link("approvals", a.id)}>
									<Text text={a.exposed_name ?? a.module ?? a.host ?? a.server} />
								</a>{" "}
								<span class="quiet">
									{en.approvals.kinds[a.kind]?.toLowerCase()}, {t.by} <Text text={a.requested_by} />,{" "}
									<Time at={a.requested_at} />
								</span>
								{a.notes ? (
									<div class="quiet">
										<Text text={a.notes} max={NOTES_MAX} />
									</div>
								) : null}
							</li>
						))}
					</ul>
					{pending.all > SHOWN ? (
						<p>
							<a href={link("approvals")}>{t.allWaiting(pending.all)}</a>
						</p>
					) : null}
				</>
			)}
		</Part>
	);
}

/** Draws how often calls failed, by their mode in words, and the newest of them. */
export function Failed({d}: {d: Dashboard}) {
	const [all, setAll] = useState(false);
	const modes = Object.entries(d.failures).sort((a, b) => b[1] - a[1]);
	const rows = all ? d.recent_errors : d.recent_errors.slice(0, SHOWN);

	return (
		<Part title={t.failed}>
			{modes.length > 0 ? (
				<ul class="counted">
					{modes.map(([mode, n]) => (
						<li key={mode}>
							<a href={link("calls", {failure: mode, since: d.since})}>
								<Words mode={mode} />
							</a>
							: {count(n)}
						</li>
					))}
				</ul>
			) : null}
			{d.recent_errors.length === 0 ? (
				<p class="quiet">{t.nothingFailed}</p>
			) : (
				<ul class="rows">
					{rows.map(e => (
						<li key={e.id}>
							<a href={link("calls", e.id)}>
								<Text text={e.tool} />
							</a>{" "}
							<State state={e.outcome} />{" "}
							<span class="quiet">
								{e.failure_mode ? (
									<>
										<Words mode={e.failure_mode} />,{" "}
									</>
								) : null}
								{t.by} <Text text={e.principal} />, <Time at={e.created_at} />
							</span>
						</li>
					))}
				</ul>
			)}
			{d.recent_errors.length > SHOWN && !all ? (
				<p>
					<button type="button" class="small" onClick={() => setAll(true)}>
						{en.more}
					</button>
				</p>
			) : null}
			{d.calls.errors === 0 && d.recent_errors.length > 0 ? (
				<Note>
					<p>{t.countedSoon}</p>
				</Note>
			) : null}
		</Part>
	);
}

function Words({mode}: {mode: string}) {
	return Object.hasOwn(en.failures, mode) ? <>{en.failures[mode]}</> : <Text text={mode} />;
}
