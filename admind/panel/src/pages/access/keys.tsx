/* Keys with which scripts call the REST API. */
import {useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction, usePages} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {AskButton} from "../../ui/dialog";
import {Field, Form, Tick} from "../../ui/form";
import {done, Empty, State} from "../../ui/notice";
import {Once} from "../../ui/once";
import {Part} from "../../ui/page";
import {List} from "../../ui/table";
import {Made, Text, Time} from "../../ui/text";

const t = en.access;
type Key = Schemas["Key"];
const SCOPES = ["read", "metrics", "operate", "export"] as const;

export function Keys() {
	const list = usePages("/api/keys");
	return (
		<>
			{meAdministers() ? <New onDone={list.reload} /> : null}
			<List
				label={t.tabs.keys}
				list={list}
				keyOf={k => k.name}
				empty={
					<Empty title={t.noKeys}>
						<p>{t.noKeysWhy}</p>
					</Empty>
				}
				columns={[
					{
						name: t.name,
						kind: "wide",
						cell: k => (
							<>
								<Text text={k.name} />
								<div class="quiet plain-weight">{k.scopes.join(", ")}</div>
							</>
						),
					},
					{
						name: t.state,
						cell: k => (
							<>
								<State state={k.state} />
								{k.reason ? (
									<div class="quiet">
										<Text text={k.reason} max={100} />
									</div>
								) : null}
							</>
						),
					},
					{name: t.used, cell: k => (k.last_used_at ? <Time at={k.last_used_at} /> : t.never)},
					{name: t.ends, cell: k => <Time at={k.revoked_at ?? k.expires_at} />},
					{
						name: t.made,
						kind: "narrow",
						cell: k => <Made at={k.created_at} by={k.created_by} />,
					},
					...(meAdministers()
						? [
								{
									name: en.actions,
									cell: (k: Key) =>
										k.state === "revoked" ? null : (
											<AskButton
												small
												danger
												label={t.revoke}
												title={t.revokeTitle(k.name)}
												reason={{label: t.reason}}
												action={async reason => {
													await api.post("/api/keys/{name}/revoke", {
														path: {name: k.name},
														body: reason ? {reason} : {},
													});
													done(t.revoked(k.name));
													list.reload();
												}}
											>
												<p>{t.keyRevokeWhy}</p>
											</AskButton>
										),
								},
							]
						: []),
				]}
			/>
		</>
	);
}

function New({onDone}: {onDone: () => void}) {
	const [name, setName] = useState(""),
		[days, setDays] = useState("90"),
		[scopes, setScopes] = useState<string[]>(["read"]),
		[key, setKey] = useState<string>();
	const act = useAction(async () => {
		setKey(undefined);
		const {data} = await api.post("/api/keys", {
			body: {name, scopes: SCOPES.filter(s => scopes.includes(s)), expires_in_days: Number(days)},
		});
		setKey(data.key);
		setName("");
		onDone();
	});
	return (
		<Part title={t.newKey}>
			{key ? <Once secret={key} how={t.keyHow} /> : null}
			<details open={key !== undefined ? undefined : false}>
				<summary class="button">{t.newKeyForm}</summary>
				<Form label={t.makeKey} busy={act.busy} problem={act.problem} action={act.run}>
					<div class="columns">
						<div>
							<Field label={t.name} hint={t.nameHint} value={name} onValue={setName} required maxLength={64} />
							<Field label={t.days} type="number" min={1} max={365} value={days} onValue={setDays} required />
						</div>
						<fieldset>
							<legend>{t.scopes}</legend>
							{SCOPES.map(s => (
								<Tick
									key={s}
									label={s}
									hint={t.keyScopes[s]}
									value={scopes.includes(s)}
									onValue={on => setScopes(v => (on ? [...v, s] : v.filter(x => x !== s)))}
								/>
							))}
						</fieldset>
					</div>
				</Form>
			</details>
		</Part>
	);
}
