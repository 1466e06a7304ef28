/*
 * Yes, no, and taking a yes back.
 *
 * Attackers: the author wants a yes for other content than the reviewer read; a
 * page elsewhere or a thief of the login wants one at all. The yes carries the
 * ETag of the content that is drawn (content.ts never mixes two), so for any
 * other bytes the vault refuses it, and the server asks for the reviewer's
 * password where the last proof is older than some minutes. The question before
 * the yes repeats the hash and the rights, in words of this page.
 */
import {useState} from "preact/hooks";
import {api} from "../../api/client";
import {useAction} from "../../api/use";
import {en} from "../../en";
import {Dialog} from "../../ui/dialog";
import {Area, Form} from "../../ui/form";
import {Note} from "../../ui/notice";
import {Hash, show, Text} from "../../ui/text";
import type {Drawn} from "./content";

/* As REST: bytes of UTF-8, which a field's maxLength does not count. */
const REASON_BYTES = 2000;
const GAINS_SHOWN = 12;

interface Props {
	drawn: Drawn;
	name: string;
	onClose: () => void;
	onDone: (text: string) => void;
}

/** Asks whether the drawn content is approved, and approves it. `gains` is undefined where the server made no difference. */
export function Approve({
	drawn,
	name,
	gains,
	first,
	onClose,
	onDone,
	onStale,
}: Props & {gains: string[] | undefined; first: boolean; onStale: () => void}) {
	const t = en.approvals,
		{id, hash} = drawn.request;
	const act = useAction(async () => {
		try {
			const {data} = await api.post("/api/approvals/{id}/approve", {path: {id}, match: drawn.etag});
			onDone(data.state === "pending" ? t.doneHalf(show(name)) : t.doneApproved(show(name), hash.slice(0, 12)));
		} catch (e) {
			onStale();
			throw e;
		}
	});

	return (
		<Dialog title={t.approveTitle} onClose={onClose}>
			{/* The focus begins at the text, so that a key that was meant for the page approves nothing. */}
			<p tabIndex={-1} autofocus>
				<Text text={name} strict />
			</p>
			<p>
				{t.hashIs} <Hash hash={hash} />
			</p>
			{gains === undefined ? (
				<Note kind="warn">
					<p>{t.approveBlind}</p>
				</Note>
			) : gains.length > 0 ? (
				<>
					<p>{t.approveGains}</p>
					<ul>
						{gains.slice(0, GAINS_SHOWN).map(g => (
							<li key={g}>
								<Text text={g} strict />
							</li>
						))}
					</ul>
					{gains.length > GAINS_SHOWN ? <p>{t.moreGains(gains.length - GAINS_SHOWN)}</p> : null}
				</>
			) : drawn.request.kind === "tool" ? (
				<p>{t.gainsNothing}</p>
			) : null}
			<p>{t.approveMeans[drawn.request.kind]}</p>
			{first ? (
				<Note>
					<p>{t.isFirst}</p>
				</Note>
			) : null}
			<Form label={t.approveHash(hash.slice(0, 12))} busy={act.busy} problem={act.problem} action={act.run} onCancel={onClose} />
		</Dialog>
	);
}

/** Asks for the reason of a rejection, which the author's model reads, and rejects. */
export function Reject({drawn, name, onClose, onDone}: Props) {
	const t = en.approvals;
	return (
		<Reasoned
			title={t.rejectTitle}
			text={name}
			label={t.rejectNow}
			hint={t.rejectHint}
			onClose={onClose}
			action={async reason => {
				await api.post("/api/approvals/{id}/reject", {path: {id: drawn.request.id}, body: {reason}});
				onDone(t.doneRejected(show(name)));
			}}
		/>
	);
}

/** Asks for the reason of a revocation, and takes back what was approved. */
export function Revoke({drawn, name, onClose, onDone}: Props) {
	const t = en.approvals;
	return (
		<Reasoned
			title={t.revokeTitle}
			text={name}
			label={t.revokeNow}
			hint={t.revokeHint}
			more={t.revokeMeans}
			onClose={onClose}
			action={async reason => {
				await api.post("/api/approvals/{id}/revoke", {path: {id: drawn.request.id}, body: {reason}});
				onDone(t.doneRevoked(show(name)));
			}}
		/>
	);
}

/** Draws a dialog that acts with a reason. What was typed stays after a refusal. */
export function Reasoned({
	title,
	text,
	label,
	hint,
	more,
	onClose,
	action,
}: {
	title: string;
	text: string;
	label: string;
	hint: string;
	more?: string;
	onClose: () => void;
	action: (reason: string) => Promise<void>;
}) {
	const [reason, setReason] = useState(""),
		act = useAction(action);
	const long = new TextEncoder().encode(reason).length > REASON_BYTES;

	return (
		<Dialog title={title} onClose={onClose}>
			<p>
				<Text text={text} strict />
			</p>
			{more ? <p>{more}</p> : null}
			<Form
				label={label}
				danger
				busy={act.busy}
				problem={act.problem}
				action={() => act.run(reason)}
				onCancel={onClose}
				disabled={long || reason.trim() === ""}
			>
				<Area
					label={en.approvals.reason}
					hint={hint}
					error={long ? en.approvals.reasonLong : undefined}
					value={reason}
					onValue={setReason}
					required
					rows={4}
					autofocus
				/>
			</Form>
		</Dialog>
	);
}
