/* The questions of `mcpboxctl remote add`, its command, and what follows it. */
import {useState} from "preact/hooks";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {link} from "../../route";
import {Copy} from "../../ui/copy";
import {Choice, Field, Form} from "../../ui/form";
import {Note} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Text, Time} from "../../ui/text";
import {checkOf, command, faults, KINDS, type Kind, PROXIES, signsIn, usesSet, type Wish} from "./command";
import type {Way} from "./state";

const t = en.remote;
const BLANK: Wish = {kind: "oidc", name: "", resource: "", issuer: "", team: "", aud: "", email: "", set: "", allow: "*", proxy: "nginx"};

/** Draws the questions, then the steps. `sets` are the permission sets that are there, `resource` the address that clients know now. */
export function Wizard({ways, sets, resource}: {ways: Way[]; sets: string[]; resource: string}) {
	const [typed, setTyped] = useState<Partial<Wish>>({}),
		[asked, setAsked] = useState(false),
		[made, setMade] = useState<Wish>();
	const w: Wish = {...BLANK, resource, ...typed};
	const wrong = faults(w);

	if (made?.name !== w.name && ways.some(x => x.name === w.name)) wrong.name = t.faults.taken;
	else if (made?.name !== w.name && signsIn(w) && !usesSet(w) && sets.includes(w.name)) wrong.name = t.faults.setTaken;
	const at = (name: keyof Wish) => ({
		label: t.fields[name],
		hint: t.hints[name],
		value: w[name],
		error: asked ? wrong[name] : undefined,
		onValue: (v: string) => setTyped(now => ({...now, [name]: v})),
	});

	if (!meAdministers()) return <Note kind="warn">{t.onlyAdministrators}</Note>;
	return (
		<>
			<Part title={t.questions}>
				<Form
					label={t.show}
					action={() => {
						setAsked(true);
						setMade(Object.keys(wrong).length === 0 ? w : undefined);
					}}
				>
					<Choice
						{...at("kind")}
						hint={t.kindTexts[w.kind]}
						options={KINDS.map(k => [k, t.kinds[k]] as const)}
						onValue={v => setTyped(now => ({...now, kind: v as Kind}))}
					/>
					<div class="columns">
						<Field {...at("name")} />
						<Field {...at("resource")} />
						{w.kind === "access" ? (
							<>
								<Field {...at("team")} />
								<Field {...at("aud")} />
							</>
						) : w.kind === "token" ? null : (
							<Field {...at("issuer")} hint={t.issuerHints[w.kind]} />
						)}
						{signsIn(w) ? <Field {...at("email")} /> : null}
						{signsIn(w) ? <Choice {...at("set")} options={[["", t.newSet], ...sets.map(s => [s, s] as const)]} /> : null}
						{usesSet(w) ? null : <Field {...at("allow")} />}
						{w.kind === "oidc" || w.kind === "token" ? (
							<Choice {...at("proxy")} options={PROXIES.map(p => [p, t.proxies[p]] as const)} />
						) : null}
					</div>
				</Form>
			</Part>
			{made ? <Steps w={made} way={ways.find(x => x.name === made.name)} /> : null}
		</>
	);
}

function Steps({w, way}: {w: Wish; way: Way | undefined}) {
	return (
		<>
			<Part title={t.step1}>
				<p>{t.step1Why}</p>
				<Copy label={t.theCommand} text={command(w)} />
				<p class="quiet">{t.after[w.kind]}</p>
			</Part>
			<Part title={t.step2}>
				<p>{t.step2Why}</p>
				<Copy label={t.checkCommand} text={checkOf(w.name)} />
			</Part>
			<Part title={t.step3}>
				<p>{signsIn(w) ? t.clientSignIn : t.clientToken}</p>
				<Copy label={t.address} text={w.resource} />
			</Part>
			<Part title={t.step4}>
				<p role="status">
					{way === undefined ? (
						t.waitsForCommand
					) : way.usedAt ? (
						<>
							{t.came} <Time at={way.usedAt} />.
						</>
					) : (
						t.waitsForCall
					)}
				</p>
				{way?.fault ? (
					<Note kind="bad">
						<Text text={way.fault} />
					</Note>
				) : null}
				{way ? (
					<p>
						<a href={link("remote", w.name)}>{t.toOne}</a>
					</p>
				) : null}
			</Part>
		</>
	);
}
