/*
 * The rights that a yes gives, above all code. For a version these are what it
 * has more than the last approved one, as the server found them in both
 * contents; for a grant and a call, the thing itself.
 */
import type {Schemas} from "../../api/client";
import {en} from "../../en";
import {link} from "../../route";
import {CodeView} from "../../ui/code";
import {DiffView} from "../../ui/diff";
import {Loading, Note, ProblemNote} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Facts} from "../../ui/table";
import {bytes, count, Hash, Text, Time} from "../../ui/text";
import type {Problem} from "../../api/client";
import type {Drawn} from "./content";
import {jsonShown} from "./json";
import {amount, Changes, Code, fieldName} from "./values";

export type Difference = Schemas["Difference"];

/* Of a version: the member of gains, and the field of the content that has all. */
const KINDS = [
	["hosts", "requires"],
	["secrets", "secrets"],
	["modules", "modules"],
	["client_capabilities", "client_capabilities"],
] as const;

/** Returns a content's member that is a list of names. */
export function namesOf(content: object, field: string): string[] {
	const value = Object.hasOwn(content, field) ? (content as Record<string, unknown>)[field] : undefined;
	return Array.isArray(value) ? value.map(String) : [];
}

/** Lists in short words what a yes gives, for the question before it. */
export function rightsShort(d: Difference): string[] {
	return [
		...KINDS.flatMap(([gain]) => (d.gains[gain] ?? []).map(n => en.approvals.gain(en.approvals.rightOne[gain]!, n))),
		...(d.gains.limits ?? []).map(l => en.approvals.gain(fieldName(l.limit), limitText(l))),
		...(d.gains.other ?? []),
	];
}

function limitText({limit, before, after}: {limit: string; before: number | null; after: number | null}): string {
	const side = (n: number | null) => (n === null ? en.approvals.serversOwn : amount(limit, n));
	return en.approvals.then(side(before), side(after));
}

/** Draws what a version may do, against the last approved one. */
export function VersionRights({
	drawn,
	difference,
	problem,
}: {
	drawn: Drawn;
	difference: Difference | undefined;
	problem: Problem | undefined;
}) {
	const t = en.approvals,
		content = drawn.request.content as Record<string, unknown>,
		d = difference;

	if (d === undefined)
		return (
			<Part title={t.rights}>
				{problem ? (
					<>
						<ProblemNote problem={problem} />
						<p>{t.noDifference}</p>
					</>
				) : (
					<Loading />
				)}
			</Part>
		);
	const field = (name: string) => d.fields.find(f => f.field === name);
	const rows: [string, preact.ComponentChild][] = [];
	for (const [gain, name] of KINDS) {
		const plus = d.gains[gain] ?? [],
			before = field(name)?.before,
			all = namesOf(content, name);
		const minus = Array.isArray(before) ? before.filter(n => !all.includes(n)) : [];
		if (all.length > 0 || minus.length > 0)
			rows.push([t.rightMany[gain]!, <Changes plus={plus} minus={minus} same={all.filter(n => !plus.includes(n))} />]);
	}
	const limits = d.gains.limits ?? [],
		other = d.gains.other ?? [];
	if (limits.length > 0)
		rows.push([
			t.limits,
			<ul class="plain-list">
				{limits.map(l => (
					<li key={l.limit}>
						<New /> {fieldName(l.limit)}: {limitText(l)}
					</li>
				))}
			</ul>,
		]);
	const confirm = field("confirm"),
		asks = content.confirm === 1;
	rows.push([t.confirm, asks ? (confirm && d.base ? t.confirmNew : t.confirmYes) : t.confirmNo]);
	if (other.length > 0)
		rows.push([
			t.otherGains,
			<ul class="plain-list">
				{other.map(o => (
					<li key={o}>
						<New /> <Text text={o} />
					</li>
				))}
			</ul>,
		]);
	const annotations = field("annotations");
	if (annotations) {
		const side = (v: unknown) => (typeof v === "string" ? jsonShown(v) : "");
		rows.push([
			fieldName("annotations"),
			<>
				<p class="quiet">{t.annotationsWhy}</p>
				<DiffView before={side(annotations.before)} after={side(annotations.after)} label={t.annotationsLabel} lang="json" />
			</>,
		]);
	}
	const gains = rightsShort(d).length;
	return (
		<Part title={t.rights}>
			{d.base === null ? (
				<p>{t.firstVersion}</p>
			) : (
				<p>
					{t.compared} <Hash hash={d.base} />
				</p>
			)}
			{gains === 0 ? (
				<Note kind="good">
					<p>{d.base === null ? t.asksNothing : t.gainsNothing}</p>
				</Note>
			) : (
				<Note kind="warn">
					<p>
						<strong>{t.gainsCount(gains)}</strong>
					</p>
				</Note>
			)}
			<dl class="rights">
				{rows.map(([name, value]) => (
					<div key={name}>
						<dt>{name}</dt>
						<dd>{value}</dd>
					</div>
				))}
			</dl>
		</Part>
	);
}

function New() {
	return <span class="state warn">{en.approvals.isNew}</span>;
}

