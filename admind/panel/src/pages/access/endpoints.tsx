/* Endpoints: parts of the catalogue with an address of their own. */
import {usePages} from "../../api/use";
import {en} from "../../en";
import {Empty, Note} from "../../ui/notice";
import {List} from "../../ui/table";
import {count, Text} from "../../ui/text";

const t = en.access;

export function Endpoints() {
	const list = usePages("/api/endpoints");
	return (
		<List
			label={t.tabs.endpoints}
			list={list}
			keyOf={e => e.name}
			empty={
				<Empty title={t.noEndpoints}>
					<p>{t.noEndpointsWhy}</p>
				</Empty>
			}
			columns={[
				{
					name: t.address,
					kind: "wide",
					cell: e => (
						<>
							<code>
								<Text text={e.path} strict />
							</code>
							{e.missing.length > 0 ? (
								<Note kind="warn">
									<p>
										{t.missing}: <Text text={e.missing.join(", ")} max={400} />
									</p>
								</Note>
							) : null}
							{e.hidden.length > 0 ? (
								<Note>
									<p>
										{t.hidden}: <Text text={e.hidden.join(", ")} max={400} />
									</p>
								</Note>
							) : null}
							<details class="plain-weight">
								<summary>{t.itsTools}</summary>
								<p>
									<Text text={e.tools.join(", ") || en.none} max={4000} />
								</p>
							</details>
						</>
					),
				},
				{name: t.mode, cell: e => t.modes[e.mode]},
				{name: t.set, cell: e => (e.set ? <Text text={e.set} /> : t.anySet)},
				{name: t.listeners, kind: "narrow", cell: e => e.listeners.map(l => t.listenerNames[l] ?? l).join(", ")},
				{name: en.tools.title, kind: "number", cell: e => count(e.tools_total)},
				{name: en.prompts.title, kind: "number", cell: e => count(e.prompts_total + e.resources_total)},
			]}
		/>
	);
}
