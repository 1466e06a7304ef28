/* The list of servers, and the form that makes one. */
import {useState} from "preact/hooks";
import {api} from "../../api/client";
import {useAction, usePages} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {go, link} from "../../route";
import {Dialog} from "../../ui/dialog";
import {Area, Field, Form} from "../../ui/form";
import {type Filter, Filters, filterValues} from "../../ui/filters";
import {doneThere, Empty, State} from "../../ui/notice";
import {Page} from "../../ui/page";
import {List} from "../../ui/table";
import {count, Text, Time} from "../../ui/text";

const t = en.servers;
const FILTERS: Filter[] = [
	{
		name: "state",
		label: t.state,
		options: [
			["", t.anyState],
			["running", en.states.running!],
			["stopped", en.states.stopped!],
			["deleted", en.states.deleted!],
		],
	},
];

export function ServerList({query}: {query: URLSearchParams}) {
	const list = usePages("/api/servers", {query: filterValues(FILTERS, query)});
	const [open, setOpen] = useState(false);
	return (
		<Page
			title={t.title}
			intro={t.intro}
			actions={
				meAdministers() ? (
					<button type="button" class="primary" onClick={() => setOpen(true)}>
						{t.new}
					</button>
				) : null
			}
		>
			<Filters filters={FILTERS} query={query} />
			<List
				label={t.title}
				list={list}
				keyOf={s => s.id}
				empty={
					<Empty title={t.empty}>
						<p>{t.emptyWhy}</p>
					</Empty>
				}
				columns={[
					{
						name: t.name,
						kind: "wide",
						cell: s => (
							<>
								<a href={link("servers", s.id)}>
									<Text text={s.name} />
								</a>
								{s.description ? (
									<div class="quiet plain-weight">
										<Text text={s.description} max={160} />
									</div>
								) : null}
							</>
						),
					},
					{
						name: t.state,
						cell: s => (
							<>
								<State state={s.deleted_at ? "deleted" : s.status} />
								{s.status === "stopped" && s.stopped_by ? (
									<div class="quiet">
										{t.by} <Text text={s.stopped_by} />
									</div>
								) : null}
							</>
						),
					},
					{
						name: t.tools,
						kind: "number",
						cell: s => (
							<a href={link("tools", {server: s.id})} aria-label={t.toolsOf(s.name, s.tool_count)}>
								{count(s.tool_count)}
							</a>
						),
					},
					{name: t.network, kind: "narrow", cell: s => (s.network_access_policy ? t.policies[s.network_access_policy] : null)},
					{
						name: t.made,
						kind: "narrow",
						cell: s => (
							<>
								<Time at={s.created_at} /> {t.by} <Text text={s.created_by} />
							</>
						),
					},
				]}
			/>
			{open ? <New onClose={() => setOpen(false)} /> : null}
		</Page>
	);
}

function New({onClose}: {onClose: () => void}) {
	const [name, setName] = useState(""),
		[description, setDescription] = useState("");
	const act = useAction(async () => {
		const {data} = await api.post("/api/servers", {body: {name, description}});
		doneThere(t.isMade(name));
		go(link("servers", data.id));
	});
	return (
		<Dialog title={t.new} onClose={onClose}>
			<Form label={t.make} busy={act.busy} problem={act.problem} action={act.run} onCancel={onClose}>
				<Field label={t.name} hint={t.nameHint} value={name} onValue={setName} required maxLength={24} autofocus />
				<Area label={t.description} value={description} onValue={setDescription} rows={2} maxLength={2000} />
			</Form>
		</Dialog>
	);
}
