/* One way in: how it is, who came, and how the next client is connected. */
import type {ComponentChildren} from "preact";
import {en} from "../../en";
import {link} from "../../route";
import {Copy} from "../../ui/copy";
import {Empty, Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Facts, Table} from "../../ui/table";
import {Text, Time} from "../../ui/text";
import {checkOf} from "./command";
import {Standing} from "./standing";
import type {useWays, Way} from "./state";

const t = en.remote;

/** Draws the page of the way in with this name. */
export function One({name, state}: {name: string; state: ReturnType<typeof useWays>}) {
	const way = state.ways.find(w => w.name === name);
	return (
		<Page title={name} heading={<Text text={name} />} back={[link("remote"), t.title]}>
			<ProblemNote problem={state.problem} again={state.reload} />
			{way ? (
				<Shown way={way} resource={state.resource} />
			) : state.loading ? (
				<Loading />
			) : (
				<Empty title={t.gone}>
					<p>{t.goneWhy}</p>
				</Empty>
			)}
		</Page>
	);
}

function Shown({way, resource}: {way: Way; resource: string}) {
	const facts: [string, ComponentChildren][] = [[t.state, <Standing way={way} />]];

	if (way.token)
		facts.push(
			[t.kind, <a href={link("access", "tokens")}>{t.byToken}</a>],
			[t.calls, <a href={link("calls", {principal: way.token.principal})}>{t.callsOf}</a>],
		);
	else facts.push([t.issuer, <Text text={way.issuer} />]);
	if (way.keys) facts.push([t.keys, t.keysOf(way.keys.count)]);
	facts.push([t.used, way.usedAt ? <Time at={way.usedAt} /> : t.never]);
	return (
		<>
			{way.fault ? (
				<Note kind="bad">
					<p>
						<Text text={way.fault} />
					</p>
				</Note>
			) : null}
			<Part title={t.standing}>
				<Facts facts={facts} />
			</Part>
			{way.token ? null : <People people={way.people} />}
			<Part title={t.client}>
				<p>{way.token ? t.clientToken : t.clientSignIn}</p>
				{resource ? <Copy label={t.address} text={resource} /> : <p>{t.addressUnknown}</p>}
			</Part>
			<Part title={t.check}>
				<p>{way.token ? t.checkToken : t.checkWhy}</p>
				<Copy label={t.checkCommand} text={checkOf(way.name)} />
			</Part>
		</>
	);
}

function People({people}: {people: Way["people"]}) {
	return (
		<Part title={t.people}>
			{people.length === 0 ? (
				<Empty title={t.nobody}>
					<p>{t.nobodyWhy}</p>
				</Empty>
			) : (
				<Table
					label={t.people}
					rows={people}
					keyOf={p => p.principal}
					columns={[
						{
							name: t.person,
							kind: "wide",
							cell: p => (
								<a href={link("calls", {principal: p.principal})}>
									<Text text={p.email ?? p.subject} max={120} />
								</a>
							),
						},
						{name: t.set, cell: p => (p.set ? <Text text={p.set} /> : null)},
						{name: t.state, cell: p => <State state={p.state} />},
						{name: t.used, cell: p => <Time at={p.last_used_at} />},
					]}
				/>
			)}
		</Part>
	);
}
