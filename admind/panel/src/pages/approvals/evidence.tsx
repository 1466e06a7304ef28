/*
 * Runs of exactly this content, as evidence. REST filters calls by the name of the
 * tool, not by a hash, so the newest records of the name are read and compared
 * here; the page says how many were looked at.
 */
import {useEffect, useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction} from "../../api/use";
import {en} from "../../en";
import {link} from "../../route";
import {Loading, ProblemNote, State} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Table} from "../../ui/table";
import {count, duration, Text, Time} from "../../ui/text";
import type {Drawn} from "./content";

const PAGES = 3;
const PAGE = 200;
const SHOWN = 20;

/** Draws the runs of the content that is reviewed. */
export function Evidence({drawn}: {drawn: Drawn}) {
	const t = en.approvals,
		{exposed_name: name, hash} = drawn.request;
	const [found, set] = useState<{runs: Schemas["Execution"][]; looked: number; more: boolean}>();
	const read = useAction(async () => {
		const runs: Schemas["Execution"][] = [];
		let looked = 0,
			cursor: string | undefined;
		for (let i = 0; i < PAGES; i++) {
			const {data} = await api.get("/api/executions", {query: {tool: name!, limit: PAGE, cursor}});
			looked += data.items.length;
			runs.push(...data.items.filter(e => e.hash === hash));
			cursor = data.next_cursor ?? undefined;
			if (cursor === undefined) break;
		}
		set({runs, looked, more: cursor !== undefined});
	});

	useEffect(() => void (name && read.run()), [name, hash]);
	if (drawn.request.kind !== "tool" || !name) return null;
	return (
		<Part title={t.evidence} actions={<a href={link("calls", {tool: name})}>{t.allCalls}</a>}>
			<ProblemNote problem={read.problem} again={read.run} />
			{found === undefined ? (
				read.busy ? (
					<Loading />
				) : null
			) : (
				<>
					<p class="quiet">
						{found.runs.length === 0 ? t.noRuns : t.runs(count(found.runs.length))}{" "}
						{found.more ? t.lookedAt(count(found.looked)) : null}
					</p>
					{found.runs.length > 0 ? (
						<Table
							label={t.evidence}
							rows={found.runs.slice(0, SHOWN)}
							keyOf={e => e.id}
							columns={[
								{
									name: t.when,
									cell: e => (
										<a href={link("calls", e.id)}>
											<Time at={e.created_at} />
										</a>
									),
								},
								{name: t.kindName, cell: e => (e.kind === "test" ? t.testRun : e.kind)},
								{
									name: t.ended,
									cell: e => (
										<>
											<State state={e.outcome ?? e.state} /> <Text text={e.failure_mode} />
										</>
									),
								},
								{name: t.took, kind: "number", cell: e => duration(e.duration_ms)},
								{name: t.principal, kind: "narrow", cell: e => <Text text={e.principal} />},
							]}
						/>
					) : null}
					{found.runs.length > SHOWN ? <p class="quiet">{t.newestRuns(SHOWN)}</p> : null}
				</>
			)}
		</Part>
	);
}
