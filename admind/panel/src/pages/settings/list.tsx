/* All settings, and the dialog that changes one. */
import {useState} from "preact/hooks";
import {api, problemOf, type Schemas} from "../../api/client";
import {useAction, usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {goWords} from "../../route";
import {AskButton, Dialog} from "../../ui/dialog";
import {Choice, Field, Form} from "../../ui/form";
import {done, Empty, Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Table} from "../../ui/table";
import {show, Text, Time} from "../../ui/text";

type Setting = Schemas["Setting"];
const t = en.settings;
const ALL = 200;

function bounds(s: Setting): string {
	if (s.words) return t.words(s.words.map(w => show(w)));
	if (s.min === null || s.max === null) return "";
	const range = [s.min.toLocaleString("en"), s.max.toLocaleString("en")] as const;
	return s.type === "text" ? t.chars(...range) : t.bounds(...range);
}

/* Draws what holds, and what the default is where that differs. */
function Value({s}: {s: Setting}) {
	if (s.updated_at === null)
		return (
			<>
				<code>
					<Text text={s.value} />
				</code>{" "}
				<span class="quiet">{t.isDefault}</span>
			</>
		);
	return (
		<>
			<code>
				<Text text={s.value} />
			</code>{" "}
			<State state={t.isChanged} kind="info" />
			<div class="quiet">
				{t.was}:{" "}
				<code>
					<Text text={s.default} />
				</code>
			</div>
			<div class="quiet">
				{t.by} <Text text={s.updated_by} />, <Time at={s.updated_at} />
			</div>
		</>
	);
}

/** Draws the list, with a search over names and texts. */
export function AllSettings({find}: {find: string}) {
	const list = usePages("/api/settings", {query: {limit: ALL}});
	const [open, setOpen] = useState<Setting>();
	const wanted = find.toLowerCase().split(/\s+/);
	const rows = list.items.filter(s => wanted.every(w => `${s.key} ${s.doc} ${s.value}`.toLowerCase().includes(w)));

	return (
		<>
			<div class="filters">
				<Field label={t.find} type="search" value={find} onValue={v => goWords({find: v})} />
			</div>
			<ProblemNote problem={list.problem} again={list.reload} />
			<p class="quiet" role="status">
				{list.items.length > 0 && find.trim() !== "" ? t.found(rows.length, list.items.length) : ""}
			</p>
			{list.loading && list.items.length === 0 ? (
				<Loading />
			) : rows.length === 0 && !list.problem ? (
				<Empty title={t.none} />
			) : (
				<Table
					label={t.title}
					rows={rows}
					keyOf={s => s.key}
					columns={[
						{
							name: t.one,
							kind: "wide",
							cell: s => (
								<>
									<code>
										<Text text={s.key} />
									</code>
									<div class="words">
										<Text text={s.doc} />
									</div>
								</>
							),
						},
						{name: t.value, cell: s => <Value s={s} />},
						{name: t.may, cell: s => bounds(s)},
						...(meAdministers()
							? [
									{
										name: en.actions,
										cell: (s: Setting) => (
											<button
												type="button"
												class="small"
												aria-label={show(t.changeTitle(s.key))}
												onClick={() => setOpen(s)}
											>
												{t.change}
											</button>
										),
									},
								]
							: []),
					]}
				/>
			)}
			{list.more ? (
				<p>
					<button type="button" onClick={list.more}>
						{en.more}
					</button>
				</p>
			) : null}
			{open ? (
				<Change
					key={open.key}
					row={open}
					onClose={() => setOpen(undefined)}
					onDone={text => {
						setOpen(undefined);
						list.reload();
						done(text);
					}}
				/>
			) : null}
		</>
	);
}

/* Draws the dialog with what the list knew; a change waits until the newest is there. */
function Change({row, onClose, onDone}: {row: Setting; onClose: () => void; onDone: (text: string) => void}) {
	const name = row.key,
		read = useRead("/api/settings/{name}", {path: {name}});
	const [typed, setTyped] = useState<string>(),
		[stale, setStale] = useState(false);
	const s = read.data ?? row,
		value = typed ?? s.value;

	/* A refusal for a change of somebody else's shows what holds now; what was typed stays in the field. */
	async function orRead(f: () => Promise<unknown>) {
		setStale(false);
		try {
			await f();
		} catch (e) {
			if (problemOf(e).status === 412) {
				setStale(true);
				read.reload();
			}
			throw e;
		}
	}
	const act = useAction(async () => {
		await orRead(() => api.put("/api/settings/{name}", {path: {name}, body: {value}, match: read.etag ?? undefined}));
		onDone(t.saved(name));
	});
	const refused = act.problem?.failure_mode === "invalid_params" ? show(act.problem.detail) : undefined;

	return (
		<Dialog title={show(t.changeTitle(name))} onClose={onClose}>
			<ProblemNote problem={read.problem} again={read.reload} />
			<p class="words">
				<Text text={s.doc} />
			</p>
			<p class="quiet">
				{t.now}:{" "}
				<code>
					<Text text={s.value} />
				</code>{" "}
				· {t.was}:{" "}
				<code>
					<Text text={s.default} />
				</code>
				{s.updated_at ? (
					<>
						{" "}
						· {t.changedBy} <Text text={s.updated_by} />, <Time at={s.updated_at} />
					</>
				) : null}
			</p>
			{stale ? (
				<Note kind="warn">
					<p role="alert">{t.stale}</p>
				</Note>
			) : null}
			<Form
				label={t.set1}
				busy={act.busy}
				problem={stale || refused !== undefined ? undefined : act.problem}
				action={act.run}
				onCancel={onClose}
				disabled={read.etag === null}
			>
				{s.words ? (
					<Choice
						label={t.value}
						value={value}
						onValue={setTyped}
						error={refused}
						autofocus
						options={s.words.map(w => [w, w] as const)}
					/>
				) : (
					<Field
						label={t.value}
						hint={bounds(s)}
						error={refused}
						value={value}
						onValue={setTyped}
						autofocus
						required={s.type === "integer"}
					/>
				)}
			</Form>
			{s.updated_at ? (
				<p>
					<AskButton
						label={t.reset}
						title={show(t.resetTitle(name))}
						action={async () => {
							await orRead(() => api.delete("/api/settings/{name}", {path: {name}, match: read.etag ?? undefined}));
							onDone(t.wasReset(name));
						}}
					>
						<p>
							{t.resetWhy}{" "}
							<code>
								<Text text={s.default} />
							</code>
						</p>
					</AskButton>
				</p>
			) : null}
		</Dialog>
	);
}