/** Draws what a grant gives: a module to a tool, or a host to a server. */
export function GrantRights({drawn}: {drawn: Drawn}) {
	const t = en.approvals,
		r = drawn.request,
		c = r.content as Record<string, unknown>;
	const text = (name: string) => (Object.hasOwn(c, name) && c[name] !== null ? String(c[name]) : "");
	const strict = (name: string) => (text(name) ? <Code text={text(name)} /> : null);

	if (r.kind === "network") {
		const host = text("host"),
			wild = host.includes("*");
		return (
			<Part title={t.rights}>
				<p class="grant">
					<New /> <Code text={host} /> {text("port") ? t.port(text("port")) : t.ports}{" "}
					<span class="quiet">
						<Text text={text("proto").toUpperCase()} />
					</span>
				</p>
				{host === "*" ? (
					<Note kind="bad">
						<p>{t.anyHost}</p>
					</Note>
				) : wild ? (
					<Note kind="warn">
						<p>{t.wildHost}</p>
					</Note>
				) : null}
				<p class="quiet">{t.grantServer}</p>
				<Facts
					facts={[
						[t.server, strict("server")],
						[t.fields.server_id!, strict("server_id")],
					]}
				/>
			</Part>
		);
	}
	return (
		<Part title={t.rights}>
			<p class="grant">
				<New />{" "}
				<code>
					<Text text={text("module") + (c.recorded ? `==${text("version")}` : "")} strict />
				</code>
			</p>
			{c.recorded ? null : (
				<Note kind="bad">
					<p>{t.notRecorded}</p>
				</Note>
			)}
			<p class="quiet">{t.grantTool}</p>
			<Facts
				facts={[
					[t.server, strict("server")],
					[t.tool, strict("tool")],
					[t.fields.tool_id!, strict("tool_id")],
					[t.fields.files!, typeof c.files === "number" ? count(c.files) : null],
					[t.fields.size!, typeof c.size === "number" ? bytes(c.size) : null],
					[t.fields.digest!, strict("digest")],
				]}
			/>
			<Wheel drawn={drawn} />
		</Part>
	);
}

function Wheel({drawn}: {drawn: Drawn}) {
	const t = en.approvals,
		{wheel, install} = drawn.request,
		advisories = wheel?.advisories;

	return (
		<>
			{install ? (
				<p>
					{t.install(install.state)} {install.error ? <Text text={install.error} /> : null}{" "}
					{install.next_at && install.state === "waiting" ? <Time at={install.next_at} /> : null}
				</p>
			) : null}
			{wheel ? (
				<>
					<h3>{t.wheel}</h3>
					<p class="quiet">{t.wheelWhy}</p>
					<Facts
						facts={[
							[t.summary, wheel.summary ? <Text text={wheel.summary} /> : null],
							[t.license, wheel.license ? <Text text={wheel.license} /> : null],
							[t.file, <Text text={wheel.filename} strict />],
							[t.from, <Text text={wheel.url} strict />],
							["SHA-256", <Hash hash={wheel.sha256} />],
							[t.requiresPython, wheel.requires_python ? <Text text={wheel.requires_python} /> : null],
							[
								t.requires,
								wheel.requires?.length ? (
									<ul class="plain-list">
										{wheel.requires.map(q => (
											<li key={q}>
												<Text text={q} />
											</li>
										))}
									</ul>
								) : null,
							],
						]}
					/>
					{advisories === null || advisories === undefined ? (
						<p>{t.noFeed}</p>
					) : "error" in advisories ? (
						<Note kind="warn">
							<p>
								{t.feedFailed} <Text text={advisories.error} />
							</p>
						</Note>
					) : advisories.known.length === 0 ? (
						<Note kind="good">
							<p>{t.noAdvisory}</p>
						</Note>
					) : (
						<Note kind="bad">
							<p>
								<strong>{t.advisories}</strong>
							</p>
							<ul>
								{advisories.known.map(a => (
									<li key={a.id}>
										<code>
											<Text text={a.id} />
										</code>{" "}
										<Text text={a.summary} />
									</li>
								))}
							</ul>
							{advisories.more > 0 ? <p>{t.moreAdvisories(advisories.more)}</p> : null}
						</Note>
					)}
				</>
			) : null}
		</>
	);
}

/** Draws a call that waits for a person: who calls what, with which arguments. */
export function CallRights({drawn}: {drawn: Drawn}) {
	const t = en.approvals,
		r = drawn.request,
		c = r.content as Record<string, unknown>;
	const strict = (name: string) => <Code text={c[name] ?? ""} />;
	const expires = String(c.expires_at ?? ""),
		over = r.state === "pending" && new Date(expires).getTime() < Date.now();

	return (
		<Part title={t.call}>
			<p>{t.callWhy}</p>
			<Facts
				facts={[
					[t.tool, r.tool_id ? <a href={link("tools", r.tool_id)}>{strict("tool")}</a> : strict("tool")],
					[t.principal, strict("principal")],
					[t.listener, strict("listener")],
					[t.version, r.version ?? null],
					[t.versionHash, <Hash hash={String(c.version_hash ?? "")} />],
					[t.expires, <Time at={expires} />],
					[t.usedAt, r.used_at ? <Time at={r.used_at} /> : null],
					[t.execution, r.execution ? <a href={link("calls", r.execution)}>{t.openCall}</a> : null],
				]}
			/>
			{over ? (
				<Note kind="bad">
					<p>{t.over}</p>
				</Note>
			) : null}
			<h3>{t.arguments}</h3>
			<CodeView text={jsonShown(drawn.members.get("arguments") ?? "")} label={t.arguments} lang="json" />
		</Part>
	);
}
