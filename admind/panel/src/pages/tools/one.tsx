/* One tool: what serves, what changed, who made it, and what can be done with it. */
import {useEffect, useState} from "preact/hooks";
import {usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {go, link} from "../../route";
import {Empty, Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Facts, List} from "../../ui/table";
import {duration, Hash, Made, Text, Time} from "../../ui/text";
import {Actions, Rollback} from "./actions";
import {Content} from "./content";
import {Standing} from "./list";

const t = en.tools;
const LATEST = 10;

export function ToolOne({id}: {id: string}) {
	const read = useRead("/api/tools/{id}", {path: {id}}),
		[round, setRound] = useState(0);
	const again = () => {
		read.reload();
		setRound(n => n + 1);
	};
	const tool = read.data?.tool;
	const back: [string, string] = tool && tool.object !== "tool" ? [link("prompts"), en.prompts.title] : [link("tools"), t.title];

	return (
		<Page
			title={tool?.exposed_name ?? t.one}
			heading={tool ? <Text text={tool.exposed_name} /> : undefined}
			back={back}
			actions={
				tool && !tool.deleted_at ? (
					<>
						{tool.object === "tool" && tool.callable && meAdministers() ? (
							<a class="button" href={link("tools", id, "run")}>
								{t.run}
							</a>
						) : null}
						{meAdministers() ? (
							<a class="button" href={link("tools", id, "edit")}>
								{t.edit}
							</a>
						) : null}
					</>
				) : null
			}
		>
			<ProblemNote problem={read.problem} again={read.reload} />
			{tool === undefined ? (
				read.problem ? null : (
					<Loading />
				)
			) : (
				<>
					<Part title={t.standing} actions={<Standing tool={tool} />}>
						{tool.quarantined ? (
							<Note kind="warn">
								<p>
									<Text text={tool.quarantined} />
								</p>
							</Note>
						) : null}
						{!tool.enabled && tool.disabled_by ? (
							<Note kind="warn">
								<p>
									{t.disabledBy} <Text text={tool.disabled_by} />, <Time at={tool.disabled_at} />
									{tool.disabled_reason ? (
										<>
											: <Text text={tool.disabled_reason} />
										</>
									) : null}
								</p>
							</Note>
						) : null}
						{tool.description ? (
							<p>
								<Text text={tool.description} />
							</p>
						) : null}
						<Facts
							facts={[
								[
									t.server,
									<a href={link("servers", tool.server_id)}>
										<Text text={tool.server} />
									</a>,
								],
								[t.kind, tool.object === "tool" ? t.kinds[tool.kind] : en.prompts.objects[tool.object]],
								[t.serves, tool.serving_version != null ? t.versionTitle(String(tool.serving_version)) : t.nothingServes],
								[t.newest, t.versionTitle(String(tool.version))],
								[t.hash, <Hash hash={tool.hash} />],
								[t.made, tool.created_by ? <Made at={tool.created_at} by={tool.created_by} /> : null],
							]}
						/>
						<p class="buttons">
							<a href={link("approvals", {tool: id, state: "all"})}>{t.approvals}</a>
							<a href={link("calls", {tool: tool.exposed_name})}>{t.calls}</a>
							{tool.serving_version != null && tool.serving_version !== tool.version ? (
								<a href={link("tools", id, "compare", {a: String(tool.serving_version), b: String(tool.version)})}>
									{t.compareServing}
								</a>
							) : null}
						</p>
						{meAdministers() && !tool.deleted_at ? (
							<Actions tool={tool} etag={read.etag} onDone={again} onGone={() => go(back[0])} />
						) : null}
					</Part>
					{tool.serving_version != null ? (
						<Whole id={id} version={tool.serving_version} title={t.servingContent(tool.serving_version)} />
					) : null}
					{tool.serving_version !== tool.version ? (
						<Whole id={id} version={tool.version} title={t.newestContent(tool.version)} />
					) : null}
					<Versions id={id} newest={tool.version} deleted={!!tool.deleted_at} round={round} onDone={again} etag={read.etag} />
					<Calls name={tool.exposed_name} />
				</>
			)}
		</Page>
	);
}

function Whole({id, version, title}: {id: string; version: number; title: string}) {
	const read = useRead("/api/tools/{id}/versions/{id2}", {path: {id, id2: String(version)}});
	return (
		<Part title={title}>
			<ProblemNote problem={read.problem} again={read.reload} />
			{read.data ? <Content v={read.data} source={read.text ?? "{}"} /> : read.problem ? null : <Loading />}
		</Part>
	);
}

/* Draws the list of versions; it is fetched again in each round. */
function Versions({
	id,
	newest,
	deleted,
	round,
	onDone,
	etag,
}: {
	id: string;
	newest: number;
	deleted: boolean;
	round: number;
	onDone: () => void;
	etag: string | null;
}) {
	const list = usePages("/api/versions", {query: {tool: id}});
	useEffect(() => {
		if (round > 0) list.reload();
	}, [round]);
	return (
		<Part title={t.versions}>
			<List
				label={t.versionList}
				list={list}
				keyOf={v => v.version_id}
				empty={<Empty title={t.noVersions} />}
				columns={[
					{
						name: t.version,
						cell: v => (
							<>
								<a href={link("tools", id, "versions", String(v.version))}>{t.versionTitle(String(v.version))}</a>{" "}
								{v.serving ? <State state="serving" /> : null}
							</>
						),
					},
					{name: t.state, cell: v => <State state={v.state} />},
					{
						name: t.note,
						kind: "wide",
						cell: v =>
							v.change_note ? (
								<Text text={v.change_note} max={200} />
							) : (
								<span class="quiet">{t.sources[v.change_source]}</span>
							),
					},
					{
						name: t.made,
						kind: "narrow",
						cell: v => <Made at={v.created_at} by={v.created_by} />,
					},
					{name: t.hash, kind: "narrow", cell: v => <Hash hash={v.hash} />},
					{
						name: en.actions,
						cell: v => (
							<span class="buttons">
								{v.version > 1 ? (
									<a
										href={link("tools", id, "compare", {a: String(v.version - 1), b: String(v.version)})}
										aria-label={t.compareLabel(v.version - 1, v.version)}
									>
										{t.compare}
									</a>
								) : null}
								{meAdministers() && !deleted && v.version !== newest ? (
									<Rollback id={id} version={v.version} etag={etag} onDone={onDone} />
								) : null}
							</span>
						),
					},
				]}
			/>
		</Part>
	);
}

function Calls({name}: {name: string}) {
	const read = useRead("/api/executions", {query: {tool: name, limit: LATEST}});
	return (
		<Part title={t.latestCalls} actions={<a href={link("calls", {tool: name})}>{t.allCalls}</a>}>
			<ProblemNote problem={read.problem} again={read.reload} />
			{read.data?.items.length === 0 ? (
				<p class="quiet">{t.noCalls}</p>
			) : (
				<ul class="lines">
					{read.data?.items.map(e => (
						<li key={e.id}>
							<a href={link("calls", e.id)}>
								<Time at={e.created_at} />
							</a>{" "}
							<State state={e.outcome ?? e.state} />{" "}
							<span class="quiet">
								{en.calls.kinds[e.kind]}, {duration(e.duration_ms)}, <Text text={e.principal} />
							</span>
						</li>
					))}
				</ul>
			)}
		</Part>
	);
}
