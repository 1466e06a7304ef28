/* Hosts that were granted to servers. */
import {api, type Schemas} from "../../api/client";
import {usePages} from "../../api/use";
import {en} from "../../en";
import {meReviews} from "../../me";
import type {PageProps} from "../../pages";
import {link} from "../../route";
import {AskButton} from "../../ui/dialog";
import {type Filter, Filters, filterValues} from "../../ui/filters";
import {done, Empty, State} from "../../ui/notice";
import {Page} from "../../ui/page";
import {useServers} from "../../ui/servers";
import {List} from "../../ui/table";
import {show, Text, Time} from "../../ui/text";

const t = en.network;
type Grant = Schemas["NetworkGrant"];

export default function Network({query}: PageProps) {
	const servers = useServers(query.get("server") ?? "");
	const policy = new Map(servers.items.map(s => [s.id, s.network_access_policy ? en.servers.policies[s.network_access_policy] : ""]));
	const filters: Filter[] = [
		{name: "server", label: t.server, servers, any: t.anyServer},
		{
			name: "state",
			label: t.state,
			options: [
				["", t.anyState],
				["active", en.states.active!],
				["revoked", en.states.revoked!],
			],
		},
	];
	const list = usePages("/api/network", {query: filterValues(filters, query)});

	return (
		<Page title={t.title} intro={t.intro}>
			<Filters filters={filters} query={query} />
			<List
				label={t.title}
				list={list}
				keyOf={g => g.id}
				empty={
					<Empty title={t.empty}>
						<p>{t.emptyWhy}</p>
					</Empty>
				}
				columns={[
					{
						name: t.host,
						kind: "wide",
						cell: g => (
							<code>
								<Text text={g.host} strict />
								{g.port === null ? "" : `:${g.port}`}
								{g.proto === "udp" ? " udp" : ""}
							</code>
						),
					},
					{
						name: t.server,
						cell: g => (
							<>
								<a href={link("servers", g.server_id)}>
									<Text text={g.server} />
								</a>
								<div class="quiet">{policy.get(g.server_id)}</div>
							</>
						),
					},
					{
						name: t.state,
						cell: g =>
							g.revoked_at ? (
								<>
									<State state="revoked" />{" "}
									<span class="quiet">
										<Time at={g.revoked_at} /> {t.by} <Text text={g.revoked_by} />
									</span>
								</>
							) : (
								<State state="active" />
							),
					},
					{
						name: t.granted,
						cell: g => (
							<>
								<Time at={g.granted_at} /> {t.by} {g.automatic ? t.policy : <Text text={g.granted_by} />}{" "}
								<a href={link("approvals", g.id)} aria-label={t.requestOf(show(g.host, true))}>
									{t.request}
								</a>
							</>
						),
					},
					...(meReviews()
						? [{name: en.actions, cell: (g: Grant) => (g.revoked_at ? null : <Revoke g={g} onDone={list.reload} />)}]
						: []),
				]}
			/>
		</Page>
	);
}

/* The id of a grant is that of the request that was approved. */
function Revoke({g, onDone}: {g: Grant; onDone: () => void}) {
	return (
		<AskButton
			small
			danger
			label={t.revoke}
			title={t.revokeTitle(show(g.host, true))}
			reason={{label: t.reason}}
			action={async reason => {
				await api.post("/api/approvals/{id}/revoke", {path: {id: g.id}, body: {reason}});
				done(t.revoked(g.host));
				onDone();
			}}
		>
			<p>{t.revokeWhy}</p>
		</AskButton>
	);
}
