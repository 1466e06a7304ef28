/* The policy of review: how many persons each queue needs. Only administrators change it; the vault seals the change. */
import {useEffect, useState} from "preact/hooks";
import {api, problemOf} from "../../api/client";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {link} from "../../route";
import {Choice, Field, Form} from "../../ui/form";
import {done, Loading, Note, ProblemNote, State} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Facts} from "../../ui/table";
import {Text, Time} from "../../ui/text";

const QUEUES = ["tool", "module", "network"] as const;
const MODES = ["require", "second", "automatic"] as const;
const PROFILES = {
	strict: {tool: "second", module: "second", network: "second"},
	balanced: {tool: "require", module: "automatic", network: "require"},
	permissive: {tool: "automatic", module: "automatic", network: "automatic"},
} as const;
const DAYS = 30;
const DAYS_MAX = 90;

type Mode = (typeof MODES)[number];
type Modes = Record<(typeof QUEUES)[number], Mode>;

/** Draws the policy that the vault applies, and a form for administrators. */
export function Policy() {
	const t = en.approvals,
		read = useRead("/api/approvals/policies"),
		p = read.data;
	const [modes, setModes] = useState<Modes>(),
		[days, setDays] = useState(String(DAYS)),
		[stale, setStale] = useState(false);
	const act = useAction(async () => {
		try {
			await api.put("/api/approvals/policies", {body: {...modes!, days: Number(days)}, match: read.etag ?? undefined});
		} catch (e) {
			if (problemOf(e).status === 412) {
				setStale(true);
				read.reload();
			}
			throw e;
		}
		setStale(false);
		setModes(undefined);
		read.reload();
		done(t.policySaved);
	});
	const wanted = modes ?? (p ? {tool: p.tool, module: p.module, network: p.network} : undefined);
	const automatic = wanted !== undefined && QUEUES.some(q => wanted[q] === "automatic");
	const changed = p !== undefined && wanted !== undefined && QUEUES.some(q => wanted[q] !== p[q]);
	const number = Number(days),
		daysBad = automatic && !(Number.isInteger(number) && number >= 1 && number <= DAYS_MAX);

	useEffect(() => act.clear(), [modes]);
	return (
		<Page title={t.policy} back={[link("approvals"), t.title]} intro={t.policyIntro}>
			<ProblemNote problem={read.problem} again={read.reload} />
			{p === undefined || wanted === undefined ? (
				read.loading ? (
					<Loading />
				) : null
			) : (
				<>
					<Part title={t.policyNow}>
						<Facts
							facts={[
								...QUEUES.map(q => [t.queues[q]!, t.modes[p[q]]!] as [string, string]),
								[t.profile, p.profile ? t.profiles[p.profile] : null],
								[t.setBy, p.set_by ? <Text text={p.set_by} /> : t.neverSet],
								[t.setAt, p.set_at ? <Time at={p.set_at} /> : null],
								[
									t.automaticUntil,
									p.automatic_until ? (
										<>
											<Time at={p.automatic_until} />{" "}
											<State state={p.automatic_now ? t.holds : t.overNow} kind={p.automatic_now ? "warn" : "info"} />
										</>
									) : null,
								],
							]}
						/>
					</Part>
					<Part title={t.modesTitle}>
						<dl class="rights">
							{MODES.map(m => (
								<div key={m}>
									<dt>{t.modes[m]}</dt>
									<dd>{t.modeMeans[m]}</dd>
								</div>
							))}
						</dl>
						<h3>{t.neverTitle}</h3>
						<ul>
							{t.never.map(n => (
								<li key={n}>{n}</li>
							))}
						</ul>
					</Part>
					{meAdministers() ? (
						<Part title={t.policyChange}>
							<div class="buttons" role="group" aria-label={t.profile}>
								{(Object.keys(PROFILES) as (keyof typeof PROFILES)[]).map(name => (
									<button
										key={name}
										type="button"
										class="small"
										aria-pressed={QUEUES.every(q => PROFILES[name][q] === wanted[q])}
										onClick={() => setModes({...PROFILES[name]})}
									>
										{t.profiles[name]}
									</button>
								))}
							</div>
							<Form
								label={t.policySave}
								busy={act.busy}
								problem={act.problem}
								action={act.run}
								disabled={(!changed && !automatic) || daysBad}
							>
								<div class="columns">
									{QUEUES.map(q => (
										<Choice
											key={q}
											label={t.queues[q]!}
											value={wanted[q]}
											onValue={v => setModes({...wanted, [q]: v as Mode})}
											options={MODES.map(m => [m, t.modes[m]!] as const)}
										/>
									))}
								</div>
								{automatic ? (
									<Field
										label={t.days}
										hint={t.daysHint}
										type="number"
										min={1}
										max={DAYS_MAX}
										value={days}
										onValue={setDays}
										required
										error={daysBad ? t.daysBad : undefined}
									/>
								) : null}
								{stale ? (
									<Note kind="warn">
										<p>{t.policyStale}</p>
									</Note>
								) : null}
								{changed ? (
									<Note>
										<p>{t.policyWill}</p>
										<ul>
											{QUEUES.filter(q => wanted[q] !== p[q]).map(q => (
												<li key={q}>
													{t.queues[q]}: {t.then(t.modes[p[q]]!, t.modes[wanted[q]]!)}
												</li>
											))}
										</ul>
									</Note>
								) : null}
							</Form>
						</Part>
					) : (
						<p class="quiet">{t.onlyAdministrators}</p>
					)}
				</>
			)}
		</Page>
	);
}
