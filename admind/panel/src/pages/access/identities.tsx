/* People of issuers who came in with a signed token. */
import {api, type Schemas} from "../../api/client";
import {usePages} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {link} from "../../route";
import {AskButton} from "../../ui/dialog";
import {type Filter, Filters, filterValues} from "../../ui/filters";
import {done, Empty, State} from "../../ui/notice";
import {List} from "../../ui/table";
import {Text, Time} from "../../ui/text";

const t = en.access;
type Identity = Schemas["Identity"];
const FILTERS: Filter[] = [
	{name: "issuer", label: t.issuer},
	{
		name: "state",
		label: t.state,
		options: [
			["", t.anyState],
			["active", en.states.active!],
			["withdrawn", en.states.withdrawn!],
		],
	},
];

export function Identities({query}: {query: URLSearchParams}) {
	const list = usePages("/api/identities", {query: filterValues(FILTERS, query)});
	return (
		<>
			<Filters filters={FILTERS} query={query} />
			<List
				label={t.tabs.identities}
				list={list}
				keyOf={i => i.principal}
				empty={
					<Empty title={t.noPeople}>
						<p>{t.noPeopleWhy}</p>
					</Empty>
				}
				columns={[
					{
						name: t.person,
						kind: "wide",
						cell: i => (
							<>
								<a href={link("calls", {principal: i.principal})}>
									<Text text={i.email ?? i.subject} max={120} />
								</a>
								<div class="quiet plain-weight">
									<Text text={i.principal} max={160} />
								</div>
							</>
						),
					},
					{name: t.issuer, cell: i => <Text text={i.issuer} />},
					{name: t.set, cell: i => (i.set ? <Text text={i.set} /> : null)},
					{
						name: t.state,
						cell: i => (
							<>
								<State state={i.state} />
								{i.reason ? (
									<div class="quiet">
										<Text text={i.reason} max={100} />
									</div>
								) : null}
							</>
						),
					},
					{name: t.used, cell: i => (i.last_used_at ? <Time at={i.last_used_at} /> : t.never)},
					...(meAdministers()
						? [
								{
									name: en.actions,
									cell: (i: Identity) =>
										i.state === "active" ? (
											<AskButton
												small
												danger
												label={t.withdraw}
												title={t.withdrawTitle(i.email ?? i.subject)}
												reason={{label: t.reason}}
												action={async reason => {
													await api.post("/api/identities/withdraw", {
														body: {principal: i.principal, ...(reason ? {reason} : {})},
													});
													done(t.withdrawn);
													list.reload();
												}}
											>
												<p>{t.withdrawWhy}</p>
											</AskButton>
										) : (
											<AskButton
												small
												label={t.restore}
												title={t.restoreTitle(i.email ?? i.subject)}
												action={async () => {
													await api.post("/api/identities/restore", {body: {principal: i.principal}});
													done(t.restored);
													list.reload();
												}}
											>
												<p>{t.restoreWhy}</p>
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
