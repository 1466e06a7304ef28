/* Administrators of mcpbox, and who is logged in. */
import {useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction, usePages, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers, meName} from "../../me";
import type {PageProps} from "../../pages";
import {link} from "../../route";
import {AskButton, Dialog} from "../../ui/dialog";
import {Choice, Field, Form} from "../../ui/form";
import {done, Empty, Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Page, Tabs} from "../../ui/page";
import {List, Table} from "../../ui/table";
import {Made, Text, Time} from "../../ui/text";

const t = en.people;
type Person = Schemas["Administrator"];
type Role = Person["role"];
const ROLES = Object.entries(t.roles) as [Role, string][];
const PASSWORD_MIN = 12;

export default function People({rest}: PageProps) {
	const logins = rest[0] === "logins";
	return (
		<Page title={t.title} intro={logins ? t.loginsIntro : t.intro}>
			<Tabs
				tabs={[
					[link("people"), t.tabs.people],
					[link("people", "logins"), t.tabs.logins],
				]}
				at={link(...(logins ? ["people", "logins"] : ["people"]))}
			/>
			{logins ? (
				<Logins />
			) : meAdministers() ? (
				<All />
			) : (
				<Note>
					<p>{t.administratorsOnly}</p>
				</Note>
			)}
		</Page>
	);
}

function All() {
	const list = usePages("/api/administrators"),
		[open, setOpen] = useState<"new" | {person: Person; what: "role" | "password" | "delete"}>();
	const close = () => setOpen(undefined),
		changed = (text: string) => {
			done(text);
			close();
			list.reload();
		};

	return (
		<>
			<p>
				<button type="button" class="primary" onClick={() => setOpen("new")}>
					{t.new}
				</button>
			</p>
			<List
				label={t.title}
				list={list}
				keyOf={p => p.username}
				empty={<Empty title={t.empty} />}
				columns={[
					{
						name: t.name,
						kind: "wide",
						cell: p => (
							<>
								<Text text={p.username} />{" "}
								{p.username === meName() ? <span class="quiet plain-weight">{t.you}</span> : null}
							</>
						),
					},
					{name: t.role, cell: p => t.roleNames[p.role]},
					{name: t.passwordSet, kind: "narrow", cell: p => <Time at={p.password_at} />},
					{
						name: t.made,
						kind: "narrow",
						cell: p => <Made at={p.created_at} by={p.created_by} />,
					},
					{
						name: en.actions,
						cell: p =>
							p.username === meName() ? (
								<a href={link("account")}>{en.account.title}</a>
							) : (
								<span class="buttons">
									<button
										type="button"
										class="small"
										aria-label={t.roleOf(p.username)}
										onClick={() => setOpen({person: p, what: "role"})}
									>
										{t.role}
									</button>
									<button
										type="button"
										class="small"
										aria-label={t.passwordOf(p.username)}
										onClick={() => setOpen({person: p, what: "password"})}
									>
										{t.password}
									</button>
									<AskButton
										small
										label={t.endLogins}
										title={t.endLoginsTitle(p.username)}
										action={async () => {
											await api.delete("/api/administrators/{name}/logins", {path: {name: p.username}});
											done(t.loginsEnded);
										}}
									>
										<p>{t.endLoginsWhy}</p>
									</AskButton>
									<button
										type="button"
										class="small danger"
										aria-label={t.deleteOf(p.username)}
										onClick={() => setOpen({person: p, what: "delete"})}
									>
										{t.delete}
									</button>
								</span>
							),
					},
				]}
			/>
			{open === "new" ? (
				<New onClose={close} onDone={changed} />
			) : open ? (
				<Change {...open} onClose={close} onDone={changed} />
			) : null}
		</>
	);
}

/* A change of an administrator takes the own password each time. */
function Own({value, onValue}: {value: string; onValue: (v: string) => void}) {
	return <Field label={t.own} hint={t.ownHint} type="password" autocomplete="current-password" value={value} onValue={onValue} />;
}

