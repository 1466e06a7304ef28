/* API tokens of clients. */
import {useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction, usePages} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {link} from "../../route";
import {AskButton} from "../../ui/dialog";
import {type Filter, Filters, filterValues} from "../../ui/filters";
import {Choice, Field, Form, Tick} from "../../ui/form";
import {done, Empty, State} from "../../ui/notice";
import {Once} from "../../ui/once";
import {Part} from "../../ui/page";
import {List} from "../../ui/table";
import {Made, Text, Time} from "../../ui/text";

const t = en.access;
type Token = Schemas["Token"];
const SCOPES = ["tools:read", "tools:call", "manage", "manage:edit"] as const;
const LISTENERS = ["tunnel", "local"] as const;
const FILTERS: Filter[] = [
	{
		name: "state",
		label: t.state,
		options: [
			["", t.anyState],
			["active", en.states.active!],
			["expired", en.states.expired!],
			["revoked", en.states.revoked!],
		],
	},
];

export function Tokens({query}: {query: URLSearchParams}) {
	const list = usePages("/api/tokens", {query: filterValues(FILTERS, query)});
	return (
		<>
			{meAdministers() ? <New onDone={list.reload} /> : null}
			<Filters filters={FILTERS} query={query} />
			<List
				label={t.tabs.tokens}
				list={list}
				keyOf={k => k.id}
				empty={
					<Empty title={t.noTokens}>
						<p>{t.noTokensWhy}</p>
					</Empty>
				}
				columns={[
					{
						name: t.name,
						kind: "wide",
						cell: k => (
							<>
								<a href={link("calls", {principal: k.principal})}>
									<Text text={k.name} />
								</a>
								<div class="quiet plain-weight">
									<Rights k={k} />
								</div>
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
					{name: t.listeners, kind: "narrow", cell: k => k.listeners.map(l => t.listenerNames[l] ?? l).join(", ")},
					{name: t.used, cell: k => (k.last_used_at ? <Time at={k.last_used_at} /> : t.never)},
					{
						name: t.ends,
						cell: k => (k.revoked_at ? <Time at={k.revoked_at} /> : k.expires_at ? <Time at={k.expires_at} /> : t.never),
					},
					{
						name: t.made,
						kind: "narrow",
						cell: k => <Made at={k.created_at} by={k.created_by} />,
					},
					...(meAdministers()
						? [
								{
									name: en.actions,
									cell: (k: Token) =>
										k.state === "revoked" ? null : (
											<AskButton
												small
												danger
												label={t.revoke}
												title={t.revokeTitle(k.name)}
												reason={{label: t.reason}}
												action={async reason => {
													await api.post("/api/tokens/{id}/revoke", {
														path: {id: k.id},
														body: reason ? {reason} : {},
													});
													done(t.revoked(k.name));
													list.reload();
												}}
											>
												<p>{t.revokeWhy}</p>
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

function Rights({k}: {k: Token}) {
	return k.set ? (
		<>
			{t.set} <Text text={k.set} />
		</>
	) : (
		<>
			{k.scopes.join(", ")}
			{k.allow.join() === "*" ? null : (
				<>
					{" "}
					· {t.only} <Text text={k.allow.join(", ")} max={160} />
				</>
			)}
			{k.deny.length > 0 ? (
				<>
					{" "}
					· {t.not} <Text text={k.deny.join(", ")} max={160} />
				</>
			) : null}
		</>
	);
}

function New({onDone}: {onDone: () => void}) {
	const [name, setName] = useState(""),
		[days, setDays] = useState("90"),
		[set, setSet] = useState(""),
		[bySet, setBySet] = useState("no");
	const [scopes, setScopes] = useState<string[]>(["tools:read", "tools:call"]),
		[listeners, setListeners] = useState<string[]>(["tunnel"]),
		[allow, setAllow] = useState("*"),
		[deny, setDeny] = useState("");
	const [token, setToken] = useState<string>();
	const words = (text: string) => text.split(/[\s,]+/).filter(w => w !== "");
	const act = useAction(async () => {
		setToken(undefined);
		const {data} = await api.post("/api/tokens", {
			body: {
				name,
				listeners: LISTENERS.filter(l => listeners.includes(l)),
				expires_in_days: days === "" ? null : Number(days),
				...(bySet === "yes" ? {set} : {scopes: SCOPES.filter(s => scopes.includes(s)), allow: words(allow), deny: words(deny)}),
			} as never,
		});
		setToken(data.token);
		setName("");
		onDone();
	});

	return (
		<Part title={t.newToken}>
			{token ? <Once secret={token} how={t.tokenHow} /> : null}
			<details open={token !== undefined ? undefined : false}>
				<summary class="button">{t.newTokenForm}</summary>
				<Form label={t.makeToken} busy={act.busy} problem={act.problem} action={act.run}>
					<div class="columns">
						<Field label={t.name} hint={t.nameHint} value={name} onValue={setName} required maxLength={64} />
						<Field label={t.days} hint={t.daysHint} type="number" min={1} max={3650} value={days} onValue={setDays} />
						<fieldset>
							<legend>{t.listeners}</legend>
							{LISTENERS.map(l => (
								<Tick
									key={l}
									label={t.listenerNames[l]!}
									value={listeners.includes(l)}
									onValue={on => setListeners(v => (on ? [...v, l] : v.filter(x => x !== l)))}
								/>
							))}
						</fieldset>
						<Choice
							label={t.rightsBy}
							value={bySet}
							onValue={setBySet}
							options={[
								["no", t.byScopes],
								["yes", t.bySet],
							]}
						/>
					</div>
					{bySet === "yes" ? (
						<Field label={t.set} hint={t.setHint} value={set} onValue={setSet} required />
					) : (
						<div class="columns">
							<fieldset>
								<legend>{t.scopes}</legend>
								{SCOPES.map(s => (
									<Tick
										key={s}
										label={s}
										hint={t.scopeTexts[s]}
										value={scopes.includes(s)}
										onValue={on => setScopes(v => (on ? [...v, s] : v.filter(x => x !== s)))}
									/>
								))}
							</fieldset>
							<div>
								<Field label={t.allow} hint={t.allowHint} value={allow} onValue={setAllow} />
								<Field label={t.deny} value={deny} onValue={setDeny} />
							</div>
						</div>
					)}
				</Form>
			</details>
		</Part>
	);
}
