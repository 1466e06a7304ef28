/* The page before the login: a password, and a passkey after it where the person has one; or an issuer where one is
 * configured. */
import {useEffect, useState} from "preact/hooks";
import {api, send} from "./api/client";
import {type PasskeysLack, passkeysLack, passkeysLogin} from "./api/passkeys";
import {sessionBegin} from "./api/session";
import {signinBegin, signinFinish, signinReturned} from "./api/signin";
import {useAction, useRead} from "./api/use";
import {en} from "./en";
import {Field, Form} from "./ui/form";
import {Loading, Note, ProblemNote} from "./ui/notice";
import {PasskeyPlaces, useCeremony} from "./ui/passkey";
import {show} from "./ui/text";

/** Draws the form. The login begins in api/session.ts, which the app watches. */
export function Signin({name}: {name?: string}) {
	const [username, setUsername] = useState(name ?? ""),
		[password, setPassword] = useState(""),
		[device, setDevice] = useState("");
	const [limited, setLimited] = useState(false),
		[half, setHalf] = useState<string>(),
		[lack, setLack] = useState<PasskeysLack>();
	const issuers = useRead("/api/signin");
	const begin = useAction(signinBegin);
	const act = useAction(async () => {
		const {data} = await api.post("/api/login", {body: device ? {username, password, device} : {username, password}});
		setPassword("");
		if (!data.passkey_required) {
			sessionBegin(data.csrf_token);
			return;
		}
		const why = passkeysLack();
		setLack(why);
		if (why) await forget(data.csrf_token);
		else setHalf(data.csrf_token);
	});

	useEffect(() => {
		if (act.problem?.failure_mode === "rate_limited") setLimited(true);
	}, [act.problem]);
	if (half) return <Second half={half} onCancel={() => setHalf(undefined)} />;
	return (
		<>
			{lack ? (
				<div role="alert">
					<Note kind="warn">
						<p>{en.signin.passkey}</p>
						<PasskeyPlaces lack={lack} />
					</Note>
				</div>
			) : null}
			<Form label={en.signin.button} busy={act.busy} problem={act.problem} action={act.run}>
				<Field
					label={en.signin.user}
					name="username"
					autocomplete="username"
					value={username}
					onValue={setUsername}
					required
					autofocus={!name}
				/>
				<Field
					label={en.signin.password}
					type="password"
					autocomplete="current-password"
					value={password}
					onValue={setPassword}
					required
					autofocus={!!name}
				/>
				{limited ? <Field label={en.signin.device} hint={en.signin.deviceHint} value={device} onValue={setDevice} /> : null}
			</Form>
			{issuers.data?.items.length ? (
				<div class="issuers">
					<p class="quiet">{en.signin.or}</p>
					{issuers.data.items.map(i => (
						<button type="button" key={i.name} aria-disabled={begin.busy} onClick={() => begin.run(i.name)}>
							{show(en.signin.by(i.name))}
						</button>
					))}
					<ProblemNote problem={begin.problem} />
				</div>
			) : null}
		</>
	);
}

/* Ends a login that waits for a passkey which does not come. One that is left alone ends after five minutes. */
async function forget(half: string): Promise<void> {
	await send("POST", "/api/logout", {half}).catch(() => undefined);
}

/* Asks for the passkey that the login waits for: at once, and again by the button, since a person may have cancelled. */
function Second({half, onCancel}: {half: string; onCancel: () => void}) {
	const ceremony = useCeremony();
	const act = useAction(async () => {
		if (await ceremony.run(signal => passkeysLogin(half, signal))) sessionBegin(half);
	});

	useEffect(() => {
		void act.run();
	}, []);
	return (
		<>
			<p role="status">{en.signin.second}</p>
			<Form
				label={en.passkey.use}
				busy={act.busy}
				problem={act.problem}
				action={act.run}
				onCancel={() => {
					ceremony.end();
					void forget(half);
					onCancel();
				}}
			/>
			<p class="quiet">{en.passkey.lost}</p>
		</>
	);
}

/** Draws the whole page before the login. */
export function SigninPage() {
	const finish = useAction(signinFinish);

	useEffect(() => {
		document.title = `${en.signin.title} · mcpbox`;
		if (signinReturned()) void finish.run();
	}, []);
	return (
		<main class="signin">
			<p class="brand">
				<span class="mark" aria-hidden="true" />
				mcpbox
			</p>
			<h1>{en.signin.title}</h1>
			<ProblemNote problem={finish.problem} />
			{finish.busy ? <Loading label={en.signin.finishing} /> : <Signin />}
			<p class="quiet">{en.signin.first}</p>
		</main>
	);
}
