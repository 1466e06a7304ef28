/* Calls and their time over the hours, drawn by uPlot; the same numbers as a sentence and as a table, for who sees no lines. */
import {useEffect, useRef, useState} from "preact/hooks";
import type uPlot from "uplot";
import type {Schemas} from "../../api/client";
import {en} from "../../en";
import {Table} from "../../ui/table";
import {count, duration} from "../../ui/text";

type Dashboard = Schemas["Dashboard"];
type Row = Dashboard["calls_over_time"][number];
const t = en.overview;
const HEIGHT = 180;
const HOUR_MS = 3_600_000;
/* Steps of the scale: neither a count nor a millisecond has halves. */
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7, 1e8];
const hour = new Intl.DateTimeFormat("en-GB", {dateStyle: "short", timeStyle: "short"});
const clock = new Intl.DateTimeFormat("en-GB", {hour: "2-digit", minute: "2-digit"});
const day = new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "short"});

interface Line {
	label: string;
	/** Class of styles whose colour the line has. */
	tone: string;
	dash?: number[];
	values: (number | null)[];
}

/** Returns a row for each hour of the period: the server leaves out those without a call. */
export function hoursOf(d: Pick<Dashboard, "calls_over_time" | "since" | "until">): Row[] {
	const counted = new Map(d.calls_over_time.map(r => [new Date(r.at).getTime(), r])),
		rows: Row[] = [];

	for (let at = Math.floor(new Date(d.since).getTime() / HOUR_MS) * HOUR_MS; at <= new Date(d.until).getTime(); at += HOUR_MS)
		rows.push(counted.get(at) ?? {at: new Date(at).toISOString(), calls: 0, errors: 0, duration_ms_average: null});
	return rows;
}

/* Returns true if a value has no neighbour, so that no line would show it. */
function lonely(values: (number | null)[]): boolean {
	return values.some((v, i) => v !== null && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null);
}

/* Reads a colour of the styles: the canvas takes no tokens. */
function colour(el: HTMLElement, tone: string): string {
	const probe = document.createElement("span");
	probe.className = tone;
	el.append(probe);
	const value = getComputedStyle(probe).color;
	probe.remove();
	return value;
}

function Chart({title, x, lines, unit}: {title: string; x: number[]; lines: Line[]; unit: (v: number) => string}) {
	const ref = useRef<HTMLDivElement>(null);

	useEffect(() => {
		const el = ref.current!,
			looks = [matchMedia("(prefers-color-scheme: dark)"), matchMedia("(forced-colors: active)")];
		let plot: uPlot | undefined,
			gone = false,
			Plot: typeof uPlot | undefined;

		function draw() {
			plot?.destroy();
			if (Plot === undefined || gone) return;
			const axis = {stroke: colour(el, "tone-quiet"), grid: {stroke: colour(el, "tone-line"), width: 1}, ticks: {show: false}};
			const days = x.at(-1)! - x[0]! > 2 * 86400;
			plot = new Plot(
				{
					width: el.clientWidth,
					height: HEIGHT,
					legend: {show: false},
					cursor: {show: false},
					padding: [8, 12, 0, 0],
					scales: {x: {range: [x[0]!, x.at(-1)!]}, y: {range: (_, __, max) => [0, Math.max(max ?? 0, 1) * 1.1]}},
					axes: [
						{
							...axis,
							space: 56,
							size: 28,
							values: (_, ticks) => ticks.map(v => (days ? day : clock).format(new Date(v * 1000))),
						},
						{...axis, size: 60, incrs: WHOLE, values: (_, ticks) => ticks.map(v => unit(v))},
					],
					series: [
						{},
						...lines.map(l => ({
							label: l.label,
							stroke: colour(el, l.tone),
							width: 2,
							dash: l.dash,
							points: {show: lonely(l.values)},
						})),
					],
				},
				[x, ...lines.map(l => l.values)],
				el,
			);
		}
		void import("uplot").then(
			m => {
				Plot = m.default;
				draw();
			},
			() => undefined,
		);
		const sized = new ResizeObserver(() => plot?.setSize({width: el.clientWidth, height: HEIGHT}));
		sized.observe(el);
		for (const look of looks) look.addEventListener("change", draw);
		return () => {
			gone = true;
			sized.disconnect();
			for (const look of looks) look.removeEventListener("change", draw);
			plot?.destroy();
		};
	}, [JSON.stringify([x, lines.map(l => l.values)])]);
	return (
		<figure class="chart">
			<figcaption>
				<strong>{title}</strong>{" "}
				{lines.length > 1
					? lines.map(l => (
							<span key={l.label} class={`key ${l.tone}`}>
								{l.label}
							</span>
						))
					: null}
			</figcaption>
			<div ref={ref} class="plot" aria-hidden="true" />
		</figure>
	);
}

/** Draws a sentence, both charts, and on demand their table. */
export function Charts({d}: {d: Dashboard}) {
	const [open, setOpen] = useState(false);
	const rows = hoursOf(d),
		x = rows.map(r => new Date(r.at).getTime() / 1000),
		c = d.calls;

	if (d.calls_over_time.length === 0) return <p class="quiet">{t.noHours}</p>;
	return (
		<>
			<p>
				{t.sum(t.inPeriod[d.period], c.calls, c.errors)}{" "}
				{c.duration_ms_average === null ? null : t.took(duration(c.duration_ms_average), duration(c.duration_ms_max))}
			</p>
			<div class="charts">
				<Chart
					title={t.perHour}
					x={x}
					unit={v => count(v)}
					lines={[
						{label: t.calls, tone: "tone-accent", values: rows.map(r => r.calls)},
						{label: t.errors, tone: "tone-bad", dash: [5, 4], values: rows.map(r => r.errors)},
					]}
				/>
				<Chart
					title={t.average}
					x={x}
					unit={v => duration(v)}
					lines={[{label: t.average, tone: "tone-accent", values: rows.map(r => r.duration_ms_average)}]}
				/>
			</div>
			<p>
				<button type="button" class="small" aria-expanded={open} onClick={() => setOpen(!open)}>
					{open ? t.noTable : t.asTable}
				</button>
			</p>
			{open ? (
				<Table
					label={en.tableOf(t.over)}
					rows={[...d.calls_over_time].reverse()}
					keyOf={r => r.at}
					columns={[
						{name: t.hour, cell: r => <time dateTime={r.at}>{hour.format(new Date(r.at))}</time>},
						{name: t.calls, kind: "number", cell: r => count(r.calls)},
						{name: t.errors, kind: "number", cell: r => count(r.errors)},
						{name: t.average, kind: "number", cell: r => duration(r.duration_ms_average)},
					]}
				/>
			) : null}
		</>
	);
}
