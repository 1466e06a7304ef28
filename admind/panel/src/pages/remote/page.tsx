/* Access from elsewhere: the ways in that are there, one of them, and the command that makes another. */
import {en} from "../../en";
import {meAdministers, useEvery} from "../../me";
import type {PageProps} from "../../pages";
import {link} from "../../route";
import {Empty, Loading, ProblemNote} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Table} from "../../ui/table";
import {Text, Time} from "../../ui/text";
import {One} from "./one";
import {Standing} from "./standing";
import {useWays, type Way} from "./state";
import {Wizard} from "./wizard";

const t = en.remote;
/* What an open page shows is at most this old. */
const FRESH_MS = 5000;

export default function Remote({rest}: PageProps) {
	const state = useWays(),
		[at] = rest;

	useEvery(FRESH_MS, state.reload);
	if (at === "new")
		return (
			<Page title={t.new} intro={t.newIntro} back={[link("remote"), t.title]}>
				<Wizard ways={state.ways} sets={state.sets} resource={state.resource} />
			</Page>
		);
	if (at !== undefined) return <One name={at} state={state} />;
	return (
		<Page
			title={t.title}
			intro={t.intro}
			actions={
				meAdministers() ? (
					<a class="button" href={link("remote", "new")}>
						{t.new}
					</a>
				) : null
			}
		>
			<ProblemNote problem={state.problem} again={state.reload} />
			{state.loading ? (
				<Loading />
			) : state.ways.length === 0 ? (
				<Empty title={t.none}>
					<p>{t.noneWhy}</p>
				</Empty>
			) : (
				<Part title={t.ways}>
					<Ways ways={state.ways} />
				</Part>
			)}
		</Page>
	);
}

function Ways({ways}: {ways: Way[]}) {
	return (
		<Table
			label={t.ways}
			rows={ways}
			keyOf={w => `${w.issuer === undefined} ${w.name}`}
			columns={[
				{
					name: t.name,
					kind: "wide",
					cell: w => (
						<>
							<a href={link("remote", w.name)}>
								<Text text={w.name} />
							</a>
							<div class="quiet plain-weight">{w.issuer === undefined ? t.byToken : <Text text={w.issuer} max={160} />}</div>
						</>
					),
				},
				{name: t.state, cell: w => <Standing way={w} />},
				{name: t.people, kind: "number", cell: w => (w.issuer === undefined ? "–" : String(w.people.length))},
				{name: t.used, cell: w => (w.usedAt ? <Time at={w.usedAt} /> : t.never)},
			]}
		/>
	);
}
