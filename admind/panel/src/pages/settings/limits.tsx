/* Rate limits of single listeners, principals and tools. */
import {useRef, useState} from "preact/hooks";
import {api, type Problem, type Schemas} from "../../api/client";
import {useAction, usePages} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {link} from "../../route";
import {AskButton} from "../../ui/dialog";
import {Choice, Field, Form} from "../../ui/form";
import {done, Empty} from "../../ui/notice";
import {Part} from "../../ui/page";
import {List} from "../../ui/table";
import {count, show, Text, Time} from "../../ui/text";

const t = en.settings;
type Limit = Schemas["RateLimit"];
const FIELDS = ["subject", "per_minute", "burst"] as const;

/* Returns which field a refusal is about: the server's text begins with its name. */
function fieldOf(problem: Problem | undefined): (typeof FIELDS)[number] | undefined {
	return problem?.failure_mode === "invalid_params" ? FIELDS.find(f => problem.detail.replace(/^member /, "").startsWith(f)) : undefined;
}

/** Draws the list and, for administrators, the form that sets one. */
export function Limits() {
	const list = usePages("/api/rate-limits");
	const form = useRef<HTMLDivElement>(null);
	const [scope, setScope] = useState<string>("tool"),
		[subject, setSubject] = useState(""),
		[per, setPer] = useState(""),
		[burst, setBurst] = useState("");
	const act = useAction(async () => {
		await api.post("/api/rate-limits", {body: {scope, subject, per_minute: Number(per), ...(burst ? {burst: Number(burst)} : {})}});
		done(t.set(subject));
		setSubject("");
		setPer("");
		setBurst("");
		list.reload();
	});
	const at = fieldOf(act.problem),
		why = at ? show(act.problem!.detail) : undefined;

	function edit(r: Limit) {
		act.clear();
		setScope(r.scope);
		setSubject(r.subject);
		setPer(String(r.per_minute));
		setBurst(String(r.burst));
		form.current?.querySelector("select")?.focus();
	}

	return (
		<>
			<List
				label={t.tabs.limits}
				list={list}
				keyOf={r => `${r.scope} ${r.subject}`}
				empty={
					<Empty title={t.noLimits}>
						<p>{t.noLimitsWhy}</p>
						<p>
							<a href={link("settings", {find: "rate_"})}>{t.toRates}</a>
						</p>
					</Empty>
				}
				columns={[
					{name: t.subject, kind: "wide", cell: r => <Text text={r.subject} />},
					{name: t.scope, cell: r => t.scopes[r.scope]},
					{name: t.perMinute, kind: "number", cell: r => (r.per_minute === 0 ? t.unlimited : count(r.per_minute))},
					{name: t.burst, kind: "number", cell: r => (r.per_minute === 0 ? "–" : count(r.burst))},
					{
						name: t.changed,
						cell: r => (
							<>
								{t.by} <Text text={r.updated_by} />, <Time at={r.updated_at} />
							</>
						),
					},
					...(meAdministers()
						? [
								{
									name: en.actions,
									cell: (r: Limit) => (
										<span class="buttons">
											<button
												type="button"
												class="small"
												aria-label={show(t.changeTitle(r.subject))}
												onClick={() => edit(r)}
											>
												{t.change}
											</button>
											<AskButton
												small
												label={t.remove}
												title={show(t.removeTitle(r.subject))}
												action={async () => {
													await api.post("/api/rate-limits/remove", {body: {scope: r.scope, subject: r.subject}});
													list.reload();
													done(t.removed(r.subject));
												}}
											>
												<p>{t.removeWhy}</p>
											</AskButton>
										</span>
									),
								},
							]
						: []),
				]}
			/>
			{list.items.length > 0 ? (
				<p>
					<a href={link("settings", {find: "rate_"})}>{t.toRates}</a>
				</p>
			) : null}
			{meAdministers() ? (
				<Part title={t.add}>
					<div ref={form}>
						<Form label={t.addButton} busy={act.busy} problem={at ? undefined : act.problem} action={act.run}>
							<div class="columns">
								<Choice label={t.scope} value={scope} onValue={setScope} options={Object.entries(t.scopes)} />
								<Field
									label={t.subject}
									hint={t.subjectHints[scope]}
									error={at === "subject" ? why : undefined}
									value={subject}
									onValue={setSubject}
									required
								/>
								<Field
									label={t.perMinute}
									hint={t.perMinuteHint}
									error={at === "per_minute" ? why : undefined}
									type="number"
									value={per}
									onValue={setPer}
									required
								/>
								<Field
									label={t.burst}
									hint={t.burstHint}
									error={at === "burst" ? why : undefined}
									type="number"
									value={burst}
									onValue={setBurst}
								/>
							</div>
						</Form>
					</div>
				</Part>
			) : null}
		</>
	);
}
