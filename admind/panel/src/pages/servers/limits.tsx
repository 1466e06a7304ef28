/* Limits that a server sets for its tools; a version's own come first, then these, then mcpbox's. */
import {useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {Field, Form} from "../../ui/form";
import {done, Loading, Note, ProblemNote} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Facts} from "../../ui/table";
import {count, Text, Time} from "../../ui/text";

type All = Schemas["Limits"];
const t = en.servers;
const NAMES = Object.keys(en.limits) as (keyof All)[];

export function Limits({id}: {id: string}) {
	const read = useRead("/api/servers/{id}/limits", {path: {id}}),
		[edit, setEdit] = useState(false),
		d = read.data;
	const set = d ? NAMES.filter(n => d.limits[n] != null) : [];

	return (
		<Part
			title={t.limits}
			actions={
				meAdministers() && d && !edit ? (
					<button type="button" onClick={() => setEdit(true)}>
						{t.changeLimits}
					</button>
				) : null
			}
		>
			<ProblemNote problem={read.problem} again={read.reload} />
			{d === undefined ? (
				read.problem ? null : (
					<Loading />
				)
			) : edit ? (
				<Edit id={id} limits={d.limits} etag={read.etag} reload={read.reload} onClose={() => setEdit(false)} />
			) : (
				<>
					{set.length === 0 ? (
						<p class="quiet">{t.noLimits}</p>
					) : (
						<Facts facts={set.map(n => [en.limits[n]![0], count(d.limits[n])])} />
					)}
					{d.updated_at ? (
						<p class="quiet">
							<Time at={d.updated_at} /> {t.by} <Text text={d.updated_by} />
						</p>
					) : null}
				</>
			)}
		</Part>
	);
}

function Edit({
	id,
	limits,
	etag,
	reload,
	onClose,
}: {
	id: string;
	limits: All;
	etag: string | null;
	reload: () => void;
	onClose: () => void;
}) {
	const [typed, setTyped] = useState<Partial<Record<keyof All, string>>>({});
	const value = (n: keyof All) => typed[n] ?? (limits[n] == null ? "" : String(limits[n]));
	const act = useAction(async () => {
		const wanted = Object.fromEntries(NAMES.flatMap(n => (value(n) === "" ? [] : [[n, Number(value(n))]])));
		await api.put("/api/servers/{id}/limits", {path: {id}, match: etag ?? undefined, body: {limits: wanted as All}});
		done(t.limitsSet);
		onClose();
		reload();
	});

	return (
		<Form label={t.save} busy={act.busy} problem={act.problem} action={act.run} onCancel={onClose}>
			{act.problem?.failure_mode === "hash_mismatch" ? (
				<Note kind="warn">
					<p>
						{t.stale}{" "}
						<button
							type="button"
							class="small"
							onClick={() => {
								act.clear();
								reload();
							}}
						>
							{t.readAgain}
						</button>
					</p>
				</Note>
			) : null}
			<p class="quiet">{t.limitsWhy}</p>
			<div class="columns">
				{NAMES.map(n => (
					<Field
						key={n}
						label={en.limits[n]![0]}
						hint={en.limits[n]![1]}
						type="number"
						value={value(n)}
						onValue={v => setTyped(o => ({...o, [n]: v}))}
					/>
				))}
			</div>
		</Form>
	);
}
