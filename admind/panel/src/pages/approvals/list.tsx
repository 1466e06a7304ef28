/* The queue of requests: filters, marks, and decisions about several at once. */
import {useEffect, useRef, useState} from "preact/hooks";
import type {Schemas} from "../../api/client";
import {usePages} from "../../api/use";
import {en} from "../../en";
import {meReviews, useEvery} from "../../me";
import {goWords, link} from "../../route";
import {Choice, Field} from "../../ui/form";
import {Empty, State} from "../../ui/notice";
import {Page} from "../../ui/page";
import {ServerChoice, useServers} from "../../ui/servers";
import {type Column, List as Rows} from "../../ui/table";
import {count, Hidden, Text, Time} from "../../ui/text";
import {Bulk} from "./bulk";
import {itemName} from "./names";
import {reviewedAll} from "./reviewed";

type Item = Schemas["ApprovalSummary"];

const PAGE = 100;
/* An open list of what waits is at most this old, while nobody has read on. */
const FRESH_MS = 30_000;
/* A pause of typing after which a filter holds. */
const TYPING_MS = 300;
const NOTE_SHOWN = 140;
const STATES = ["pending", "approved", "rejected", "superseded", "expired"] as const;
const KINDS = ["tool", "module", "network", "call"] as const;
const ORDERS = ["oldest", "newest"] as const;

function wordOf<T extends string>(query: URLSearchParams, name: string, words: readonly T[]): T | undefined {
	return words.find(w => w === query.get(name));
}

/* REST takes one of these at a time: a new one replaces the others. */
const NONE = {server: null, tool: null, search: null};

/* Draws a field that changes the address some moments after the last letter. A change of these words by another control
   ends that pause, so that a late change does not undo it. */
function WordsField({label, name, query}: {label: string; name: string; query: URLSearchParams}) {
	const held = query.get(name) ?? "",
		[value, set] = useState(held),
		timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
	const stop = () => clearTimeout(timer.current);

	useEffect(() => {
		stop();
		set(held);
	}, [held]);
	useEffect(() => stop, []);
	return (
		<Field
			label={label}
			type="search"
			value={value}
			onValue={v => {
				set(v);
				stop();
				timer.current = setTimeout(() => goWords(v === "" ? {[name]: v} : {...NONE, [name]: v}), TYPING_MS);
			}}
			maxLength={255}
		/>
	);
}

function NoteLine({item}: {item: Item}) {
	const text = item.notes || (item.kind === "call" ? item.arguments : "");
	return text ? (
		<span class="note-line quiet">
			<Text text={text} strict={!item.notes} max={NOTE_SHOWN} />
		</span>
	) : null;
}

function By({name}: {name: string}) {
	return (
		<span class="quiet">
			{en.approvals.by} <Text text={name} max={60} />
		</span>
	);
}

