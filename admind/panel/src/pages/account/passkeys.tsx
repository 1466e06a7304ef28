/* The own passkeys: the list, a new one, and the removal of one. */
import {useState} from "preact/hooks";
import {api, clientProve} from "../../api/client";
import {passkeysLack, passkeysRegister} from "../../api/passkeys";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {meChanged} from "../../me";
import {AskButton} from "../../ui/dialog";
import {Field, Form} from "../../ui/form";
import {done, Loading, Note, ProblemNote} from "../../ui/notice";
import {Part} from "../../ui/page";
import {PasskeyPlaces, useCeremony} from "../../ui/passkey";
import {Table} from "../../ui/table";
import {Text, Time} from "../../ui/text";

const t = en.account;
/* A proof that ends before this is asked for again first. A person has this long for the ceremony: time to find the
 * device. A proof in the middle would replace the challenge. */
const PROOF_LEFT_MS = 2 * 60_000;
/* The vault counts bytes; a label of letters beyond ASCII that is too long gets its refusal. */
const LABEL_MAX = 64;
const CODE_MAX = 27;

/** Draws them. issued: the person has no password here. onChange: the login may have changed. */
export function Passkeys({issued, onChange}: {issued: boolean; onChange: () => void}) {
	const read = useRead("/api/passkeys"),
		lack = passkeysLack();
	const changed = (text: string) => {
		done(text);
		read.reload();
		onChange();
		meChanged();
	};

	return (
		<Part title={t.passkeys}>
			<p class="quiet">{issued ? t.passkeysWhyIssued : t.passkeysWhy}</p>
			<ProblemNote problem={read.problem} again={read.reload} />
			{read.data && read.data.items.length > 0 ? (
				<Table
					label={t.passkeys}
					rows={read.data.items}
					keyOf={k => k.id}
					columns={[
						{
							name: t.label,
							kind: "wide",
							cell: k => (
								<>
									<Text text={k.label} max={64} />
									{k.role ? <div class="quiet plain-weight">{t.atMost(en.people.roleNames[k.role] ?? k.role)}</div> : null}
								</>
							),
						},
						{name: t.kind, kind: "narrow", cell: k => k.algorithm},
						{name: t.used, cell: k => (k.used_at ? <Time at={k.used_at} /> : t.never)},
						{
							name: en.actions,
							cell: k => (
								<AskButton
									small
									danger
									label={t.remove}
									title={t.removeTitle(k.label)}
									action={async () => {
										await api.post("/api/passkeys/remove", {body: {id: k.id}});
										changed(t.removed);
									}}
								>
									<p>{issued ? t.removeWhyIssued : t.removeWhy}</p>
								</AskButton>
							),
						},
					]}
				/>
			) : read.data ? (
				<p class="quiet">{t.noPasskeys}</p>
			) : read.problem ? null : (
				<Loading />
			)}
			{lack ? (
				<Note>
					<PasskeyPlaces lack={lack} />
				</Note>
			) : read.data ? (
				<Register coded={issued && read.data.items.length === 0} first={read.data.items.length === 0} onDone={changed} />
			) : null}
		</Part>
	);
}

/* Returns true once the login has a proof that holds during a ceremony. */
async function proven(): Promise<boolean> {
	const {data} = await api.get("/api/me");
	const left = data.proof_until ? new Date(data.proof_until).getTime() - Date.now() : 0;
	return left > PROOF_LEFT_MS || clientProve("POST /api/passkeys");
}

/* Draws the form. coded: root's code takes the place of a proof. */
function Register({coded, first, onDone}: {coded: boolean; first: boolean; onDone: (text: string) => void}) {
	const [label, setLabel] = useState(""),
		[code, setCode] = useState("");
	const ceremony = useCeremony();
	const act = useAction(async () => {
		if (!coded && !(await proven())) return;
		if (!(await ceremony.run(signal => passkeysRegister(label.trim(), coded ? code.trim() : "", signal)))) return;
		setLabel("");
		setCode("");
		onDone(t.registered);
	});

	return (
		<Form label={t.register} busy={act.busy} problem={act.problem} action={act.run}>
			{first && !coded ? (
				<Note>
					<p>{t.firstPasskey}</p>
				</Note>
			) : null}
			<Field label={t.newLabel} hint={t.newLabelHint} value={label} onValue={setLabel} required maxLength={LABEL_MAX} />
			{coded ? (
				<Field label={t.code} hint={t.codeHint} value={code} onValue={setCode} required maxLength={CODE_MAX} />
			) : null}
		</Form>
	);
}
