/*
 * Decisions about several requests at once.
 *
 * Approving many is where a reviewer stops to read, so a request can be approved
 * here only if its review page was drawn in this tab, and with the hash that was
 * drawn there, not with the list's: the list's hash is admind's word. A request
 * whose list shows another hash than the page did is left out, too.
 */
import {useState} from "preact/hooks";
import {api, problemOf, type Schemas} from "../../api/client";
import {useAction} from "../../api/use";
import {en} from "../../en";
import {Dialog} from "../../ui/dialog";
import {Form} from "../../ui/form";
import {done, Note} from "../../ui/notice";
import {count, Hash, Text} from "../../ui/text";
import {Reasoned} from "./decide";
import {itemName} from "./names";
import {reviewedAll} from "./reviewed";

type Item = Schemas["ApprovalSummary"];
type Decision = Schemas["Decisions"]["items"][number];

/* The most that REST takes at once. */
const ITEMS_MAX = 100;
const NAMES_SHOWN = 20;
const NAMES_FEW = 5;

/** Draws the buttons for what is selected, and what became of each. `onEnd` receives what was not decided. */
export function Bulk({items, onEnd}: {items: Item[]; onEnd: (left: Map<string, Item>) => void}) {
	const t = en.approvals,
		[asking, setAsking] = useState<"approve" | "reject">();
	const [failed, setFailed] = useState<{item: Item; why: string}[]>([]);
	const reviewed = reviewedAll(),
		read = items.filter(i => reviewed.get(i.id) === i.hash),
		unread = items.length - read.length;
	const approve = useAction(() => decide("approve", read));

	const names =
		items.slice(0, NAMES_FEW).map(itemName).join(", ") +
		(items.length > NAMES_FEW ? ` ${t.andMore(count(items.length - NAMES_FEW))}` : "");

	async function decide(action: "approve" | "reject", which: Item[], reason?: string) {
		const answers = new Map<string, Decision>();
		let broken: unknown;
		for (let from = 0; from < which.length && broken === undefined; from += ITEMS_MAX)
			try {
				const part = which.slice(from, from + ITEMS_MAX);
				const {data} = await api.post("/api/approvals/bulk", {
					body: {
						action,
						reason,
						items: part.map(i => (action === "approve" ? {id: i.id, hash: reviewed.get(i.id)!} : {id: i.id})),
					},
				});
				for (const d of data.items) answers.set(d.id, d);
			} catch (e) {
				broken = e;
			}
		if (broken !== undefined && answers.size === 0) throw broken;
		const bad = which.filter(i => !answers.get(i.id)?.done);
		setFailed(
			bad.map(item => {
				const answer = answers.get(item.id);
				return {item, why: answer?.detail ?? answer?.failure_mode ?? problemOf(broken).detail};
			}),
		);
		setAsking(undefined);
		done((action === "approve" ? t.bulkApproved : t.bulkRejected)(which.length - bad.length, bad.length));
		onEnd(new Map(items.filter(i => !answers.get(i.id)?.done).map(i => [i.id, i])));
	}
	return (
		<>
			<span role="status">{t.selected(count(items.length))}</span>
			<button type="button" class="primary" disabled={read.length === 0} onClick={() => setAsking("approve")}>
				{t.approveMany(count(read.length))}
			</button>
			<button type="button" class="danger" onClick={() => setAsking("reject")}>
				{t.rejectMany(count(items.length))}
			</button>
			{unread > 0 ? <span class="quiet">{t.unread(count(unread))}</span> : null}
			{failed.length > 0 ? (
				<Note kind="bad">
					<p>
						<strong>{t.bulkFailed}</strong>
					</p>
					<ul>
						{failed.slice(0, NAMES_SHOWN).map(({item, why}) => (
							<li key={item.id}>
								<Text text={itemName(item)} strict />: <Text text={why} />
							</li>
						))}
					</ul>
					{failed.length > NAMES_SHOWN ? <p>{t.andMore(count(failed.length - NAMES_SHOWN))}</p> : null}
				</Note>
			) : null}
			{asking === "approve" ? (
				<Dialog title={t.approveManyTitle} onClose={() => setAsking(undefined)} wide>
					<p>{t.approveManyWhy}</p>
					<ul>
						{read.slice(0, NAMES_SHOWN).map(i => (
							<li key={i.id}>
								{t.kinds[i.kind]} <Text text={itemName(i)} strict /> <Hash hash={reviewed.get(i.id)} />
							</li>
						))}
					</ul>
					{read.length > NAMES_SHOWN ? <p>{t.andMore(count(read.length - NAMES_SHOWN))}</p> : null}
					{unread > 0 ? <p>{t.unread(count(unread))}</p> : null}
					<Form
						label={t.approveMany(count(read.length))}
						busy={approve.busy}
						problem={approve.problem}
						action={approve.run}
						onCancel={() => setAsking(undefined)}
					/>
				</Dialog>
			) : null}
			{asking === "reject" ? (
				<Reasoned
					title={t.rejectManyTitle(count(items.length))}
					text={names}
					label={t.rejectMany(count(items.length))}
					hint={t.rejectHint}
					onClose={() => setAsking(undefined)}
					action={reason => decide("reject", items, reason)}
				/>
			) : null}
		</>
	);
}
