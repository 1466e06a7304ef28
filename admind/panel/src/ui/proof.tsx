/*
 * A fresh proof (docs/decisions/0103). A change that outlives the login is
 * refused without one; then this dialog names the change and asks for the
 * password, and the request is sent again. The password goes to POST /api/proof
 * and is kept nowhere. Another page ends the dialog: nobody is to confirm there
 * what was begun here.
 */
import {useEffect, useState} from "preact/hooks";
import {api, clientProof} from "../api/client";
import {useAction} from "../api/use";
import {en} from "../en";
import {Dialog} from "./dialog";
import {Field, Form} from "./form";

/** Draws the dialog while a request waits for a proof. The page has one. */
export function Proof({username}: {username: string}) {
	const [waits, setWaits] = useState<{change: string; end: (given: boolean) => void}[]>([]);
	const [password, setPassword] = useState("");
	const act = useAction(async () => {
		await api.post("/api/proof", {body: {password}});
		end(true);
	});

	function end(given: boolean) {
		setPassword("");
		act.clear();
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
	if (waits.length === 0) return null;
	return (
		<Dialog title={en.proof.title} onClose={() => end(false)}>
			{[...new Set(waits.map(w => en.proof.changes[w.change] ?? en.proof.other))].map(c => (
				<p key={c}>
					<strong>{c}</strong>
				</p>
			))}
			<p>{en.proof.why}</p>
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
					autofocus
				/>
			</Form>
		</Dialog>
	);
}
