/* The review of one request: what it asks for, above what it is; then the decision. */
import {useEffect, useState} from "preact/hooks";
import type {Schemas} from "../../api/client";
import {useRead} from "../../api/use";
import {en} from "../../en";
import {meName, meReviews} from "../../me";
import {go, link} from "../../route";
import {done, Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Facts} from "../../ui/table";
import {Hash, show, Text, Time} from "../../ui/text";
import {Affected, cannotApprove, Marks, Needs, Rejections} from "./beside";
import {Contents} from "./changes";
import {Comments} from "./comments";
import {useContent} from "./content";
import {Approve, Reject, Revoke} from "./decide";
import {Evidence} from "./evidence";
import {KeysHelp, useKeys} from "./keys";
import {requestName} from "./names";
import {reviewedSet} from "./reviewed";
import {CallRights, GrantRights, rightsShort, VersionRights} from "./rights";

/* The most that REST gives at once. */
const QUEUE = 200;

type Request = Schemas["Approval"];

/** Goes to an address and says there what was done. */
function goDone(to: string, text: string): void {
	/* The line of done() is cleared by the same event, before this listener. */
	window.addEventListener("hashchange", () => done(text), {once: true});
	go(to);
}

/** Draws the review page. */
export function One({id}: {id: string}) {
	const t = en.approvals,
		{drawn, newer, problem, check, reload} = useContent(id),
		r = drawn?.request;
	const version = r?.kind === "tool";
	const diff = useRead(version ? "/api/approvals/{id}/diff" : null, {path: {id}});
	const queue = useRead("/api/approvals", {query: {state: "pending", limit: QUEUE}});
	const decided = useRead(r && r.state !== "pending" ? "/api/approvals" : null, {
		query: {kind: r?.kind, state: r?.state, limit: QUEUE, ...(r?.tool_id ? {tool: r.tool_id} : {server: r?.server_id})},
	});
	const [asking, setAsking] = useState<"approve" | "reject" | "revoke" | "help">();
	const [began, setBegan] = useState<string>();
	/* A difference of other content is never drawn beside this one. */
	const fits = diff.data !== undefined && diff.etag === drawn?.etag,
		difference = fits ? diff.data : undefined;

	useEffect(() => {
		if (drawn !== undefined && (!version || fits)) reviewedSet(id, drawn.request.hash);
	}, [drawn?.etag, fits]);
	useEffect(() => {
		if (r !== undefined && began === undefined) setBegan(r.state);
	}, [r?.state]);
	useEffect(() => {
		if (diff.data !== undefined && drawn !== undefined && !fits && !diff.loading) {
			check();
			diff.reload();
		}
	}, [diff.etag, drawn?.etag]);

	const waiting = queue.data?.items ?? [],
		at = waiting.findIndex(i => i.id === id);
	const after = waiting[at + 1] ?? waiting[0],
		before = at > 0 ? waiting[at - 1] : undefined;
	const next = after?.id === id ? undefined : after;
	const summary = waiting[at] ?? decided.data?.items.find(i => i.id === id);
	const mine = summary?.first_approval?.by === meName();
	const may = meReviews() && drawn !== undefined,
		pending = r?.state === "pending";
	const canApprove = may && pending && !newer && !mine && !cannotApprove(drawn) && (!version || fits || diff.problem !== undefined);
	const canReject = may && pending;
	const canRevoke = may && r?.state === "approved" && r.kind !== "call" && decided.data !== undefined && !summary?.revoked;
	const name = r ? requestName(r) : "";
	const ended = (text: string) => {
		setAsking(undefined);
		goDone(next ? link("approvals", next.id) : link("approvals"), text);
	};
	const to = (item: {id: string} | undefined) => item && (() => go(link("approvals", item.id)));

	useKeys({
		j: to(next),
		n: to(next),
		k: to(before),
		p: to(before),
		a: canApprove ? () => setAsking("approve") : undefined,
		r: canReject ? () => setAsking("reject") : undefined,
		"?": () => setAsking("help"),
		c: () => document.querySelector<HTMLTextAreaElement>("#comment textarea")?.focus(),
	});

	const buttons =
		r === undefined ? null : (
			<>
				{canApprove ? (
					<button type="button" class="primary" onClick={() => setAsking("approve")}>
						{t.approve}
					</button>
				) : null}
				{canReject ? (
					<button type="button" class="danger" onClick={() => setAsking("reject")}>
						{t.reject}
					</button>
				) : null}
				{canRevoke ? (
					<button type="button" class="danger" onClick={() => setAsking("revoke")}>
						{t.revoke}
					</button>
				) : null}
			</>
		);
	return (
		<Page
			title={r ? t.pageTitle(kindName(r), show(name, true)) : t.title}
			back={[link("approvals"), t.title]}
			heading={
				r ? (
					<>
						<span class="kind">{kindName(r)}</span> <Text text={name} strict />
					</>
				) : undefined
			}
			actions={buttons}
		>
			<div class="walk">
				{before ? <a href={link("approvals", before.id)}>← {t.previous}</a> : null}
				{next ? <a href={link("approvals", next.id)}>{t.next} →</a> : null}
				{at >= 0 ? <span class="quiet">{t.place(at + 1, waiting.length, queue.data?.next_cursor != null)}</span> : null}
				<button type="button" class="small plain" onClick={() => setAsking("help")}>
					{t.keys}
				</button>
			</div>
			<ProblemNote problem={problem} again={reload} />
			{newer ? (
				<div class="note bad" role="alert">
					<p>
						<strong>{t.changed}</strong>
					</p>
					<p>{t.changedWhy}</p>
					<p>
						<button
							type="button"
							onClick={() => {
								setAsking(undefined);
								reload();
								diff.reload();
							}}
						>
							{t.lookAgain}
						</button>
					</p>
				</div>
			) : null}
			{drawn === undefined || r === undefined ? (
				problem ? null : (
					<Loading />
				)
			) : (
				<>
					{began === "pending" && r.state !== "pending" ? (
						<Note kind="warn">
							<p role="status">{t.decidedMeanwhile}</p>
						</Note>
					) : null}
					<Head r={r} summary={summary} />
					{r.kind === "tool" ? (
						<VersionRights drawn={drawn} difference={difference} problem={diff.problem} />
					) : r.kind === "call" ? (
						<CallRights drawn={drawn} />
					) : (
						<GrantRights drawn={drawn} />
					)}
					<Marks drawn={drawn} />
					<Rejections drawn={drawn} />
					<Affected drawn={drawn} />
					<Needs drawn={drawn} summary={summary} />
					<Contents
						key={drawn.etag}
						drawn={drawn}
						difference={difference}
						waits={difference === undefined && diff.problem === undefined}
					/>
					<Evidence drawn={drawn} />
					<Comments id={id} />
					<Part title={t.decision}>
						<p>{t.fullHash}</p>
						<p>
							<code class="whole-hash">{r.hash}</code>
						</p>
						{pending && mine ? <p>{t.needOther}</p> : null}
						{pending && !meReviews() ? <p class="quiet">{t.onlyReviewers}</p> : null}
						<div class="buttons">{buttons}</div>
					</Part>
					{asking === "approve" && canApprove ? (
						<Approve
							drawn={drawn}
							name={name}
							gains={!version ? [] : difference && rightsShort(difference)}
							first={r.review === "second" && !summary?.first_approval}
							onClose={() => setAsking(undefined)}
							onDone={ended}
							onStale={check}
						/>
					) : null}
					{asking === "reject" ? <Reject drawn={drawn} name={name} onClose={() => setAsking(undefined)} onDone={ended} /> : null}
					{asking === "revoke" ? (
						<Revoke
							drawn={drawn}
							name={name}
							onClose={() => setAsking(undefined)}
							onDone={text => {
								setAsking(undefined);
								done(text);
								check();
								decided.reload();
							}}
						/>
					) : null}
				</>
			)}
			{asking === "help" ? <KeysHelp onClose={() => setAsking(undefined)} /> : null}
		</Page>
	);
}

