/* The state of each process in words. */
import type {Schemas} from "../../api/client";
import {useRead} from "../../api/use";
import {en} from "../../en";
import {useEvery} from "../../me";
import {link} from "../../route";
import {Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Facts} from "../../ui/table";
import {bytes, count, Text, Time} from "../../ui/text";

const t = en.overview;
const REFRESH_MS = 30_000;
type Layer = Schemas["HealthDetail"]["layers"][number];

/** Draws the health of the suite: a line for each process, and each layer that is not as it should be with its remedy. */
export function Health() {
	const health = useRead("/api/health"),
		status = useRead("/api/status");
	const h = health.data,
		by = new Map<string, Layer[]>();

	useEvery(REFRESH_MS, () => {
		health.reload();
		status.reload();
	});
	for (const l of h?.layers ?? []) by.set(l.process, [...(by.get(l.process) ?? []), l]);
	const weak = h?.layers.filter(l => l.state !== "enforced").length ?? 0;
	return (
		<Part title={t.health} actions={h ? <State state={h.status} /> : null}>
			<ProblemNote problem={health.problem} again={health.reload} />
			{h === undefined ? (
				health.problem ? null : (
					<Loading />
				)
			) : (
				<>
					<p>{h.status !== "ok" ? t.notWell : weak === 0 ? t.allWell : t.weak(weak)}</p>
					<ul class="rows processes">
						{[...by].map(([process, layers]) => (
							<Process key={process} process={process} layers={layers} />
						))}
					</ul>
					<Facts
						facts={[
							[t.version, h.version],
							[t.node, <Text text={h.node} />],
							[t.since, <Time at={h.started_at} />],
							[t.inWork, status.data ? count(status.data.calls_in_work) : null],
							[t.nodes, h.counts && h.counts.nodes.length > 2 ? count(new Set(h.counts.nodes.map(n => n.node)).size) : null],
							[t.database, h.counts ? bytes(h.counts.database_bytes) : null],
							[t.auditRows, h.counts ? <a href={link("audit")}>{count(h.counts.audit_rows)}</a> : null],
							[t.notAnchored, h.counts && h.counts.audit_not_anchored > 0 ? count(h.counts.audit_not_anchored) : null],
							[t.overdue, h.counts && h.counts.overdue_executions > 0 ? count(h.counts.overdue_executions) : null],
							[t.records, status.data && status.data.records_waiting > 0 ? count(status.data.records_waiting) : null],
						]}
					/>
				</>
			)}
		</Part>
	);
}

function Process({process, layers}: {process: string; layers: Layer[]}) {
	const bad = layers.filter(l => l.state !== "enforced"),
		away = bad.some(l => l.layer === "reachable");

	return (
		<li>
			<code>
				<Text text={process} />
			</code>
			<span>
				<State state={away ? t.away : bad.length > 0 ? "degraded" : "ok"} kind={away ? "bad" : undefined} />{" "}
				<span class="quiet">{Object.hasOwn(t.processes, process) ? t.processes[process] : null}</span>
			</span>
			{bad.map(l => (
				<Note key={l.layer} kind={l.state === "missing" ? "bad" : "warn"}>
					<p>
						<strong>
							<Text text={l.layer} />
						</strong>{" "}
						{t.layerStates[l.state]}
						{l.detail ? (
							<>
								: <Text text={l.detail} />
							</>
						) : (
							"."
						)}
					</p>
					{l.fix ? (
						<p>
							<Text text={l.fix} />
						</p>
					) : null}
				</Note>
			))}
		</li>
	);
}

/** Draws the open breakers: callers that were stopped since they loop. Nothing where none is open. */
export function OpenBreakers() {
	const read = useRead("/api/breakers"),
		open = read.data?.open ?? [];

	useEvery(REFRESH_MS, read.reload);
	return open.length === 0 ? null : (
		<Note kind="warn">
			<p>
				<strong>{t.open(open.length)}</strong> {t.openWhy} <a href={link("settings", "breakers")}>{t.toBreakers}</a>
			</p>
			<ul class="rows">
				{open.slice(0, 5).map(o => (
					<li key={o.key + o.breaker}>
						{Object.hasOwn(en.settings.breakers, o.breaker) ? en.settings.breakers[o.breaker] : o.breaker}, {t.closes}{" "}
						<Time at={o.resets_at} />
					</li>
				))}
			</ul>
		</Note>
	);
}
