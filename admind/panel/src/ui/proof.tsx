/*
 * A fresh proof (docs/decisions/0103). A change that outlives the login is
 * refused without one; then this dialog names the change and asks for the
 * password or a passkey, and the request is sent again. The password goes to
 * POST /api/proof and is kept nowhere. Another page ends the dialog: nobody is
 * to confirm there what was begun here.
 *
 * A person of an issuer has no password here, so a passkey is the only proof.
 */
import {useEffect, useState} from "preact/hooks";
import {api, clientProof} from "../api/client";
import {passkeysLack, passkeysProve} from "../api/passkeys";
import {useAction, useRead} from "../api/use";
import {en} from "../en";
import {meChanged, meIssued} from "../me";
import {link} from "../route";
import {Dialog} from "./dialog";
import {Field, Form} from "./form";
import {Note, ProblemNote} from "./notice";
import {PasskeyPlaces, useCeremony} from "./passkey";

/** Draws the dialog while a request waits for a proof. The page has one. */
export function Proof({username}: {username: string}) {
	const [waits, setWaits] = useState<{change: string; end: (given: boolean) => void}[]>([]);
	const [password, setPassword] = useState("");
	/* Asked for before the dialog is drawn, so that nothing moves in it. */
	const keys = useRead(waits.length > 0 ? "/api/passkeys" : null);
	const ceremony = useCeremony();
	const act = useAction(async () => {
		await api.post("/api/proof", {body: {password}});
		end(true);
	});
	const show = useAction(async () => {
		if (!(await ceremony.run(passkeysProve))) return;
		meChanged();
		end(true);
	});

	function end(given: boolean) {
		setPassword("");
		act.clear();
		show.clear();
		ceremony.end();
		setWaits(w => {
			for (const one of w) one.end(given);
			return [];
		});
	}
	useEffect(() => {
		const leave = () => end(false);

		clientProof(change => new Promise(f => setWaits(w => [...w, {change, end: f}])));
		addEventListener("hashchange", leave);
		return () => {
			removeEventListener("hashchange", leave);
			clientProof(() => Promise.resolve(false));
		};
	}, []);
	if (waits.length === 0 || (keys.data === undefined && keys.problem === undefined)) return null;
	const issued = meIssued(),
		has = (keys.data?.items.length ?? 0) > 0,
		lack = passkeysLack();
	return (
		<Dialog title={en.proof.title} onClose={() => end(false)}>
			{[...new Set(waits.map(w => en.proof.changes[w.change] ?? en.proof.other))].map(c => (
				<p key={c}>
					<strong>{c}</strong>
				</p>
			))}
			<p>{issued ? en.proof.whyPasskey : has && !lack ? en.proof.whyEither : en.proof.why}</p>
			{issued ? <ProblemNote problem={keys.problem} again={keys.reload} /> : null}
			{issued && keys.data && !has ? (
				<p>
					{en.proof.first} <a href={link("account")}>{en.proof.account}</a>
				</p>
			) : null}
			{lack && (has || issued) ? (
				<Note kind={issued ? "warn" : "info"}>
					<PasskeyPlaces lack={lack} />
				</Note>
			) : null}
			{has && !lack ? (
				<Form
					label={en.passkey.use}
					busy={show.busy}
					problem={show.problem}
					action={show.run}
					onCancel={issued ? () => end(false) : undefined}
				/>
			) : issued ? (
				<div class="buttons">
					<button type="button" onClick={() => end(false)}>
						{en.cancel}
					</button>
				</div>
			) : null}
			{issued ? null : (
				<>
					{has && !lack ? <p class="quiet">{en.or}</p> : null}
					<Form label={en.proof.button} busy={act.busy} problem={act.problem} action={act.run} onCancel={() => end(false)}>
						<input
							class="hidden"
							type="text"
							name="username"
							autocomplete="username"
							value={username}
							readOnly
							tabIndex={-1}
							aria-hidden="true"
						/>
						<Field
							label={en.signin.password}
							type="password"
							autocomplete="current-password"
							value={password}
							onValue={setPassword}
							required
							autofocus={!has || !!lack}
						/>
					</Form>
				</>
			)}
		</Dialog>
	);
}