function New({onClose, onDone}: {onClose: () => void; onDone: (text: string) => void}) {
	const [username, setUsername] = useState(""),
		[role, setRole] = useState<string>("reviewer"),
		[fresh, setFresh] = useState(""),
		[own, setOwn] = useState("");
	const act = useAction(async () => {
		await api.post("/api/administrators", {body: {username, role: role as Role, new_password: fresh, password: own}});
		onDone(t.isMade(username));
	});
	return (
		<Dialog title={t.new} onClose={onClose}>
			<Form label={t.make} busy={act.busy} problem={act.problem} action={act.run} onCancel={onClose}>
				<Field label={t.name} hint={t.nameHint} value={username} onValue={setUsername} required maxLength={50} autofocus />
				<Choice label={t.role} value={role} onValue={setRole} options={ROLES} />
				<Field
					label={t.newPassword}
					hint={t.passwordHint(PASSWORD_MIN)}
					type="password"
					autocomplete="new-password"
					value={fresh}
					onValue={setFresh}
					required
					maxLength={128}
				/>
				<Own value={own} onValue={setOwn} />
			</Form>
		</Dialog>
	);
}

function Change({
	person,
	what,
	onClose,
	onDone,
}: {
	person: Person;
	what: "role" | "password" | "delete";
	onClose: () => void;
	onDone: (text: string) => void;
}) {
	const [role, setRole] = useState<string>(person.role),
		[fresh, setFresh] = useState(""),
		[own, setOwn] = useState(""),
		path = {name: person.username};
	const act = useAction(async () => {
		if (what === "role") await api.put("/api/administrators/{name}/role", {path, body: {role: role as Role, password: own}});
		else if (what === "password")
			await api.post("/api/administrators/{name}/password", {path, body: {new_password: fresh, password: own}});
		else await api.post("/api/administrators/{name}/delete", {path, body: {password: own}});
		onDone(t.changed[what](person.username));
	});
	return (
		<Dialog title={t.titles[what](person.username)} onClose={onClose}>
			<p>{t.whys[what]}</p>
			<Form
				label={t.verbs[what]}
				danger={what === "delete"}
				busy={act.busy}
				problem={act.problem}
				action={act.run}
				onCancel={onClose}
			>
				{what === "role" ? <Choice label={t.role} value={role} onValue={setRole} options={ROLES} /> : null}
				{what === "password" ? (
					<Field
						label={t.newPassword}
						hint={t.passwordHint(PASSWORD_MIN)}
						type="password"
						autocomplete="new-password"
						value={fresh}
						onValue={setFresh}
						required
						maxLength={128}
						autofocus
					/>
				) : null}
				<Own value={own} onValue={setOwn} />
			</Form>
		</Dialog>
	);
}

/** Draws the logins that the person may see: all of them, or the own ones. */
export function Logins() {
	const read = useRead("/api/logins");
	return (
		<>
			<ProblemNote problem={read.problem} again={read.reload} />
			{read.data === undefined ? (
				read.problem ? null : (
					<Loading />
				)
			) : (
				<Table
					label={t.tabs.logins}
					rows={read.data.items}
					keyOf={l => l.id}
					columns={[
						{
							name: t.name,
							kind: "wide",
							cell: l => (
								<>
									<Text text={l.username} max={120} /> {l.current ? <State state={t.thisOne} kind="good" /> : null}
									{l.pending ? <State state={t.pending} kind="warn" /> : null}
									<div class="quiet plain-weight">
										<Text text={l.agent} max={120} />
									</div>
								</>
							),
						},
						{name: t.role, kind: "narrow", cell: l => t.roleNames[l.role]},
						{name: t.by, cell: l => en.session.ways[l.by]},
						{name: t.source, kind: "narrow", cell: l => <Text text={l.source} />},
						{name: t.seen, cell: l => <Time at={l.seen_at} />},
						{name: t.ends, cell: l => <Time at={l.expires_at} />},
						{
							name: en.actions,
							cell: l =>
								l.current ? null : (
									<AskButton
										small
										danger
										label={t.end}
										title={t.endTitle(l.username)}
										action={async () => {
											await api.delete("/api/logins/{id}", {path: {id: l.id}});
											done(t.ended);
											read.reload();
										}}
									/>
								),
						},
					]}
				/>
			)}
		</>
	);
}
