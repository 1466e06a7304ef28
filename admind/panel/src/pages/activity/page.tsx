/* What happened beside calls, and what happens now. */
import {type Happening, happeningText} from "../../api/stream";
import {usePages} from "../../api/use";
import {en} from "../../en";
import type {PageProps} from "../../pages";
import {link} from "../../route";
import {type Filter, Filters, filterValues} from "../../ui/filters";
import {Empty, State} from "../../ui/notice";
import {Page} from "../../ui/page";
import {List} from "../../ui/table";
import {Tail} from "../../ui/tail";
import {count, Text, Time} from "../../ui/text";

const t = en.activity;
const FILTERS: Filter[] = [
	{name: "kind", label: t.kind, options: [["", t.anyKind], ...Object.entries(t.kinds)]},
	{name: "level", label: t.level, options: [["", t.anyLevel], ...Object.entries(t.levels)]},
	{name: "principal", label: t.principal, only: /^.{1,255}$/, otherwise: en.calls.long},
	{
		name: "listener",
		label: t.listener,
		options: [
			["", t.anyListener],
			["local", t.listeners.local!],
			["tunnel", t.listeners.tunnel!],
		],
	},
	{name: "tool", label: t.subject, hint: t.subjectHint, only: /^[A-Za-z0-9_.@:*-]{1,255}$/, otherwise: t.subjectOnly},
	{name: "failure", label: t.failure, only: /^[a-z0-9_]{1,64}$/, otherwise: t.failureOnly},
	{name: "since", label: t.since, time: true},
	{name: "until", label: t.until, time: true},
	{name: "search", label: t.words, only: /^.{1,255}$/, otherwise: en.calls.long},
];

/* Kinds are words of admind with underscores between. */
function kindText(kind: string): string {
	return Object.hasOwn(t.kinds, kind) ? t.kinds[kind]! : kind.replaceAll("_", " ");
}

function Failure({mode}: {mode: string | null | undefined}) {
	return mode ? <Text text={Object.hasOwn(en.calls.failures, mode) ? en.calls.failures[mode]![0] : mode} max={100} /> : null;
}

/* Returns true for an event that the filters let through. Calls have no kind or level of the log. */
function wanted(e: Happening, words: Record<string, string>): boolean {
	const same = (word: string, member: string) => words[word] === undefined || words[word] === happeningText(e, member);
	const has = (member: string) =>
		happeningText(e, member)
			.toLowerCase()
			.includes((words.search ?? "").toLowerCase());

	if (!same("principal", "principal") || !same("listener", "listener") || !same("failure", "failure_mode")) return false;
	if (e.type === "call")
		return (
			words.kind === undefined && words.level === undefined && same("tool", "tool") && ["tool", "principal", "failure_mode"].some(has)
		);
	return (
		e.type === "activity" &&
		same("kind", "kind") &&
		same("level", "level") &&
		same("tool", "subject") &&
		["kind", "principal", "subject", "failure_mode"].some(has)
	);
}

function Event({e}: {e: Happening}) {
	const level = happeningText(e, "level");
	return e.type === "call" ? (
		<>
			<a href={link("calls", happeningText(e, "id"))}>
				<Text text={happeningText(e, "tool")} max={120} />
			</a>{" "}
			<State state={happeningText(e, "outcome")} /> <Failure mode={happeningText(e, "failure_mode")} />{" "}
			<span class="quiet">
				<Text text={happeningText(e, "principal")} max={120} />
			</span>
		</>
	) : (
		<>
			<Text text={kindText(happeningText(e, "kind"))} max={64} /> <State state={level} />{" "}
			<Text text={happeningText(e, "subject")} max={120} /> <Failure mode={happeningText(e, "failure_mode")} />{" "}
			<span class="quiet">
				<Text text={happeningText(e, "principal")} max={120} />
			</span>
		</>
	);
}

export default function ActivityPage({query}: PageProps) {
	const words = filterValues(FILTERS, query),
		whole = Object.keys(words).length === 0;
	const list = usePages("/api/activity", {query: words});
	return (
		<Page
			title={t.title}
			intro={t.intro}
			actions={
				<button type="button" onClick={list.reload}>
					{t.again}
				</button>
			}
		>
			<Filters filters={FILTERS} query={query} />
			{whole ? null : (
				<p>
					<a href={link("activity")}>{t.clear}</a>
				</p>
			)}
			<Tail title={t.now} calls accept={e => wanted(e, words)} row={e => <Event e={e} />} />
			<List
				label={t.title}
				list={list}
				keyOf={a => String(a.seq)}
				empty={
					<Empty title={t.empty}>
						<p>{whole ? t.emptyWhy : t.emptyFiltered}</p>
					</Empty>
				}
				columns={[
					{
						name: t.what,
						cell: a => (
							<>
								<Text text={kindText(a.kind)} max={64} />
								{a.count > 1 ? <span class="quiet"> × {count(a.count)}</span> : null}
							</>
						),
					},
					{name: t.level, cell: a => <State state={a.level} />},
					{name: t.subject, kind: "wide", cell: a => (a.subject ? <Text text={a.subject} max={120} /> : null)},
					{name: t.failure, cell: a => <Failure mode={a.failure_mode} />},
					{name: t.principal, cell: a => (a.principal ? <Text text={a.principal} max={120} /> : null)},
					{
						name: t.listener,
						kind: "narrow",
						cell: a =>
							a.listener ? (
								Object.hasOwn(t.listeners, a.listener) ? (
									t.listeners[a.listener]
								) : (
									<Text text={a.listener} />
								)
							) : null,
					},
					{
						name: t.node,
						kind: "narrow",
						cell: a => (
							<span class="nowrap">
								<Text text={a.node} max={60} />
							</span>
						),
					},
					{
						name: t.at,
						cell: a => (
							<span class="nowrap">
								<Time at={a.at} />
							</span>
						),
					},
				]}
			/>
		</Page>
	);
}
