/* One server: its state, what may be done with it, and what belongs to it. */
import {useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {go, link} from "../../route";
import {AskButton, Dialog} from "../../ui/dialog";
import {Area, Choice, Form} from "../../ui/form";
import {done, doneThere, Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Facts} from "../../ui/table";
import {count, Text, Time} from "../../ui/text";
import {Ask} from "./ask";
import {Limits} from "./limits";

const t = en.servers;
const REASON = {label: t.reason, hint: t.reasonHint, max: 200};
type Server = Schemas["Server"];

export function ServerOne({id}: {id: string}) {
	const read = useRead("/api/servers/{id}", {path: {id}}),
		s = read.data;
	return (
		<Page title={s?.name ?? t.one} heading={s ? <Text text={s.name} /> : undefined} back={[link("servers"), t.title]}>
			<ProblemNote problem={read.problem} again={read.reload} />
			{s === undefined ? (
				read.problem ? null : (
					<Loading />
				)
			) : (
				<>
					<Part title={t.standing} actions={<State state={s.deleted_at ? "deleted" : s.status} />}>
						{s.status === "stopped" && s.stopped_by ? (
							<Note kind="warn">
								<p>
									{t.stoppedBy} <Text text={s.stopped_by} />, <Time at={s.stopped_at} />
									{s.stopped_reason ? (
										<>
											: <Text text={s.stopped_reason} />
										</>
									) : null}
								</p>
								{s.stopped_authority ? <p>{t.authorities[s.stopped_authority]}</p> : null}
							</Note>
						) : null}
						{s.description ? (
							<p>
								<Text text={s.description} />
							</p>
						) : null}
						<Facts
							facts={[
								[t.tools, <a href={link("tools", {server: id})}>{count(s.tool_count)}</a>],
								[t.names, t.exposes[s.expose]],
								[t.network, s.network_access_policy ? t.policies[s.network_access_policy] : null],
								[
									t.made,
									<>
										<Time at={s.created_at} /> {t.by} <Text text={s.created_by} />
									</>,
								],
							]}
						/>
						<p class="buttons">
							<a href={link("secrets", {server: s.name})}>{en.secrets.title}</a>
							<a href={link("network", {server: id})}>{en.network.title}</a>
							<a href={link("sources", {server: id})}>{en.sources.title}</a>
							<a href={link("calls", {server: id})}>{en.calls.title}</a>
						</p>
						{meAdministers() && !s.deleted_at ? <Actions s={s} etag={read.etag} onDone={read.reload} /> : null}
					</Part>
					{!s.deleted_at ? <Limits id={id} /> : null}
					{meAdministers() && !s.deleted_at ? <Ask id={id} /> : null}
				</>
			)}
		</Page>
	);
}

function Actions({s, etag, onDone}: {s: Server; etag: string | null; onDone: () => void}) {
	const path = {id: s.id},
		match = etag ?? undefined;
	const after = (text: string) => {
		done(text);
		onDone();
	};

	return (
		<div class="buttons">
			{s.status === "running" ? (
				<AskButton
					label={t.stop}
					title={t.stopTitle(s.name)}
					reason={REASON}
					action={async reason => {
						await api.post("/api/servers/{id}/stop", {path, body: {reason}});
						after(t.stopped);
					}}
				>
					<p>{t.stopWhy}</p>
				</AskButton>
			) : (
				<AskButton
					label={t.start}
					title={t.startTitle(s.name)}
					action={async () => {
						await api.post("/api/servers/{id}/start", {path});
						after(t.started);
					}}
				>
					<p>{t.startWhy}</p>
				</AskButton>
			)}
			<Describe s={s} match={match} reload={onDone} onDone={() => after(t.described)} />
			<Names s={s} onDone={() => after(t.namesSet)} />
			{s.network_access_policy === "allow_all_public" ? (
				<AskButton
					label={t.closeNetwork}
					title={t.closeNetworkTitle}
					action={async () => {
						await api.post("/api/servers/{id}/network-policy", {path, body: {policy: "require_approval"}});
						after(t.networkClosed);
					}}
				>
					<p>{t.closeNetworkWhy}</p>
				</AskButton>
			) : (
				<AskButton
					label={t.openNetwork}
					title={t.openNetworkTitle}
					reason={{label: t.justification}}
					action={async justification => {
						await api.post("/api/servers/{id}/network-policy", {path, body: {policy: "allow_all_public", justification}});
						after(t.networkAsked);
					}}
				>
					<p>{t.openNetworkWhy}</p>
				</AskButton>
			)}
			<AskButton
				danger
				label={t.delete}
				title={t.deleteTitle(s.name)}
				action={async () => {
					await api.delete("/api/servers/{id}", {path, match});
					doneThere(t.deleted);
					go(link("servers"));
				}}
			>
				<p>{t.deleteWhy(s.tool_count)}</p>
			</AskButton>
		</div>
	);
}

function Describe({
	s,
	match,
	reload,
	onDone,
}: {
	s: Server;
	match: string | undefined;
	reload: () => void;
	onDone: () => void;
}) {
	const [open, setOpen] = useState(false),
		[text, setText] = useState(s.description);
	const act = useAction(async () => {
		await api.patch("/api/servers/{id}", {path: {id: s.id}, match, body: {description: text}});
		setOpen(false);
		onDone();
	});
	return (
		<>
			<button
				type="button"
				onClick={() => {
					setText(s.description);
					act.clear();
					setOpen(true);
				}}
			>
				{t.describe}
			</button>
			{open ? (
				<Dialog title={t.describe} onClose={() => setOpen(false)}>
					<Form label={t.save} busy={act.busy} problem={act.problem} action={act.run} onCancel={() => setOpen(false)}>
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
						<Area label={t.description} value={text} onValue={setText} maxLength={2000} autofocus />
					</Form>
				</Dialog>
			) : null}
		</>
	);
}

function Names({s, onDone}: {s: Server; onDone: () => void}) {
	const [open, setOpen] = useState(false),
		[expose, setExpose] = useState<Server["expose"]>(s.expose);
	const act = useAction(async () => {
		await api.put("/api/servers/{id}/expose", {path: {id: s.id}, body: {expose}});
		setOpen(false);
		onDone();
	});
	return (
		<>
			<button
				type="button"
				onClick={() => {
					setExpose(s.expose);
					act.clear();
					setOpen(true);
				}}
			>
				{t.changeNames}
			</button>
			{open ? (
				<Dialog title={t.changeNames} onClose={() => setOpen(false)}>
					<p>{t.namesWhy}</p>
					<Form label={t.save} busy={act.busy} problem={act.problem} action={act.run} onCancel={() => setOpen(false)}>
						<Choice
							label={t.names}
							value={expose}
							onValue={v => setExpose(v === "bare" ? "bare" : "prefixed")}
							options={Object.entries(t.exposes)}
						/>
					</Form>
				</Dialog>
			) : null}
		</>
	);
}
