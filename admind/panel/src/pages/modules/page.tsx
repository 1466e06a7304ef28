/* Modules that tools may be granted, and those that are being fetched. */
import {useState} from "preact/hooks";
import {usePages} from "../../api/use";
import {en} from "../../en";
import {useEvery} from "../../me";
import {goWords, link, useRoute} from "../../route";
import {Choice} from "../../ui/form";
import {Empty} from "../../ui/notice";
import {Page} from "../../ui/page";
import {List} from "../../ui/table";
import {bytes, Text} from "../../ui/text";
import {Installs} from "./installs";
import {ModuleState, OneModule} from "./one";

const t = en.modules;
const RUNNING_MS = 3000;
const STATES = ["available", "withdrawn"] as const;

/** Draws the page. While a module is being fetched, it reads again each few seconds. */
export default function Modules() {
	const words = useRoute().query.get("state"),
		state = STATES.find(s => s === words);
	const modules = usePages("/api/modules", {query: {state}}),
		installs = usePages("/api/modules/installs");
	const moving = installs.items.some(i => i.state === "waiting" || i.state === "running");
	const [was, setWas] = useState(false);

	if (was !== moving) {
		setWas(moving);
		if (was) modules.reload();
	}
	useEvery(RUNNING_MS, () => moving && installs.reload());
	return (
		<Page
			title={t.title}
			intro={t.intro}
			actions={
				<a class="button" href={link("approvals", {state: "pending", kind: "module"})}>
					{t.requests}
				</a>
			}
		>
			{modules.items.length > 0 || state ? (
				<div class="filters">
					<Choice
						label={t.state}
						value={state ?? ""}
						onValue={v => goWords({state: v})}
						options={[["", t.anyState], ...STATES.map(s => [s, en.states[s] ?? s] as const)]}
					/>
				</div>
			) : null}
			<List
				label={t.inStore}
				list={modules}
				keyOf={m => m.digest}
				columns={[
					{name: t.name, kind: "wide", cell: m => <OneModule m={m} />},
					{name: t.version, cell: m => <Text text={m.version} />},
					{name: t.state, cell: m => <ModuleState m={m} />},
					{name: t.size, kind: "number", cell: m => bytes(m.bytes)},
					{
						name: t.tools,
						cell: m =>
							m.tools.length === 0 ? (
								<span class="quiet">{t.noTool}</span>
							) : (
								<ul class="plain-list">
									{m.tools.map(name => (
										<li key={name}>
											<a href={link("approvals", {state: "approved", kind: "module", tool: name})}>
												<Text text={name} />
											</a>
										</li>
									))}
								</ul>
							),
					},
				]}
				empty={
					state ? (
						<Empty title={t.noState} />
					) : (
						<Empty title={t.empty}>
							<p>{t.emptyWhy}</p>
						</Empty>
					)
				}
			/>
			<Installs list={installs} />
		</Page>
	);
}
