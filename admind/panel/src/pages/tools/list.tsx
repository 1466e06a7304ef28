/* The list of tools, or of prompts and resources. */
import {useEffect} from "preact/hooks";
import type {Schemas} from "../../api/client";
import {usePages} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {goWords, link} from "../../route";
import {Choice, Field} from "../../ui/form";
import {Empty, State} from "../../ui/notice";
import {Page} from "../../ui/page";
import {List} from "../../ui/table";
import {Text, Time} from "../../ui/text";

type Tool = Schemas["Tool"];
const t = en.tools;
const STATES = ["draft", "pending_review", "approved", "rejected", "revoked", "deleted"] as const;
type ToolState = (typeof STATES)[number];
/* Rows that fill a page. */
const SHORT = 50;

/** Draws what a tool is now, in words: why it serves, or why it does not. */
export function Standing({tool}: {tool: Tool}) {
	if (tool.deleted_at) return <State state="deleted" />;
	return (
		<span class="states">
			{tool.callable ? <State state="serving" /> : null}
			{!tool.enabled ? <State state="disabled" /> : null}
			{tool.quarantined ? <State state="quarantined" /> : null}
			{tool.approval_status !== "approved" || !tool.callable ? <State state={tool.approval_status} /> : null}
		</span>
	);
}

/** Draws the list of these kinds of objects. */
export function ToolList({objects, query}: {objects: Tool["object"][]; query: URLSearchParams}) {
	const tools = objects.includes("tool"),
		server = query.get("server") ?? "",
		words = query.get("search") ?? "";
	const state = STATES.find(s => s === query.get("state"));
	const servers = usePages("/api/servers", {query: {limit: 200}});
	const list = usePages("/api/tools", {query: {limit: 200, ...(server ? {server} : {}), ...(state ? {state: state as ToolState} : {})}});
	const wanted = words.toLowerCase().split(/\s+/);
	const items = list.items.filter(
		r =>
			objects.includes(r.object) &&
			wanted.every(w => `${r.exposed_name} ${r.uri ?? ""} ${r.description ?? ""}`.toLowerCase().includes(w)),
	);

	/* REST filters neither by words nor by kind of object, so a list that is short after both fetches on. */
	useEffect(() => {
		if (items.length < SHORT) list.more?.();
	}, [items.length, list.more === undefined, list.items.length]);

	return (
		<Page
			title={tools ? t.title : en.prompts.title}
			intro={tools ? t.intro : en.prompts.intro}
			actions={
				!meAdministers() ? null : tools ? (
					<a class="button" href={link("tools", "new", {server})}>
						{t.new}
					</a>
				) : (
					<>
						<a class="button" href={link("tools", "new", {object: "prompt", server})}>
							{en.prompts.newPrompt}
						</a>
						<a class="button" href={link("tools", "new", {object: "resource", server})}>
							{en.prompts.newResource}
						</a>
					</>
				)
			}
		>
			<div class="filters">
				<Choice
					label={t.server}
					value={server}
					onValue={v => goWords({server: v})}
					options={[["", t.anyServer] as const, ...servers.items.map(s => [s.id, s.name] as const)]}
				/>
				<Choice
					label={t.state}
					value={state ?? ""}
					onValue={v => goWords({state: v})}
					options={[["", t.anyState] as const, ...STATES.map(s => [s, en.states[s] ?? s] as const)]}
				/>
				<Field label={t.words} type="search" value={words} onValue={v => goWords({search: v})} />
			</div>
			<List
				label={tools ? t.title : en.prompts.title}
				list={{...list, items}}
				keyOf={r => r.id}
				empty={
					server || state || words ? (
						<Empty title={t.noMatch}>
							<p>
								<a href={link(tools ? "tools" : "prompts")}>{t.clear}</a>
							</p>
						</Empty>
					) : list.more ? (
						<></>
					) : (
						<Empty title={tools ? t.empty : en.prompts.empty}>
							<p>{tools ? t.emptyWhy : en.prompts.emptyWhy}</p>
						</Empty>
					)
				}
				columns={[
					{
						name: t.name,
						kind: "wide",
						cell: r => (
							<>
								<a href={link("tools", r.id)}>
									<Text text={r.exposed_name} />
								</a>
								{r.uri ? (
									<div class="quiet plain-weight">
										<Text text={r.uri} max={120} />
									</div>
								) : null}
								{r.description ? (
									<div class="quiet plain-weight">
										<Text text={r.description} max={140} />
									</div>
								) : null}
							</>
						),
					},
					{
						name: t.server,
						cell: r => (
							<a href={link("servers", r.server_id)}>
								<Text text={r.server} />
							</a>
						),
					},
					{name: t.kind, kind: "narrow", cell: r => (tools ? t.kinds[r.kind] : en.prompts.objects[r.object])},
					{name: t.state, cell: r => <Standing tool={r} />},
					{
						name: t.version,
						kind: "number",
						cell: r =>
							r.serving_version != null && r.serving_version !== r.version
								? t.servesOf(r.serving_version, r.version)
								: String(r.version),
					},
					{name: t.changed, kind: "narrow", cell: r => <Time at={r.updated_at ?? r.created_at} />},
				]}
			/>
		</Page>
	);
}
