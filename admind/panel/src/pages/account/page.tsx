/* The own account: role, login, password, passkeys, own logins. */
import {useState} from "preact/hooks";
import {api} from "../../api/client";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {link} from "../../route";
import {Field, Form} from "../../ui/form";
import {done, Loading, ProblemNote} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Facts} from "../../ui/table";
import {Text, Time} from "../../ui/text";
import {Logins} from "../people/page";
import {Passkeys} from "./passkeys";

const t = en.account;
const PASSWORD_MIN = 12;

export default function Account() {
	const me = useRead("/api/me"),
		m = me.data,
		issued = m?.username.includes("@") ?? false;
	return (
		<Page title={t.title}>
			<ProblemNote problem={me.problem} again={me.reload} />
			{m === undefined ? (
				me.problem ? null : (
					<Loading />
				)
			) : (
				<Part title={t.login}>
					<Facts
						facts={[
							[t.name, <Text text={m.username} max={200} />],
							[t.role, en.people.roleNames[m.role]],
							[t.ends, <Time at={m.expires_at} />],
							[t.idle, <Time at={m.idle_expires_at} />],
							[t.proof, m.proof_until ? <Time at={m.proof_until} /> : t.noProof],
						]}
					/>
				</Part>
			)}
			<div class="columns">
				{m && !issued ? <Password name={m.username} /> : null}
				{m ? <Passkeys issued={issued} onChange={me.reload} /> : null}
			</div>
			{meAdministers() ? (
				<p>
					<a href={link("people", "logins")}>{t.allLogins}</a>
				</p>
			) : (
				<Part title={t.logins}>
					<Logins />
				</Part>
			)}
		</Page>
	);
}

function Password({name}: {name: string}) {
	const [old, setOld] = useState(""),
		[fresh, setFresh] = useState(""),
		[again, setAgain] = useState("");
	const differs = again !== "" && again !== fresh;
	const act = useAction(async () => {
		await api.post("/api/password", {body: {old_password: old, new_password: fresh}});
		setOld("");
		setFresh("");
		setAgain("");
		done(t.passwordChanged);
	});
	return (
		<Part title={t.password}>
			<p class="quiet">{t.passwordWhy}</p>
			<Form label={t.change} busy={act.busy} problem={act.problem} action={act.run} disabled={differs}>
				<input
					class="hidden"
					type="text"
					name="username"
					autocomplete="username"
					value={name}
					readOnly
					tabIndex={-1}
					aria-hidden="true"
				/>
				<Field label={t.old} type="password" autocomplete="current-password" value={old} onValue={setOld} required />
				<Field
					label={t.new}
					hint={en.people.passwordHint(PASSWORD_MIN)}
					type="password"
					autocomplete="new-password"
					value={fresh}
					onValue={setFresh}
					required
					maxLength={128}
				/>
				<Field
					label={t.again}
					error={differs ? t.differs : undefined}
					type="password"
					autocomplete="new-password"
					value={again}
					onValue={setAgain}
					required
					maxLength={128}
				/>
			</Form>
		</Part>
	);
}
