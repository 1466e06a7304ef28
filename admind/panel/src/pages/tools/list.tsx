/* The list of tools, or of prompts and resources. */
import type {Schemas} from "../../api/client";
import {usePages} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {link} from "../../route";
import {type Filter, Filters, filterValues} from "../../ui/filters";
import {Empty, State} from "../../ui/notice";
import {Page} from "../../ui/page";
import {useServers} from "../../ui/servers";
import {List} from "../../ui/table";
import {Text, Time} from "../../ui/text";

type Tool = Schemas["Tool"];
const t = en.tools;
const STATES = ["draft", "pending_review", "approved", "rejected", "revoked", "deleted"] as const;

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

/** Draws the list of these kinds of objects. A kind is a list of REST, and the page has them one after another. */
export function ToolList({objects, query}: {objects: readonly Tool["object"][]; query: URLSearchParams}) {
	const tools = objects.includes("tool"),
		server = query.get("server") ?? "";
	const servers = useServers(server);
	const filters: Filter[] = [
		{name: "server", label: t.server, servers, any: t.anyServer},
		{name: "state", label: t.state, options: [["", t.anyState], ...STATES.map(s => [s, en.states[s] ?? s] as const)]},
		{name: "search", label: t.words, hint: t.wordsHint},
	];
	const values = filterValues(filters, query);
	const lists = objects.map(object => usePages("/api/tools", {query: {...values, object}}));
	const rest = lists.filter(l => l.more !== undefined);
	const list = {
		items: lists.flatMap(l => l.items),
		problem: lists.find(l => l.problem)?.problem,
		loading: lists.some(l => l.loading),
		more: rest.length > 0 ? () => rest.forEach(l => l.more?.()) : undefined,
		reload: () => lists.forEach(l => l.reload()),
	};

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
			<Filters filters={filters} query={query} />
			<List
				label={tools ? t.title : en.prompts.title}
				list={list}
				keyOf={r => r.id}
				empty={
					Object.keys(values).length > 0 ? (
						<Empty title={t.noMatch}>
							<p>
								<a href={link(tools ? "tools" : "prompts")}>{t.clear}</a>
							</p>
						</Empty>
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
