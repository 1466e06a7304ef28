/* Figures of the calls that the filters let through, as far as they are counted by these filters. */
import {useRead} from "../../api/use";
import {en} from "../../en";
import {link} from "../../route";
import {ProblemNote} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Facts, Table} from "../../ui/table";
import {count, duration, Text} from "../../ui/text";
import {failureWords} from "./words";

const t = en.calls;
/* Filters that GET /api/executions/stats takes. */
const COUNTED = ["tool", "principal", "kind", "outcome", "listener", "since", "until"];
const when = new Intl.DateTimeFormat("en-GB", {dateStyle: "medium", timeStyle: "short"});

function Counts({of, words}: {of: Record<string, number>; words: (name: string) => string}) {
	return (
		<Facts
			facts={Object.entries(of)
				.sort(([, a], [, b]) => b - a)
				.map(([name, n]) => [words(name), count(n)])}
		/>
	);
}

function wordsOf(table: Record<string, string>): (name: string) => string {
	return name => (Object.hasOwn(table, name) ? table[name]! : name);
}

export function Figures({words}: {words: Record<string, string>}) {
	const read = useRead("/api/executions/stats", {query: Object.fromEntries(Object.entries(words).filter(([n]) => COUNTED.includes(n)))});
	const s = read.data,
		left = Object.keys(words).filter(n => !COUNTED.includes(n));

	if (s === undefined) return <ProblemNote problem={read.problem} again={read.reload} />;
	return (
		<Part title={t.figures(when.format(new Date(s.since)), when.format(new Date(s.until)))}>
			{left.length > 0 ? <p class="quiet">{t.notCounted(left.map(wordsOf(t.filterNames)).join(", "))}</p> : null}
			<Facts
				facts={[
					[t.counted, count(s.total.calls)],
					[t.errors, count(s.total.errors)],
					[t.average, duration(s.total.duration_ms_average)],
					[t.longest, duration(s.total.duration_ms_max)],
					[t.cpu, duration(s.total.cpu_ms)],
				]}
			/>
			{s.total.calls > 0 ? (
				<details>
					<summary>{t.more}</summary>
					<div class="columns">
						<Table
							label={t.byTool}
							rows={s.tools}
							keyOf={r => r.tool ?? ""}
							columns={[
								{
									name: t.tool,
									kind: "wide",
									cell: r => (
										<a href={link("calls", {...words, tool: r.tool})}>
											<Text text={r.tool} />
										</a>
									),
								},
								{name: t.counted, kind: "number", cell: r => count(r.calls)},
								{name: t.errors, kind: "number", cell: r => count(r.errors)},
								{name: t.average, kind: "number", cell: r => duration(r.duration_ms_average)},
							]}
						/>
						<Table
							label={t.byPrincipal}
							rows={s.principals}
							keyOf={r => r.principal ?? ""}
							columns={[
								{
									name: t.principal,
									kind: "wide",
									cell: r => (
										<a href={link("calls", {...words, principal: r.principal})}>
											<Text text={r.principal} />
										</a>
									),
								},
								{name: t.counted, kind: "number", cell: r => count(r.calls)},
								{name: t.errors, kind: "number", cell: r => count(r.errors)},
							]}
						/>
					</div>
					<h3>{t.byOutcome}</h3>
					<Counts of={s.outcomes} words={wordsOf(t.outcomes)} />
					{Object.keys(s.failures).length > 0 ? (
						<>
							<h3>{t.byFailure}</h3>
							<Counts of={s.failures} words={failureWords} />
						</>
					) : null}
					<h3>{t.byListener}</h3>
					<Counts of={s.listeners} words={wordsOf(t.listeners)} />
				</details>
			) : null}
		</Part>
	);
}
