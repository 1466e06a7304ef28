/*
 * Secrets of servers. A value goes to the vault and comes back by no way: this
 * page never has one but while it is typed, and forgets it once it is sent.
 */
import {useEffect, useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {type Paged, useAction, usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import type {PageProps} from "../../pages";
import {goWords, link} from "../../route";
import {AskButton, Dialog} from "../../ui/dialog";
import {Area, Choice, Field, Form, Tick} from "../../ui/form";
import {done, doneThere, Empty, Loading, ProblemNote, State} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Facts, List, Table} from "../../ui/table";
import {count, Text, Time} from "../../ui/text";

const t = en.secrets;
type Item = Schemas["SecretItem"];

export default function Secrets({rest: [server, key], query}: PageProps) {
	return server !== undefined && key !== undefined ? <One server={server} name={key} /> : <All server={query.get("server") ?? ""} />;
}

function All({server}: {server: string}) {
	return server === "" ? <OfAll /> : <OfOne server={server} />;
}

function OfAll() {
	return <Listed server="" list={usePages("/api/secrets")} />;
}

function OfOne({server}: {server: string}) {
	const {data, problem, reload} = useRead("/api/servers/{name}/secrets", {path: {name: server}});
	const loading = data === undefined && problem === undefined;
	return <Listed server={server} list={{items: data?.items ?? [], problem, loading, more: undefined, reload}} />;
}

/* Draws the secrets of one server, or of all ("") with their servers. */
function Listed({server, list}: {server: string; list: Paged<Item>}) {
	const servers = usePages("/api/servers", {query: {limit: 200}});
	const [set, setSet] = useState<Item>(),
		[fresh, setFresh] = useState(false);

	useEffect(() => setSet(undefined), [server]);
	return (
		<Page
			title={t.title}
			intro={t.intro}
			actions={
				meAdministers() && servers.items.length > 0 ? (
					<button type="button" class="primary" onClick={() => setFresh(true)}>
						{t.new}
					</button>
				) : null
			}
		>
			<ProblemNote problem={servers.problem} again={servers.reload} />
			{servers.items.length > 0 ? (
				<div class="filters">
					<Choice
						label={t.server}
						value={server}
						onValue={v => goWords({server: v})}
						options={[["", t.allServers], ...optionsOf(servers.items, server)]}
					/>
				</div>
			) : null}
			{servers.loading && servers.items.length === 0 ? (
				<Loading />
			) : servers.items.length === 0 && !servers.problem ? (
				<Empty title={t.noServer}>
					<p>{t.noServerWhy}</p>
				</Empty>
			) : (
				<List<Item>
					label={t.title}
					list={list}
					keyOf={s => `${s.server}/${s.key}`}
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
									<a href={link("secrets", s.server, s.key)}>
										<code>
											<Text text={s.key} />
										</code>
									</a>
									{s.description ? (
										<div class="quiet plain-weight">
											<Text text={s.description} max={200} />
										</div>
									) : null}
								</>
							),
						},
						...(server === ""
							? [
									{
										name: t.server,
										cell: (s: Item) => (
											<a href={link("secrets", {server: s.server})}>
												<Text text={s.server} />
											</a>
										),
									},
								]
							: []),
						{name: t.value, cell: s => <Value s={s} />},
						{
							name: t.set,
							kind: "narrow",
							cell: s =>
								s.set_at ? (
									<>
										<Time at={s.set_at} /> {t.by} <Text text={s.set_by} />
									</>
								) : null,
						},
						...(meAdministers()
							? [
									{
										name: en.actions,
										cell: (s: Item) => (
											<button
												type="button"
												class="small"
												aria-label={(s.has_value ? t.rotateLabel : t.setLabel)(server === "" ? t.onServer(s.key, s.server) : s.key)}
												onClick={() => setSet(s)}
											>
												{s.has_value ? t.rotate : t.setValue}
											</button>
										),
									},
								]
							: []),
					]}
				/>
			)}
			{set ? (
				<SetValue
					server={set.server}
					name={set.key}
					onClose={() => setSet(undefined)}
					onDone={() => {
						setSet(undefined);
						list.reload();
					}}
				/>
			) : null}
			{fresh ? <New at={server} servers={servers.items} onClose={() => setFresh(false)} onDone={list.reload} /> : null}
		</Page>
	);
}

function Value({s}: {s: Item}) {
	return s.has_value ? <State state={t.version(s.version)} kind="good" /> : <State state={t.noValue} kind="warn" />;
}

/** Draws the dialog that sets or rotates a value. */
function SetValue({server, name, onClose, onDone}: {server: string; name: string; onClose: () => void; onDone: () => void}) {
	const [value, setValue] = useState(""),
		[lines, setLines] = useState(false);
	const act = useAction(async () => {
		await api.put("/api/servers/{name}/secrets/{name2}", {path: {name: server, name2: name}, body: {value}});
		setValue("");
		done(t.isSet(name));
		onDone();
	});
	return (
		<Dialog title={t.setTitle(name)} onClose={onClose}>
			<p>{t.setWhy}</p>
			<Form label={t.setValue} busy={act.busy} problem={act.problem} action={act.run} onCancel={onClose}>
				{lines ? (
					<Area label={t.newValue} code rows={6} value={value} onValue={setValue} required autofocus />
				) : (
					<Field label={t.newValue} type="password" autocomplete="off" value={value} onValue={setValue} required autofocus />
				)}
				<Tick label={t.lines} value={lines} onValue={setLines} />
			</Form>
		</Dialog>
	);
}

