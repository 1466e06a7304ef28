/* The list of sources. */
import {usePages} from "../../api/use";
import {en} from "../../en";
import {link} from "../../route";
import {type Filter, Filters, filterValues} from "../../ui/filters";
import {Empty, State} from "../../ui/notice";
import {Page} from "../../ui/page";
import {useServers} from "../../ui/servers";
import {List} from "../../ui/table";
import {count, Text, Time} from "../../ui/text";

const t = en.sources;

export function SourceList({query}: {query: URLSearchParams}) {
	const servers = useServers(query.get("server") ?? "");
	const filters: Filter[] = [{name: "server", label: t.server, servers, any: t.anyServer}];
	const list = usePages("/api/sources", {query: filterValues(filters, query)});

	return (
		<Page title={t.title} intro={t.intro}>
			<Filters filters={filters} query={query} />
			<List
				label={t.title}
				list={list}
				keyOf={s => s.id}
				empty={
					<Empty title={t.empty}>
						<p>{t.emptyWhy}</p>
					</Empty>
				}
				columns={[
					{
						name: t.name,
						kind: "wide",
						cell: s => (
							<>
								<a href={link("sources", s.id)}>
									<Text text={s.name} />
								</a>
								<div class="quiet plain-weight">
									<Text text={s.url} max={160} strict />
								</div>
							</>
						),
					},
					{
						name: t.state,
						cell: s => <State state={s.approval_status && s.approval_status !== "approved" ? s.approval_status : s.status} />,
					},
					{name: t.tools, kind: "number", cell: s => count(s.tool_count)},
					{name: t.imported, kind: "number", cell: s => count(s.imported)},
					{name: t.asked, kind: "narrow", cell: s => (s.last_discovered_at ? <Time at={s.last_discovered_at} /> : t.never)},
				]}
			/>
		</Page>
	);
}
