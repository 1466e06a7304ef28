/* Lists of things: a table with its name, its state while it loads, and its next page. */
import type {ComponentChildren, JSX} from "preact";
import type {Paged} from "../api/use";
import {en} from "../en";
import {Loading, ProblemNote} from "./notice";
import {count} from "./text";

export interface Column<T> {
	/** The column's title. */
	name: string;
	cell: (row: T) => ComponentChildren;
	/** `number` stands at the right; `wide` takes the room that is left; `narrow` is left out of phones. */
	kind?: "number" | "wide" | "narrow";
}

/** Draws rows. The first column is the row's name. On a phone a row becomes a card, with the titles beside the values. */
export function Table<T>({label, columns, rows, keyOf}: {label: string; columns: Column<T>[]; rows: T[]; keyOf: (row: T) => string}) {
	return (
		<div class="table" role="group" aria-label={label} tabIndex={0}>
			<table aria-label={label}>
				<thead>
					<tr>
						{columns.map(c => (
							<th key={c.name} scope="col" class={c.kind}>
								{c.name}
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{rows.map(row => (
						<tr key={keyOf(row)}>
							{columns.map((c, i) =>
								i === 0 ? (
									<th key={c.name} scope="row" class={c.kind}>
										{c.cell(row)}
									</th>
								) : (
									<td key={c.name} class={c.kind} data-name={c.name}>
										{c.cell(row)}
									</td>
								),
							)}
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

/** Draws a list that comes by pages: rows, then a button for more; `empty` where there is nothing. */
export function List<T>({
	label,
	list,
	columns,
	keyOf,
	empty,
}: {
	label: string;
	list: Paged<T>;
	columns: Column<T>[];
	keyOf: (row: T) => string;
	empty: JSX.Element;
}) {
	return (
		<>
			<ProblemNote problem={list.problem} again={list.reload} />
			{list.items.length > 0 ? <Table label={label} columns={columns} rows={list.items} keyOf={keyOf} /> : null}
			{list.loading ? <Loading /> : null}
			{!list.loading && !list.problem && list.items.length === 0 ? empty : null}
			{list.more ? (
				<p>
					<button type="button" onClick={list.more}>
						{en.more}
					</button>{" "}
					<span class="quiet">{en.shown(count(list.items.length))}</span>
				</p>
			) : null}
		</>
	);
}

/** Draws names and values. Empty values are left out. */
export function Facts({facts}: {facts: [string, ComponentChildren][]}) {
	return (
		<dl class="facts">
			{facts
				.filter(([, v]) => v !== null && v !== undefined && v !== "" && v !== false)
				.map(([name, value]) => (
					<div key={name}>
						<dt>{name}</dt>
						<dd>{value}</dd>
					</div>
				))}
		</dl>
	);
}
