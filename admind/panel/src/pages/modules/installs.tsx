/* Modules on their way from the index, and the form that fetches one. */
import {useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {type Paged, useAction} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {link} from "../../route";
import {AskButton} from "../../ui/dialog";
import {Field, Form} from "../../ui/form";
import {done, State} from "../../ui/notice";
import {Part} from "../../ui/page";
import {List} from "../../ui/table";
import {count, show, Text, Time} from "../../ui/text";

const t = en.modules;
type Install = Schemas["ModuleInstall"];
const KINDS: Record<Install["state"], "info" | "good" | "warn" | "bad"> = {waiting: "warn", running: "info", done: "good", failed: "bad"};

async function fetchModule(name: string, version: string | null): Promise<void> {
	await api.post("/api/modules/{name}/install", {path: {name}, body: version ? {version} : {}});
	done(t.fetched(name));
}

/** Draws installs with what became of them. Administrators fetch a module, or try one again that failed. */
export function Installs({list}: {list: Paged<Install>}) {
	return (
		<Part title={t.installs}>
			<p class="quiet">{t.installsWhy}</p>
			<List
				label={en.tableOf(t.installs)}
				list={list}
				keyOf={i => `${i.name} ${i.version ?? ""}`}
				empty={<p class="quiet">{t.noInstalls}</p>}
				columns={[
					{
						name: t.name,
						cell: i => (
							<>
								<Text text={i.name} /> <Text text={i.resolved ?? i.version ?? t.newest} />
							</>
						),
					},
					{
						name: t.state,
						cell: i => (
							<>
								<State state={t.installStates[i.state]} kind={KINDS[i.state]} />{" "}
								<span class="quiet">
									<Time at={i.updated_at} />
								</span>
							</>
						),
					},
					{name: t.tries, kind: "number", cell: i => count(i.attempts)},
					{
						name: t.error,
						kind: "wide",
						cell: i =>
							i.error || i.next_at || i.execution ? (
								<>
									{i.error ? (
										<div>
											<Text text={i.error} />
										</div>
									) : null}
									{i.next_at && i.state === "waiting" ? (
										<div class="quiet">
											{t.next} <Time at={i.next_at} />
										</div>
									) : null}
									{i.execution ? (
										<div>
											<a href={link("calls", i.execution)}>{t.run}</a>
										</div>
									) : null}
								</>
							) : null,
					},
					...(meAdministers()
						? [
								{
									name: en.actions,
									cell: (i: Install) =>
										i.state !== "failed" ? null : (
											<AskButton
												small
												label={t.again}
												title={show(t.againTitle(i.name))}
												action={async () => {
													await fetchModule(i.name, i.version);
													list.reload();
												}}
											>
												<p>{t.fetchWhy}</p>
											</AskButton>
										),
								},
							]
						: []),
				]}
			/>
			{meAdministers() ? <Fetch onDone={list.reload} /> : null}
		</Part>
	);
}

function Fetch({onDone}: {onDone: () => void}) {
	const [name, setName] = useState(""),
		[version, setVersion] = useState("");
	const act = useAction(async () => {
		await fetchModule(name.trim(), version.trim());
		setName("");
		setVersion("");
		onDone();
	});
	return (
		<Form label={t.fetch} busy={act.busy} problem={act.problem} action={act.run}>
			<h3>{t.fetchTitle}</h3>
			<p class="quiet">{t.fetchWhy}</p>
			<div class="columns">
				<Field label={t.fetchName} value={name} onValue={setName} required maxLength={255} />
				<Field label={t.version} hint={t.fetchVersionHint} value={version} onValue={setVersion} maxLength={255} />
			</div>
		</Form>
	);
}