function kindName(r: Request): string {
	const t = en.approvals,
		object = (r.content as {object?: string}).object ?? "tool";
	return r.kind === "tool" && Object.hasOwn(t.objects, object) ? t.objects[object]! : t.kinds[r.kind]!;
}

function Linked({place, id, text}: {place: string; id: string | null | undefined; text: string | null | undefined}) {
	return id ? (
		<a href={link(place, id)}>
			<Text text={text} strict />
		</a>
	) : (
		<Text text={text} strict />
	);
}

/* Draws what the request is, who asked, and how it was decided. Server and tool are the content's own, where it has them;
 * the rest is admind's word. */
function Head({r, summary}: {r: Request; summary: Schemas["ApprovalSummary"] | undefined}) {
	const t = en.approvals,
		content = r.content as Record<string, unknown>,
		call = r.kind === "call";
	const own = (name: string, else_: string | null | undefined) =>
		!call && typeof content[name] === "string" ? (content[name] as string) : else_;
	const tool = own(r.kind === "tool" ? "name" : "tool", r.tool);

	return (
		<Part title={t.request}>
			<Facts
				facts={[
					[
						t.state,
						<span class="marks">
							<State state={summary?.revoked ? "revoked" : r.state} />
							{summary?.first_approval && r.state === "pending" ? <State state={t.oneOfTwo} kind="info" /> : null}
						</span>,
					],
					[t.server, <Linked place="servers" id={own("server_id", r.server_id)} text={own("server", r.server)} />],
					[t.tool, tool ? <Linked place="tools" id={own("tool_id", r.tool_id)} text={tool} /> : null],
					[t.version, r.version ?? null],
					[
						t.runsAs,
						r.kind === "tool" ? (t.toolKinds[String(content.kind)] ?? <Text text={String(content.kind)} strict />) : null,
					],
					[t.askedBy, <Text text={r.requested_by} />],
					[t.asked, <Time at={r.requested_at} />],
					[t.review, r.review ? t.modes[r.review] : null],
					[t.decidedBy, r.decided_by ? <Text text={r.decided_by} /> : null],
					[t.decidedAt, r.decided_at ? <Time at={r.decided_at} /> : null],
					[t.hash, <Hash hash={r.hash} />],
				]}
			/>
			{r.reason ? (
				<>
					<h3>{t.reasonWas}</h3>
					<blockquote>
						<Text text={r.reason} />
					</blockquote>
				</>
			) : null}
			{r.notes ? (
				<>
					<h3>{t.notes}</h3>
					<blockquote>
						<Text text={r.notes} />
					</blockquote>
				</>
			) : null}
		</Part>
	);
}
