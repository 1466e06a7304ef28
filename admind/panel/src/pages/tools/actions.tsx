/* Changes of a tool that an administrator makes. */
import {useEffect, useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction, usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {AskButton, Dialog} from "../../ui/dialog";
import {Area, Field, Form} from "../../ui/form";
import {done, doneThere, ProblemNote} from "../../ui/notice";

const t = en.tools;
const REASON = {label: t.reason, hint: t.reasonHint};
const REASON_SHORT_MAX = 200;
const KEEP_MIN = 10;
const KEEP_MAX = 10_000;

/** Draws the button that makes a draft of an older version. */
export function Rollback({id, version, etag, onDone}: {id: string; version: number; etag: string | null; onDone: () => void}) {
	return (
		<AskButton
			small
			label={t.rollback}
			title={t.rollbackTitle(version)}
			action={async () => {
				await api.post("/api/tools/{id}/rollback", {path: {id}, body: {version}, match: etag ?? undefined});
				done(t.rolledBack(version));
				onDone();
			}}
		>
			<p>{t.rollbackWhy}</p>
		</AskButton>
	);
}

/** Draws the buttons. `onDone` is called after a change, `onGone` after the deletion. */
export function Actions({
	tool,
	etag,
	onDone,
	onGone,
}: {
	tool: Schemas["Tool"];
	etag: string | null;
	onDone: () => void;
	onGone: () => void;
}) {
	const id = tool.id,
		path = {id},
		match = etag ?? undefined;
	/* What a version asks for is no grant, so the store says which tools have a module. */
	const grants = usePages("/api/modules", {query: {limit: 200}}),
		granted = grants.items.filter(m => m.tools.includes(tool.exposed_name));
	useEffect(() => grants.more?.(), [grants.items.length, grants.more === undefined]);
	const after = (text: string) => {
		done(text);
		onDone();
	};

	return (
		<div class="buttons">
			{tool.enabled ? (
				<AskButton
					label={t.disable}
					title={t.disableTitle}
					reason={{...REASON, max: REASON_SHORT_MAX}}
					action={async reason => {
						await api.post("/api/tools/{id}/disable", {path, body: {reason}});
						after(t.disabled);
					}}
				>
					<p>{t.disableWhy}</p>
				</AskButton>
			) : (
				<AskButton
					label={t.enable}
					title={t.enableTitle}
					action={async () => {
						await api.post("/api/tools/{id}/enable", {path});
						after(t.enabled);
					}}
				>
					<p>{t.enableWhy}</p>
				</AskButton>
			)}
			{tool.serving_version != null ? (
				<AskButton
					danger
					label={t.revoke}
					title={t.revokeTitle}
					reason={{label: t.reason}}
					action={async reason => {
						await api.post("/api/tools/{id}/revoke", {path, body: {reason}});
						after(t.revoked);
					}}
				>
					<p>{t.revokeWhy}</p>
				</AskButton>
			) : null}
			<Describe tool={tool} match={match} onDone={() => after(t.described)} />
			{granted.map(m => (
				<AskButton
					key={m.name + m.version}
					label={t.takeModule(m.name)}
					title={t.takeModuleTitle(`${m.name} ${m.version}`)}
					action={async () => {
						await api.post("/api/tools/{id}/modules/{name}/revoke", {path: {id, name: m.name}, body: {version: m.version}});
						grants.reload();
						after(t.moduleTaken(m.name));
					}}
				>
					<p>{t.takeModuleWhy}</p>
				</AskButton>
			))}
			<Prune id={id} onDone={n => after(t.pruned(n))} />
			<AskButton
				danger
				label={t.delete}
				title={t.deleteTitle(tool.exposed_name)}
				action={async () => {
					await api.delete("/api/tools/{id}", {path, match});
					doneThere(t.deleted);
					onGone();
				}}
			>
				<p>{t.deleteWhy}</p>
			</AskButton>
		</div>
	);
}

function Prune({id, onDone}: {id: string; onDone: (pruned: number) => void}) {
	const [open, setOpen] = useState(false),
		[keep, setKeep] = useState("");
	const act = useAction(async () => {
		const {data} = await api.post("/api/tools/{id}/prune", {path: {id}, body: keep === "" ? {} : {keep: Number(keep)}});
		setOpen(false);
		onDone(data.pruned);
	});
	const close = () => {
		setOpen(false);
		act.clear();
	};

	return (
		<>
			<button type="button" onClick={() => setOpen(true)}>
				{t.prune}
			</button>
			{open ? (
				<Dialog title={t.pruneTitle} onClose={close}>
					<p>{t.pruneWhy}</p>
					<Form label={t.prune} busy={act.busy} problem={act.problem} action={act.run} onCancel={close}>
						<Field
							type="number"
							label={t.keep}
							hint={t.keepHint}
							value={keep}
							onValue={setKeep}
							min={KEEP_MIN}
							max={KEEP_MAX}
							autofocus
						/>
					</Form>
				</Dialog>
			) : null}
		</>
	);
}

function Describe({tool, match, onDone}: {tool: Schemas["Tool"]; match: string | undefined; onDone: () => void}) {
	const [open, setOpen] = useState(false);
	return (
		<>
			<button type="button" onClick={() => setOpen(true)}>
				{t.describe}
			</button>
			{open ? (
				<Dialog title={t.describeTitle} onClose={() => setOpen(false)}>
					<p>{t.draftWhy}</p>
					<DescribeForm
						tool={tool}
						match={match}
						onCancel={() => setOpen(false)}
						onDone={() => {
							setOpen(false);
							onDone();
						}}
					/>
				</Dialog>
			) : null}
		</>
	);
}

/* The title is in the newest version alone. */
function DescribeForm({
	tool,
	match,
	onCancel,
	onDone,
}: {
	tool: Schemas["Tool"];
	match: string | undefined;
	onCancel: () => void;
	onDone: () => void;
}) {
	const read = useRead("/api/tools/{id}/versions/{id2}", {path: {id: tool.id, id2: String(tool.version)}});
	const before = {name: tool.name, title: read.data?.title ?? "", description: tool.description ?? ""};
	const [typed, setTyped] = useState<Partial<typeof before>>({}),
		now = {...before, ...typed};
	const body = Object.fromEntries(Object.entries(typed).filter(([k, v]) => v !== before[k as keyof typeof before]));
	const act = useAction(async () => {
		await api.patch("/api/tools/{id}", {path: {id: tool.id}, match, body});
		onDone();
	});

	return (
		<>
			<ProblemNote problem={read.problem} again={read.reload} />
			<Form
				label={t.makeDraft}
				busy={act.busy}
				problem={act.problem}
				action={act.run}
				onCancel={onCancel}
				disabled={Object.keys(body).length === 0}
			>
				<Field label={t.name} value={now.name} onValue={name => setTyped({...typed, name})} required maxLength={64} autofocus />
				<Field
					label={t.titleOf}
					hint={t.titleHint}
					value={now.title}
					onValue={title => setTyped({...typed, title})}
					maxLength={200}
					disabled={read.data === undefined}
				/>
				<Area
					label={t.description}
					value={now.description}
					onValue={description => setTyped({...typed, description})}
					maxLength={2000}
				/>
			</Form>
		</>
	);
}
