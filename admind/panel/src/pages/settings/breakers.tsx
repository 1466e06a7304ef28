/* Circuit breakers: callers that were stopped since they loop. */
import {api} from "../../api/client";
import {useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers, useEvery} from "../../me";
import {link} from "../../route";
import {AskButton} from "../../ui/dialog";
import {done, Empty, Loading, Note, ProblemNote} from "../../ui/notice";
import {Table} from "../../ui/table";
import {count, duration, Hash, Time} from "../../ui/text";

const t = en.settings;
/* One that opens or closes is seen soon. */
const REFRESH_MS = 5000;

/** Draws the open breakers, and for administrators what closes them all. */
export function Breakers() {
	const read = useRead("/api/breakers"),
		b = read.data;

	useEvery(REFRESH_MS, read.reload);
	if (b === undefined) return read.problem ? <ProblemNote problem={read.problem} again={read.reload} /> : <Loading />;
	return (
		<>
			{b.enabled ? null : (
				<Note kind="warn">
					<p>{t.breakersOff}</p>
				</Note>
			)}
			{b.open.length === 0 ? (
				<Empty title={t.noBreakers}>
					<p>{t.breakersWhy}</p>
				</Empty>
			) : (
				<Table
					label={t.tabs.breakers}
					rows={b.open}
					keyOf={o => o.key + o.breaker}
					columns={[
						{name: t.breaker, kind: "wide", cell: o => t.breakers[o.breaker] ?? o.breaker},
						{name: t.key, cell: o => <Hash hash={o.key} />},
						{
							name: t.limit,
							cell: o => (o.window_ms ? t.within(count(o.limit), duration(o.window_ms)) : t.inRow(count(o.limit))),
						},
						{name: t.until, cell: o => <Time at={o.resets_at} />},
					]}
				/>
			)}
			<p>
				<a href={link("settings", {find: "breaker_"})}>{t.toBreakers}</a>
			</p>
			{meAdministers() && b.enabled ? (
				<p>
					<AskButton
						label={t.resetAll}
						title={t.resetAllTitle}
						action={async () => {
							await api.post("/api/breakers/reset");
							read.reload();
							done(t.resetDone);
						}}
					>
						<p>{t.resetAllWhy}</p>
					</AskButton>
				</p>
			) : null}
		</>
	);
}
