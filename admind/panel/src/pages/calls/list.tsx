/* The list of calls, newest first, with figures of the same filters, a live tail and a download. */
import type {Schemas} from "../../api/client";
import {download} from "../../api/download";
import {type Happening, happeningText} from "../../api/stream";
import {useAction, usePages} from "../../api/use";
import {en} from "../../en";
import {meReviews} from "../../me";
import {link} from "../../route";
import {type Filter, Filters, filterValues} from "../../ui/filters";
import {Empty, ProblemNote, State} from "../../ui/notice";
import {Page} from "../../ui/page";
import {type Servers, useServers} from "../../ui/servers";
import {List} from "../../ui/table";
import {Tail} from "../../ui/tail";
import {duration, Text, Time} from "../../ui/text";
import {Figures} from "./figures";
import {seenHolds} from "./seen";
import {failureWords} from "./words";

const t = en.calls;
const options = (words: Record<string, string>, any: string) => [["", any] as const, ...Object.entries(words)];

type Call = Schemas["Execution"];

/* The filters of GET /api/executions. */
function filtersOf(servers: Servers, query: URLSearchParams, reviews: boolean): Filter[] {
	const server = query.get("server") ?? "";
	return [
		{name: "tool", label: t.tool, only: /^[A-Za-z0-9_.@:*-]{1,255}$/, otherwise: t.toolOnly},
		{name: "server", label: t.server, servers, any: t.anyServer},
		{name: "principal", label: t.principal, only: /^.{1,255}$/, otherwise: t.long},
		{name: "outcome", label: t.outcome, options: options(t.outcomes, t.anyOutcome)},
		{
			name: "failure",
			label: t.failure,
			options: options(Object.fromEntries(Object.entries(t.failures).map(([mode, [words]]) => [mode, words])), t.anyFailure),
		},
		{name: "state", label: t.state, options: options(t.states, t.anyState)},
		{name: "kind", label: t.kind, options: options(t.kinds, t.anyKind)},
		{name: "listener", label: t.listener, options: options(t.listeners, t.anyListener)},
		{name: "hash", label: t.hash, only: /^[0-9a-f]{64}$/, otherwise: t.hashOnly},
		{name: "since", label: t.since, time: true},
		{name: "until", label: t.until, time: true},
		...(reviews
			? [
					server === "" && !query.get("hash")
						? {name: "search", label: t.words, only: /^.{1,255}$/, otherwise: t.long}
						: {name: "search", label: t.words, only: /^$/, otherwise: server === "" ? t.wordsOrHash : t.wordsOrServer},
				]
			: []),
	];
}

/* Returns true for an ended call that the filters let through, as far as an event tells. */
function wanted(e: Happening, words: Record<string, string>): boolean {
	return (
		e.type === "call" &&
		words.state !== "open" &&
		words.hash === undefined &&
		(["tool", "principal", "kind", "outcome", "listener"] as const).every(
			n => words[n] === undefined || words[n] === happeningText(e, n),
		) &&
		(words.failure === undefined || words.failure === happeningText(e, "failure_mode"))
	);
}

function Outcome({outcome, failure}: {outcome: string; failure: string | null | undefined}) {
	return (
		<>
			<State state={outcome} />
			{failure ? (
				<>
					{" "}
					<span class="quiet">
						<Text text={failureWords(failure)} />
					</span>
				</>
			) : null}
		</>
	);
}

export function CallList({query}: {query: URLSearchParams}) {
	const servers = useServers(query.get("server") ?? "");
	const filters = filtersOf(servers, query, meReviews());
	const words = filterValues(filters, query),
		whole = Object.keys(words).length === 0;
	const list = usePages("/api/executions", {query: words});
	const save = useAction(() => download("/api/executions/export", words, "calls.jsonl"));

	seenHolds(list.items);
	return (
		<Page
			title={t.title}
			intro={t.intro}
			actions={
				meReviews() ? (
					<button type="button" onClick={save.run} aria-disabled={save.busy}>
						{save.busy ? en.working : t.download}
					</button>
				) : null
			}
		>
			<ProblemNote problem={save.problem} again={save.run} />
			{save.busy ? (
				<p class="quiet" role="status">
					{t.downloads}
				</p>
			) : null}
			<Filters filters={filters} query={query} />
			{whole ? null : (
				<p>
					<a href={link("calls")}>{t.clear}</a>
				</p>
			)}
			<Figures words={words} />
			<Tail
				title={t.now}
				calls
				accept={e => wanted(e, words)}
				row={e => (
					<>
						<a href={link("calls", happeningText(e, "id"))}>
							<Text text={happeningText(e, "tool")} max={120} />
						</a>{" "}
						<Outcome outcome={happeningText(e, "outcome")} failure={happeningText(e, "failure_mode")} />{" "}
						<span class="quiet">
							<Text text={happeningText(e, "principal")} max={120} />, {duration(Number(happeningText(e, "duration_ms")))}
						</span>
					</>
				)}
				more={came =>
					came > 0 ? (
						<button type="button" class="small" onClick={list.reload}>
							{t.again}
						</button>
					) : null
				}
			/>
			<List<Call>
				label={t.title}
				list={list}
				keyOf={e => e.id}
				empty={
					whole ? (
						<Empty title={t.empty}>
							<p>{t.emptyWhy}</p>
						</Empty>
					) : (
						<Empty title={t.emptyFiltered}>
							<p>{t.emptyFilteredWhy}</p>
						</Empty>
					)
				}
				columns={[
					{
						name: t.tool,
						kind: "wide",
						cell: e => (
							<>
								<a href={link("calls", e.id)}>
									<Text text={e.tool} />
								</a>{" "}
								{e.kind !== "tool" ? <span class="quiet plain-weight">{t.kinds[e.kind]}</span> : null}
							</>
						),
					},
					{name: t.outcome, cell: e => <Outcome outcome={e.outcome ?? e.state} failure={e.failure_mode} />},
					{name: t.principal, cell: e => <Text text={e.principal} />},
					{name: t.listener, kind: "narrow", cell: e => <span class="nowrap">{t.listeners[e.listener]}</span>},
					{name: t.time, kind: "number", cell: e => duration(e.duration_ms)},
					{
						name: t.begun,
						cell: e => (
							<span class="nowrap">
								<Time at={e.created_at} />
							</span>
						),
					},
				]}
			/>
		</Page>
	);
}