/** Draws the list that the words of the address choose. */
export function List({query}: {query: URLSearchParams}) {
	const t = en.approvals,
		any = query.get("state") === "all";
	const state = any ? undefined : (wordOf(query, "state", STATES) ?? "pending"),
		kind = wordOf(query, "kind", KINDS),
		order = wordOf(query, "order", ORDERS) ?? "oldest";
	const search = query.get("search") || undefined,
		tool = search ? undefined : query.get("tool") || undefined;
	const server = search || tool ? undefined : query.get("server") || undefined;
	const list = usePages("/api/approvals", {query: {state, kind, server, tool, search, order, limit: PAGE}});
	const servers = useServers(server ?? "");
	const [picked, setPicked] = useState<ReadonlyMap<string, Item>>(new Map());
	const reviewed = reviewedAll(),
		may = meReviews();
	const pending = list.items.filter(i => i.state === "pending"),
		all = pending.length > 0 && pending.every(i => picked.has(i.id));

	useEffect(() => setPicked(new Map()), [state, kind, server, tool, search, order]);
	useEvery(FRESH_MS, () => list.items.length <= PAGE && picked.size === 0 && list.reload());
	const pick = (items: Item[], on: boolean) => {
		const next = new Map(picked);
		for (const i of items)
			if (on) next.set(i.id, i);
			else next.delete(i.id);
		setPicked(next);
	};
	const columns: Column<Item>[] = [
		{
			name: t.request,
			kind: "wide",
			cell: i => (
				<span class="pick">
					{may && i.state === "pending" ? (
						<input
							type="checkbox"
							aria-label={t.select(itemName(i))}
							checked={picked.has(i.id)}
							onChange={e => pick([i], e.currentTarget.checked)}
						/>
					) : null}
					<span>
						<a href={link("approvals", i.id)}>
							<Text text={itemName(i)} strict />
						</a>
						{i.version && i.kind === "tool" ? <span class="quiet"> {t.versionNo(i.version)}</span> : null}
						<NoteLine item={i} />
					</span>
				</span>
			),
		},
		{name: t.kindName, cell: i => t.kinds[i.kind]},
		{name: t.server, kind: "narrow", cell: i => <Text text={i.server} strict />},
		{
			name: t.asked,
			cell: i => (
				<>
					<Time at={i.requested_at} /> <By name={i.requested_by} />
				</>
			),
		},
		{
			name: t.state,
			cell: i => (
				<span class="marks">
					<State state={i.revoked ? "revoked" : i.state} />
					{i.first_approval && i.state === "pending" ? <State state={t.oneOfTwo} kind="info" /> : null}
					{i.state === "pending" && reviewed.get(i.id) === i.hash ? <State state={t.wasRead} kind="good" /> : null}
					{i.comments ? <span class="quiet">{t.commentCount(i.comments)}</span> : null}
					{i.expires_at && i.state === "pending" ? (
						<span class="quiet">
							{t.endsAt} <Time at={i.expires_at} />
						</span>
					) : null}
					{i.decided_by ? <By name={i.decided_by} /> : null}
				</span>
			),
		},
	];
	return (
		<Page
			title={t.title}
			intro={t.intro}
			actions={
				<a class="button" href={link("approvals", "policy")}>
					{t.policy}
				</a>
			}
		>
			<div class="filters" role="search" aria-label={t.filters}>
				<Choice
					label={t.state}
					value={any ? "all" : (state ?? "pending")}
					onValue={v => goWords({state: v === "pending" ? null : v})}
					options={[...STATES.map(s => [s, t.stateNames[s]!] as const), ["all", t.anyState]]}
				/>
				<Choice
					label={t.kindName}
					value={kind ?? ""}
					onValue={v => goWords({kind: v})}
					options={[["", t.anyKind], ...KINDS.map(k => [k, t.kinds[k]!] as const)]}
				/>
				<ServerChoice
					servers={servers}
					label={t.server}
					value={server ?? ""}
					onValue={v => goWords({...NONE, server: v})}
					any={t.anyServer}
				/>
				<Choice
					label={t.order}
					value={order}
					onValue={v => goWords({order: v === "oldest" ? null : v})}
					options={ORDERS.map(o => [o, t.orders[o]] as const)}
				/>
				<WordsField label={t.toolFilter} name="tool" query={query} />
				<WordsField label={t.searchFilter} name="search" query={query} />
			</div>
			{may && pending.length > 0 ? (
				<div class="bulk">
					<label class="diff-blanks">
						<input type="checkbox" checked={all} onChange={e => pick(pending, e.currentTarget.checked)} />
						{t.selectAll(count(pending.length))}
					</label>
					{picked.size > 0 ? (
						<Bulk
							items={[...picked.values()]}
							onEnd={left => {
								setPicked(left);
								list.reload();
							}}
						/>
					) : (
						<span class="quiet">{t.bulkHint}</span>
					)}
				</div>
			) : null}
			<Rows
				label={t.title}
				list={list}
				columns={columns}
				keyOf={i => i.id}
				empty={
					search || tool || kind || server || state !== "pending" ? (
						<Empty title={t.noMatch}>
							<p>{t.noMatchWhy}</p>
							<p>
								<a href={link("approvals")}>{t.clear}</a>
							</p>
						</Empty>
					) : (
						<Empty title={t.nothing}>
							<p>{t.nothingWhy}</p>
						</Empty>
					)
				}
			/>
			<p>
				<Hidden>{list.loading ? "" : en.shown(count(list.items.length))}</Hidden>
			</p>
		</Page>
	);
}
