/* The own account: role, login, password, passkeys, own logins. */
import {useState} from "preact/hooks";
import {api} from "../../api/client";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {link} from "../../route";
import {AskButton} from "../../ui/dialog";
import {Field, Form} from "../../ui/form";
import {done, Loading, Note, ProblemNote} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Facts, Table} from "../../ui/table";
import {Text, Time} from "../../ui/text";
import {Logins} from "../people/page";

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
				<Passkeys />
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

function Passkeys() {
	const read = useRead("/api/passkeys");
	return (
		<Part title={t.passkeys}>
			<ProblemNote problem={read.problem} again={read.reload} />
			{read.data && read.data.items.length > 0 ? (
				<Table
					label={t.passkeys}
					rows={read.data.items}
					keyOf={k => k.id}
					columns={[
						{name: t.label, kind: "wide", cell: k => <Text text={k.label} max={64} />},
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
										done(t.removed);
										read.reload();
									}}
								>
									<p>{t.removeWhy}</p>
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
			<Note>
				<p>{t.passkeysWhy}</p>
			</Note>
		</Part>
	);
}
