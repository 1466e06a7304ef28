/* The first page: what waits, what failed, how much is called, and whether all processes are well. */
import type {Schemas} from "../../api/client";
import {useRead} from "../../api/use";
import {en} from "../../en";
import {useEvery} from "../../me";
import {goWords, link, useRoute} from "../../route";
import {Choice} from "../../ui/form";
import {Empty, Loading, ProblemNote, State} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Table} from "../../ui/table";
import {count, Text} from "../../ui/text";
import {Charts} from "./charts";
import {Health, OpenBreakers} from "./health";
import {Failed, Waiting} from "./lists";

const REFRESH_MS = 30_000;
const t = en.overview;
type Dashboard = Schemas["Dashboard"];
type Period = Dashboard["period"];

function isPeriod(text: string | null): text is Period {
	return text !== null && Object.hasOwn(t.periods, text);
}

/* Returns the one outcome of all errors, for the link to them; none where they had several. */
function outcomeOf(d: Dashboard): string | undefined {
	const bad = Object.keys(d.outcomes).filter(o => o !== "done");
	return bad.length === 1 ? bad[0] : undefined;
}

/** Draws the page. It reads again each half minute; nothing that has the focus is drawn anew. */
export default function Overview() {
	const words = useRoute().query.get("period");
	const period: Period = isPeriod(words) ? words : "24h";
	const board = useRead("/api/dashboard", {query: {period}});
	const d = board.data;

	useEvery(REFRESH_MS, board.reload);
	return (
		<Page
			title={t.title}
			actions={
				<div class="filters">
					<Choice
						label={t.period}
						value={period}
						onValue={v => goWords({period: v === "24h" ? null : v})}
						options={Object.entries(t.periods)}
					/>
				</div>
			}
		>
			<ProblemNote problem={board.problem} again={board.reload} />
			{d === undefined ? (
				board.problem ? null : (
					<Loading />
				)
			) : d.tools.all === 0 && d.pending.all === 0 && d.calls.calls === 0 ? (
				<First />
			) : (
				<Figures d={d} />
			)}
			<Health />
		</Page>
	);
}

function Figures({d}: {d: Dashboard}) {
	return (
		<>
			<OpenBreakers />
			<div class="tiles">
				<Tile label={t.waiting} value={count(d.pending.all)} to={link("approvals")} kind={d.pending.all > 0 ? "warn" : undefined} />
				<Tile label={t.calls} value={count(d.calls.calls)} to={link("calls", {since: d.since})} />
				<Tile
					label={t.errors}
					value={count(d.calls.errors)}
					to={link("calls", {since: d.since, outcome: outcomeOf(d)})}
					kind={d.calls.errors > 0 ? "bad" : undefined}
				/>
				<Tile label={t.serving} value={t.of(count(d.tools.serving), count(d.tools.all))} to={link("tools")} />
				<Tile label={t.running} value={t.of(count(d.servers.running), count(d.servers.all))} to={link("servers")} />
				<Tile label={t.objects} value={count(d.prompts + d.resources)} to={link("prompts")} />
			</div>
			<div class="columns even">
				<Waiting pending={d.pending} />
				<Failed d={d} />
			</div>
			<Part title={t.over}>
				<Charts d={d} />
			</Part>
			<div class="columns even">
				<Part title={t.busiest}>
					{d.top_tools.length === 0 ? (
						<p class="quiet">{t.noCalls}</p>
					) : (
						<Table
							label={en.tableOf(t.busiest)}
							rows={d.top_tools}
							keyOf={r => r.tool}
							columns={[
								{
									name: t.tool,
									kind: "wide",
									cell: r => (
										<a href={link("calls", {tool: r.tool, since: d.since})}>
											<Text text={r.tool} />
										</a>
									),
								},
								{name: t.calls, kind: "number", cell: r => count(r.calls)},
								{name: t.errors, kind: "number", cell: r => count(r.errors)},
							]}
						/>
					)}
				</Part>
				<Part title={t.servers}>
					{d.busiest_servers.length === 0 ? (
						<p class="quiet">{t.noCalls}</p>
					) : (
						<Table
							label={en.tableOf(t.servers)}
							rows={d.busiest_servers}
							keyOf={r => r.id}
							columns={[
								{
									name: t.server,
									kind: "wide",
									cell: r => (
										<>
											<a href={link("servers", r.id)}>
												<Text text={r.name} />
											</a>{" "}
											{r.status === "stopped" ? <State state="stopped" /> : null}
										</>
									),
								},
								{name: t.calls, kind: "number", cell: r => count(r.calls)},
								{name: t.errors, kind: "number", cell: r => count(r.errors)},
							]}
						/>
					)}
				</Part>
			</div>
		</>
	);
}

function Tile({label, value, to, kind}: {label: string; value: string; to: string; kind?: string}) {
	return (
		<a class={`tile${kind ? ` ${kind}` : ""}`} href={to}>
			<span class="tile-label">{label}</span> <span class="tile-value">{value}</span>
		</a>
	);
}

/* Draws what to do with a fresh installation. The address is the one that admind's configuration names. */
function First() {
	const status = useRead("/api/status"),
		url = status.data?.mcp_url;
	return (
		<Empty title={t.firstTitle}>
			<ol>
				<li>
					{t.firstConnect}
					<pre tabIndex={0} aria-label={t.command}>
						claude mcp add --transport http mcpbox <Text text={url ?? "URL"} strict />
					</pre>
					{status.data && url === null ? <p>{t.firstNoUrl}</p> : null}
					<p>{t.firstToken}</p>
				</li>
				<li>{t.firstAsk}</li>
				<li>
					{t.firstReview} <a href={link("approvals")}>{en.approvals.title}</a>
				</li>
			</ol>
		</Empty>
	);
}
