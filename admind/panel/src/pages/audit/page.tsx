/* The audit log: who changed and decided what, and what was checked of its chain. */
import {useEffect, useState} from "preact/hooks";
import type {Schemas} from "../../api/client";
import {download} from "../../api/download";
import {useAction, usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {meReviews} from "../../me";
import type {PageProps} from "../../pages";
import {link} from "../../route";
import {type Filter, Filters, filterValues} from "../../ui/filters";
import {Empty, Note, ProblemNote, State} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Facts, List} from "../../ui/table";
import {count, Hash, show, Text, Time} from "../../ui/text";
import {type Chain, chainCheck, type Row} from "./chain";

const t = en.audit;
/* Longer values of a detail are cut; the download has them whole. */
const VALUE_MAX = 4000;
const FAULTS_MAX = 20;
const FILTERS: Filter[] = [
	{name: "action", label: t.action, hint: t.actionHint, only: /^.{1,64}$/, otherwise: t.long},
	{name: "actor", label: t.actor, only: /^.{1,255}$/, otherwise: t.long},
	{name: "object", label: t.object, hint: t.objectHint, only: /^.{1,255}$/, otherwise: t.long},
	{name: "since", label: t.since, time: true},
	{name: "until", label: t.until, time: true},
	{name: "search", label: t.words, only: /^.{1,255}$/, otherwise: t.long},
];

export default function Audit({query}: PageProps) {
	return meReviews() ? (
		<Log query={query} />
	) : (
		<Page title={t.title}>
			<Empty title={t.reviewers}>
				<p>{t.reviewersWhy}</p>
			</Empty>
		</Page>
	);
}

function Log({query}: {query: URLSearchParams}) {
	const words = filterValues(FILTERS, query),
		whole = Object.keys(words).length === 0;
	const list = usePages("/api/audit", {query: words});
	const save = useAction(() => download("/api/audit/export", words, "audit.jsonl"));

	return (
		<Page
			title={t.title}
			intro={t.intro}
			actions={
				<>
					<button type="button" onClick={list.reload}>
						{t.again}
					</button>
					<button type="button" onClick={save.run} aria-disabled={save.busy}>
						{save.busy ? en.working : whole ? t.download : t.downloadThese}
					</button>
				</>
			}
		>
			<ProblemNote problem={save.problem} again={save.run} />
			{save.busy ? (
				<p class="quiet" role="status">
					{t.downloads}
				</p>
			) : null}
			<Verified rows={list.items} />
			<Filters filters={FILTERS} query={query} />
			{whole ? null : (
				<p>
					<a href={link("audit")}>{t.clear}</a>
				</p>
			)}
			<List<Row>
				label={t.title}
				list={list}
				keyOf={r => String(r.seq)}
				empty={
					<Empty title={t.empty}>
						<p>{t.emptyWhy}</p>
					</Empty>
				}
				columns={[
					{
						name: t.action,
						cell: r => (
							<>
								<a href={link("audit", {action: r.action})}>
									<Text text={r.action.replaceAll("_", " ")} max={80} />
								</a>
								<div class="quiet plain-weight">
									<Text text={r.subject} max={200} />
								</div>
							</>
						),
					},
					{name: t.actor, cell: r => <Text text={r.actor} max={120} />},
					{name: t.detail, kind: "wide", cell: r => <Detail r={r} />},
					{
						name: t.at,
						cell: r => (
							<span class="nowrap">
								<Time at={r.at} />
							</span>
						),
					},
					{name: t.row, kind: "number", cell: r => count(r.seq)},
					{
						name: t.hash,
						kind: "narrow",
						cell: r => (
							<>
								<Hash hash={r.hash} /> {r.signature ? <State state={t.signed} kind="good" /> : null}
							</>
						),
					},
				]}
			/>
		</Page>
	);
}

/* Draws a row's detail as names and values; the values that are no text as JSON. */
function Detail({r}: {r: Row}) {
	const members = Object.entries(r.detail);
	return (
		<details>
			<summary>{t.show(members.length)}</summary>
			<Facts
				facts={members.map(([name, value]) => [
					show(name),
					value === null ? (
						t.nothing
					) : value === "" ? (
						t.emptyText
					) : (
						<Text text={typeof value === "string" ? value : JSON.stringify(value)} max={VALUE_MAX} />
					),
				])}
			/>
			<Facts
				facts={[
					[
						t.actionName,
						<code>
							<Text text={r.action} />
						</code>,
					],
					[t.exactly, <time dateTime={r.at}>{r.at}</time>],
					[
						t.hash,
						<code>
							<Text text={r.hash} max={64} />
						</code>,
					],
					[
						t.prevHash,
						<code>
							<Text text={r.prev_hash} max={64} />
						</code>,
					],
				]}
			/>
		</details>
	);
}

/* Says what the last check of the whole log found. The database keeps that word, so the command stays beside it. */
function LastVerified({of}: {of: NonNullable<Schemas["Status"]["counts"]>["audit_verified"]}) {
	if (of === null)
		return (
			<Note kind="warn">
				<p>{t.verifiedNever}</p>
			</Note>
		);
	const said = (
		<p>
			{t.verifiedAt} <Time at={of.at} />:{" "}
			{of.holds ? t.verified(count(of.rows), count(of.anchors), count(of.journal_lines)) : t.verifiedNot(count(of.problems))}
		</p>
	);
	return of.holds ? said : <Note kind="bad">{said}</Note>;
}

/* Says what was checked here, what the vault signed, and what neither proves. */
function Verified({rows}: {rows: Row[]}) {
	const [chain, setChain] = useState<Chain>(),
		[unable, setUnable] = useState(false);
	const counts = useRead("/api/health").data?.counts,
		status = useRead("/api/status").data?.counts;
	const which = rows.length === 0 ? "" : `${rows.length} ${rows[0]!.hash} ${rows[rows.length - 1]!.hash}`;

	useEffect(() => {
		let gone = false;
		setChain(undefined);
		chainCheck(rows).then(
			c => !gone && setChain(c),
			() => !gone && setUnable(true),
		);
		return () => {
			gone = true;
		};
	}, [which]);
	if (rows.length === 0) return null;
	const broken = chain !== undefined && chain.faults.length > 0;
	return (
		<Part title={t.chain} actions={chain ? <State state={broken ? t.broken : t.holds} kind={broken ? "bad" : "good"} /> : null}>
			{unable ? (
				<Note kind="warn">
					<p>{t.unable}</p>
				</Note>
			) : null}
			{chain && !broken ? <p>{t.holdsWhy(count(chain.rows), count(chain.links))}</p> : null}
			{chain && broken ? (
				<Note kind="bad">
					<p>{t.brokenWhy}</p>
					<ul>
						{chain.faults.slice(0, FAULTS_MAX).map(f => (
							<li key={`${f.seq} ${f.fault}`}>{t.fault(count(f.seq), t.faults[f.fault])}</li>
						))}
					</ul>
					{chain.faults.length > FAULTS_MAX ? <p>{t.moreFaults(count(chain.faults.length - FAULTS_MAX))}</p> : null}
				</Note>
			) : null}
			{counts ? (
				<p>
					{counts.audit_not_anchored === 0
						? t.allSigned(count(counts.audit_rows))
						: t.notAllSigned(count(counts.audit_rows), count(counts.audit_not_anchored))}
				</p>
			) : null}
			{status ? <LastVerified of={status.audit_verified} /> : null}
			<p class="quiet">
				{t.whole} <code>mcpboxctl audit verify</code>
			</p>
		</Part>
	);
}
