/* One source: its state, the tools that it has, and what may be done with it. */
import {useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction, usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {go, link} from "../../route";
import {AskButton} from "../../ui/dialog";
import {Tick} from "../../ui/form";
import {done, doneThere, Empty, Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {SchemaTable} from "../../ui/schema";
import {Facts, List} from "../../ui/table";
import {count, Hash, show, Text, Time} from "../../ui/text";

const t = en.sources;
/* POST /api/sources/{id}/import takes so many names. */
const IMPORT_MAX = 200;

export function SourceOne({id}: {id: string}) {
	const read = useRead("/api/sources/{id}", {path: {id}}),
		s = read.data;
	const tools = usePages("/api/sources/{id}/tools", {path: {id}, query: {limit: 200}});
	const [chosen, setChosen] = useState<string[]>([]),
		[outcome, setOutcome] = useState<Schemas["ImportedTools"]>(),
		[quarantined, setQuarantined] = useState<string[]>([]);
	const discover = useAction(async () => {
		const {data} = await api.post("/api/sources/{id}/discover", {path: {id}});
		setQuarantined(data.quarantined);
		setChosen([]);
		done(data.message);
		read.reload();
		tools.reload();
	});
	const bring = useAction(async () => {
		const {data} = await api.post("/api/sources/{id}/import", {path: {id}, body: {names: chosen.slice(0, IMPORT_MAX)}});
		setOutcome(data);
		setChosen([]);
		done(data.message);
		read.reload();
		tools.reload();
	});

	return (
		<Page title={s?.name ?? t.one} heading={s ? <Text text={s.name} /> : undefined} back={[link("sources"), t.title]}>
			<ProblemNote problem={read.problem} again={read.reload} />
			{s === undefined ? (
				read.problem ? null : (
					<Loading />
				)
			) : (
				<>
					<Part
						title={t.standing}
						actions={<State state={s.approval_status && s.approval_status !== "approved" ? s.approval_status : s.status} />}
					>
						{s.health && !s.health.ok && s.health.error ? (
							<Note kind="warn">
								<p>
									{t.lastError} <Text text={s.health.error} max={1000} />
								</p>
							</Note>
						) : null}
						{s.host_granted === false ? (
							<Note kind="warn">
								<p>
									{t.hostMissing} <a href={link("approvals", {kind: "network"})}>{en.approvals.title}</a>
								</p>
							</Note>
						) : null}
						<Facts
							facts={[
								[
									t.url,
									<code>
										<Text text={s.url} strict />
									</code>,
								],
								[t.auth, en.servers.auths[s.auth_type]],
								[
									t.secret,
									s.auth_secret_name ? (
										<code>
											<Text text={s.auth_secret_name} />
										</code>
									) : null,
								],
								[t.transport, <Text text={s.transport_type} />],
								[t.protocol, s.protocol ? <Text text={s.protocol} max={40} /> : null],
								[t.tools, count(s.tool_count)],
								[t.asked, s.last_discovered_at ? <Time at={s.last_discovered_at} /> : t.never],
								[
									t.made,
									<>
										<Time at={s.created_at} /> {t.by} <Text text={s.created_by} />
									</>,
								],
								[t.review, s.tool_id ? <a href={link("tools", s.tool_id)}>{t.versions}</a> : null],
							]}
						/>
						{s.oauth ? <Oauth id={id} oauth={s.oauth} /> : null}
						{meAdministers() ? (
							<div class="buttons">
								<button type="button" class="primary" onClick={discover.run} aria-disabled={discover.busy}>
									{discover.busy ? t.asking : t.discover}
								</button>
								<AskButton
									danger
									label={t.forget}
									title={t.forgetTitle(s.name)}
									action={async () => {
										await api.delete("/api/sources/{id}", {path: {id}});
										doneThere(t.forgotten);
										go(link("sources"));
									}}
								>
									<p>{t.forgetWhy}</p>
								</AskButton>
							</div>
						) : null}
						<ProblemNote problem={discover.problem} />
					</Part>
					<Part
						title={t.itsTools}
						actions={
							meAdministers() && chosen.length > 0 ? (
								<button type="button" class="primary" onClick={bring.run} aria-disabled={bring.busy}>
									{bring.busy ? en.working : t.import(chosen.length)}
								</button>
							) : null
						}
					>
						<ProblemNote problem={bring.problem} />
						{quarantined.length > 0 ? (
							<Note kind="warn">
								<p>{t.quarantined}</p>
								<ul>
									{quarantined.map(x => (
										<li key={x}>
											<Text text={x} strict />
										</li>
									))}
								</ul>
							</Note>
						) : null}
						{outcome ? <Outcome outcome={outcome} /> : null}
						<List
							label={en.tableOf(t.itsTools)}
							list={tools}
							keyOf={x => x.name}
							empty={
								<Empty title={t.noTools}>
									<p>{t.noToolsWhy}</p>
								</Empty>
							}
							columns={[
								{
									name: t.tool,
									kind: "wide",
									cell: x => (
										<>
											{meAdministers() ? (
												<Tick
													label={show(x.name, true)}
													value={chosen.includes(x.name)}
													onValue={on => setChosen(c => (on ? [...c, x.name] : c.filter(n => n !== x.name)))}
												/>
											) : (
												<Text text={x.name} strict />
											)}
											<details class="plain-weight">
												<summary>{t.definition}</summary>
												<p>
													<Text text={x.description} max={2000} />
												</p>
												<SchemaTable schema={x.input_schema} />
											</details>
										</>
									),
								},
								{
									name: t.imported,
									cell: x =>
										x.imported?.tool_id ? (
											<>
												<a href={link("tools", x.imported.tool_id)}>
													<Text text={x.imported.name} />
												</a>{" "}
												{x.imported.changed ? <State state={t.changed} kind="warn" /> : null}
											</>
										) : null,
								},
								{name: t.fingerprint, kind: "narrow", cell: x => <Hash hash={x.sha256} />},
							]}
						/>
					</Part>
				</>
			)}
		</Page>
	);
}

/* A tool that came in waits for a review; one that was left out has a reason. */
function Outcome({outcome}: {outcome: Schemas["ImportedTools"]}) {
	return (
		<Note kind={outcome.skipped_tools.length > 0 ? "warn" : "good"}>
			{outcome.imported_tools.length > 0 ? (
				<>
					<p>
						{t.came} <a href={link("approvals")}>{en.approvals.title}</a>
					</p>
					<ul>
						{outcome.imported_tools.map(x => (
							<li key={x.id}>
								<a href={link("tools", x.id)}>
									<Text text={x.exposed_name} strict />
								</a>
							</li>
						))}
					</ul>
				</>
			) : null}
			{outcome.skipped_tools.length > 0 ? (
				<>
					<p>{t.skipped}</p>
					<ul>
						{outcome.skipped_tools.map(x => (
							<li key={x.name}>
								<Text text={x.name} strict max={200} />: {t.whys[x.code]}
								{x.reason ? (
									<>
										. <Text text={x.reason} max={600} />
									</>
								) : null}
							</li>
						))}
					</ul>
				</>
			) : null}
		</Note>
	);
}

/* Returns the host of an address that may be a link: https, or http at this machine. undefined: any other, or none. */
function hostOf(url: string): string | undefined {
	const at = URL.canParse(url) ? new URL(url) : undefined;
	return at?.protocol === "https:" || (at?.protocol === "http:" && (at.hostname === "127.0.0.1" || at.hostname === "[::1]"))
		? at.host
		: undefined;
}

/* The consent is given at another site, which the person opens by a click. */
function Oauth({id, oauth}: {id: string; oauth: NonNullable<Schemas["Source"]["oauth"]>}) {
	const [url, setUrl] = useState<string>();
	const act = useAction(async () =>
		setUrl((await api.post("/api/sources/{id}/authorise", {path: {id}, body: {}})).data.authorization_url),
	);
	const safe = url !== undefined && hostOf(url) !== undefined;

	return (
		<Note kind={oauth.status === "authorised" ? "good" : "warn"}>
			<p>
				{t.oauth[oauth.status]}{" "}
				{oauth.expires_at ? (
					<>
						{t.expires} <Time at={oauth.expires_at} />
					</>
				) : null}
			</p>
			{meAdministers() ? (
				url === undefined ? (
					<p>
						<button type="button" onClick={act.run} aria-disabled={act.busy}>
							{t.authorise}
						</button>
					</p>
				) : safe ? (
					<p>
						<a href={url} target="_blank" rel="noopener noreferrer">
							{t.openConsent}
						</a>{" "}
						<span class="quiet">
							<Text text={hostOf(url)} strict />
						</span>{" "}
						{t.consentThen}
					</p>
				) : (
					<p>
						{t.unsafe}{" "}
						<code>
							<Text text={url} strict max={400} />
						</code>
					</p>
				)
			) : null}
			<ProblemNote problem={act.problem} />
		</Note>
	);
}
