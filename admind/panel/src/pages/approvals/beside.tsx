/* What stands beside the content: marks, earlier rejections, secrets that lack, versions that it touches, and what a yes needs. */
import type {Schemas} from "../../api/client";
import {en} from "../../en";
import {meName, meReviews} from "../../me";
import {link} from "../../route";
import {Note, State} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Table} from "../../ui/table";
import {count, Hash, Text, Time} from "../../ui/text";
import type {Drawn} from "./content";
import {namesOf} from "./rights";
import {Code, fieldName} from "./values";

/** Draws what the server found in the content and a reviewer should look at twice. */
export function Marks({drawn}: {drawn: Drawn}) {
	const t = en.approvals,
		marks = drawn.request.marks ?? [];

	return marks.length === 0 ? null : (
		<Part title={t.marks}>
			<p class="quiet">{t.marksWhy}</p>
			{marks.map((m, i) => (
				<Note key={i} kind={m.refused ? "bad" : "warn"}>
					<p>
						<strong>{m.refused ? t.cannot : t.lookTwice}</strong> {fieldName(m.field)}{" "}
						{m.words ? (
							<>
								{t.says}{" "}
								<q>
									<Text text={m.words} strict />
								</q>
								, {t.which}{" "}
							</>
						) : null}
						<Text text={m.why} />
					</p>
				</Note>
			))}
		</Part>
	);
}

/** Draws earlier rejections of the same tool or name, with their reasons. */
export function Rejections({drawn}: {drawn: Drawn}) {
	const t = en.approvals,
		before = drawn.request.rejected_before ?? [],
		n = drawn.request.rejections ?? 0;

	return before.length === 0 ? null : (
		<Part title={t.rejections}>
			<p class="quiet">{t.rejectionsWhy(n, before.length)}</p>
			<ul class="thread">
				{before.map(b => (
					<li key={b.id}>
						<p class="quiet">
							<Text text={b.decided_by} /> {t.rejected}{" "}
							<a href={link("approvals", b.id)}>{b.version === null ? t.aRequest : t.versionNo(b.version)}</a>{" "}
							<Time at={b.decided_at} />
						</p>
						<blockquote>
							<Text text={b.reason} />
							{b.reason_length > b.reason.length ? ` ${t.reasonCut(count(b.reason_length))}` : ""}
						</blockquote>
					</li>
				))}
			</ul>
		</Part>
	);
}

/** Draws the versions that serve and that a grant touches. */
export function Affected({drawn}: {drawn: Drawn}) {
	const t = en.approvals,
		hashes = namesOf(drawn.request.content, "affected");
	const named = new Map((drawn.request.affected_tools ?? []).map(a => [a.hash, a]));

	if (drawn.request.kind !== "network" && drawn.request.kind !== "module") return null;
	return (
		<Part title={t.affected}>
			{hashes.length === 0 ? (
				<p>{t.affectsNone}</p>
			) : (
				<>
					<p class="quiet">{t.affectedWhy}</p>
					<Table
						label={t.affected}
						rows={hashes}
						keyOf={h => h}
						columns={[
							{name: t.version, cell: h => <Hash hash={h} />},
							{
								name: t.tool,
								kind: "wide",
								cell: h =>
									named.has(h) ? (
										<>
											<Text text={named.get(h)!.exposed_name} strict /> {t.versionNo(named.get(h)!.version)}
										</>
									) : (
										<span class="quiet">{t.unnamed}</span>
									),
							},
						]}
					/>
				</>
			)}
		</Part>
	);
}

/** One thing that a yes needs. */
interface Need {
	state: "done" | "open" | "refused" | "note";
	text: preact.ComponentChild;
}

const KINDS = {done: "good", open: "warn", refused: "bad", note: "info"} as const;

/** Returns true if the vault would refuse a yes to this content. */
export function cannotApprove(drawn: Drawn): boolean {
	const c = drawn.request.content as Record<string, unknown>;
	return (
		(drawn.request.marks ?? []).some(m => m.refused) ||
		(drawn.request.kind === "module" && c.recorded === false) ||
		(drawn.request.kind === "call" && new Date(String(c.expires_at)).getTime() < Date.now())
	);
}

/** Draws what is still needed before this holds. */
export function Needs({drawn, summary}: {drawn: Drawn; summary: Schemas["ApprovalSummary"] | undefined}) {
	const t = en.approvals,
		r = drawn.request,
		first = summary?.first_approval,
		needs: Need[] = [];

	if (r.state !== "pending") return null;
	if (r.review === "second") {
		needs.push(
			first
				? {
						state: "done",
						text: (
							<>
								{t.firstYes} <Text text={first.by} /> <Time at={first.at} />
							</>
						),
					}
				: {state: "open", text: t.needFirst},
		);
		needs.push({state: "open", text: first?.by === meName() ? t.needOther : t.needSecond});
	} else needs.push({state: "open", text: r.review === "automatic" ? t.needAutomatic : t.needOne});
	for (const m of (r.marks ?? []).filter(x => x.refused))
		needs.push({
			state: "refused",
			text: (
				<>
					{fieldName(m.field)}: <Text text={m.why} />
				</>
			),
		});
	if (r.kind === "module" && (r.content as {recorded?: boolean}).recorded === false) needs.push({state: "refused", text: t.notRecorded});
	if (r.kind === "call" && cannotApprove(drawn)) needs.push({state: "refused", text: t.over});
	for (const s of r.secrets_missing ?? [])
		needs.push({
			state: "note",
			text: (
				<>
					<Code text={s.name} /> {s.state === "empty" ? t.secretEmpty : t.secretAbsent}{" "}
					<a href={link("secrets", {server: r.server})}>{t.toSecrets}</a>
				</>
			),
		});
	if (meReviews()) needs.push({state: "note", text: t.needProof});
	return (
		<Part title={t.needs}>
			<ul class="needs">
				{needs.map((n, i) => (
					<li key={i}>
						<State state={t.needStates[n.state]!} kind={KINDS[n.state]} />
						<span>{n.text}</span>
					</li>
				))}
			</ul>
		</Part>
	);
}