/* Returns the servers to choose from. One that is not among the first is there by its name. */
function optionsOf(servers: readonly {name: string}[], chosen: string): (readonly [string, string])[] {
	const names = servers.map(s => s.name);
	return (chosen === "" || names.includes(chosen) ? names : [...names, chosen]).map(n => [n, n] as const);
}

function New({at, servers, onClose, onDone}: {at: string; servers: readonly {name: string}[]; onClose: () => void; onDone: () => void}) {
	const [server, setServer] = useState(at || (servers.length === 1 ? servers[0]!.name : "")),
		[key, setKey] = useState(""),
		[description, setDescription] = useState("");
	const act = useAction(async () => {
		await api.post("/api/servers/{name}/secrets", {path: {name: server}, body: {key, description}});
		done(t.isMade(key));
		onDone();
		onClose();
	});
	return (
		<Dialog title={t.new} onClose={onClose}>
			<Form label={t.make} busy={act.busy} problem={act.problem} action={act.run} onCancel={onClose}>
				{at === "" ? (
					<Choice
						label={t.server}
						value={server}
						onValue={setServer}
						required
						options={[...(server === "" ? [["", t.chooseServer] as const] : []), ...optionsOf(servers, server)]}
					/>
				) : null}
				<Field label={t.name} hint={t.nameHint} value={key} onValue={setKey} required maxLength={255} autofocus />
				<Field label={t.description} value={description} onValue={setDescription} maxLength={2000} />
			</Form>
		</Dialog>
	);
}

function One({server, name}: {server: string; name: string}) {
	const read = useRead("/api/servers/{name}/secrets/{name2}", {path: {name: server, name2: name}}),
		s = read.data,
		path = {name: server, name2: name};
	const [set, setSet] = useState(false),
		[description, setDescription] = useState<string>();
	const describe = useAction(async () => {
		await api.patch("/api/servers/{name}/secrets/{name2}", {
			path,
			match: read.etag ?? undefined,
			body: {description: description ?? ""},
		});
		setDescription(undefined);
		done(t.described);
		read.reload();
	});

	return (
		<Page
			title={name}
			heading={
				<code>
					<Text text={name} />
				</code>
			}
			back={[link("secrets", {server}), t.title]}
		>
			<ProblemNote problem={read.problem} again={read.reload} />
			{s === undefined ? (
				read.problem ? null : (
					<Loading />
				)
			) : (
				<>
					<Part title={t.standing} actions={<Value s={s} />}>
						{s.description ? (
							<p>
								<Text text={s.description} />
							</p>
						) : null}
						<Facts
							facts={[
								[t.server, <Text text={s.server} />],
								[
									t.made,
									<>
										<Time at={s.created_at} /> {t.by} <Text text={s.created_by} />
									</>,
								],
								[
									t.set,
									s.set_at ? (
										<>
											<Time at={s.set_at} /> {t.by} <Text text={s.set_by} />
										</>
									) : null,
								],
							]}
						/>
						{meAdministers() ? (
							<div class="buttons">
								<button type="button" class="primary" onClick={() => setSet(true)}>
									{s.has_value ? t.rotate : t.setValue}
								</button>
								<button type="button" onClick={() => setDescription(s.description)}>
									{t.describe}
								</button>
								<AskButton
									danger
									label={t.delete}
									title={t.deleteTitle(name)}
									action={async () => {
										await api.delete("/api/servers/{name}/secrets/{name2}", {path, match: read.etag ?? undefined});
										doneThere(t.deleted);
										location.hash = link("secrets", {server});
									}}
								>
									<p>{t.deleteWhy(s.used_by.length)}</p>
								</AskButton>
							</div>
						) : null}
					</Part>
					<Part title={t.usedBy}>
						{s.used_by.length + s.sources.length === 0 ? (
							<p class="quiet">{t.unused}</p>
						) : (
							<ul class="lines">
								{s.used_by.map(u => (
									<li key={u.version_id}>
										<a href={link("tools", u.tool_id, "versions", String(u.version))}>
											<Text text={u.tool} /> {en.tools.versionTitle(String(u.version))}
										</a>{" "}
										<State state={u.serving ? "serving" : u.state} />
									</li>
								))}
								{s.sources.map(x => (
									<li key={x}>
										{t.source} <Text text={x} />
									</li>
								))}
							</ul>
						)}
					</Part>
					<Part title={t.history}>
						<Table
							label={en.tableOf(t.history)}
							rows={s.history}
							keyOf={h => `${h.at} ${h.action} ${h.version}`}
							columns={[
								{name: t.change, kind: "wide", cell: h => t.changes[h.action]},
								{name: t.versionName, kind: "number", cell: h => count(h.version)},
								{name: t.by, cell: h => <Text text={h.actor} />},
								{name: t.at, cell: h => <Time at={h.at} />},
							]}
						/>
					</Part>
				</>
			)}
			{set ? (
				<SetValue
					server={server}
					name={name}
					onClose={() => setSet(false)}
					onDone={() => {
						setSet(false);
						read.reload();
					}}
				/>
			) : null}
			{description !== undefined ? (
				<Dialog title={t.describe} onClose={() => setDescription(undefined)}>
					<Form
						label={t.save}
						busy={describe.busy}
						problem={describe.problem}
						action={describe.run}
						onCancel={() => setDescription(undefined)}
					>
						<Field label={t.description} value={description} onValue={setDescription} maxLength={2000} autofocus />
					</Form>
				</Dialog>
			) : null}
		</Page>
	);
}
