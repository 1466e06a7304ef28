/* A list of the server's things, of which the person picks one. It comes by pages, and is drawn by pages. */
import {useEffect, useRef, useState} from "preact/hooks";
import type {Problem} from "../../api/client";
import {problemOf} from "../../api/client";
import {en} from "../../en";
import type {McpClient} from "../../mcp/client";
import {McpFailure} from "../../mcp/failure";
import type {JsonObject} from "../../mcp/message";
import {Field} from "../../ui/form";
import {Loading, ProblemNote} from "../../ui/notice";
import {count, Text} from "../../ui/text";

const t = en.playground;
/* Rows that are drawn at once: a gateway's page has a thousand. */
const ROWS = 40;
/* A server elsewhere could hand out cursors without an end. */
const ITEMS_MAX = 20_000;
const NAME_MAX = 200;

/** Reads a list once `open`, and again by reload(). */
export function useList(client: McpClient, method: string, name: string, open: boolean) {
	const [state, set] = useState<{items: JsonObject[]; next: string | undefined; busy: boolean; problem: Problem | undefined}>({
		items: [],
		next: undefined,
		busy: false,
		problem: undefined,
	});
	const stop = useRef<AbortController | undefined>(undefined),
		begun = useRef(false);

	function fetchPage(cursor: string | undefined) {
		stop.current?.abort();
		const mine = (stop.current = new AbortController());
		set(s => ({...s, busy: true, problem: undefined}));
		client.list(method, name, cursor, mine.signal).then(
			page =>
				set(s => {
					const items = cursor === undefined ? page.items : [...s.items, ...page.items];
					return {items: items.slice(0, ITEMS_MAX), next: items.length < ITEMS_MAX ? page.next : undefined, busy: false, problem: undefined};
				}),
			e =>
				mine.signal.aborted ||
				set(s => ({...s, busy: false, problem: e instanceof McpFailure ? e.problem : problemOf(e)})),
		);
	}
	useEffect(() => {
		if (open && !begun.current) {
			begun.current = true;
			fetchPage(undefined);
		}
	}, [open]);
	useEffect(() => () => stop.current?.abort(), []);
	return {
		...state,
		ready: begun.current && !state.busy,
		reload: () => fetchPage(undefined),
		more: state.next === undefined ? undefined : () => fetchPage(state.next),
	};
}

/** Draws the list. `nameOf` is what an item is picked by, `hintOf` a line below it. */
export function Pick({
	label,
	list,
	nameOf,
	hintOf,
	picked,
	onPick,
	empty,
}: {
	label: string;
	list: ReturnType<typeof useList>;
	nameOf: (item: JsonObject) => string;
	hintOf: (item: JsonObject) => string;
	picked: JsonObject | undefined;
	onPick: (item: JsonObject) => void;
	empty: string;
}) {
	const [words, setWords] = useState(""),
		[rows, setRows] = useState(ROWS);
	const want = words.toLowerCase().split(/\s+/),
		found = list.items.filter(i => want.every(w => `${nameOf(i)} ${hintOf(i)}`.toLowerCase().includes(w)));

	useEffect(() => setRows(ROWS), [words]);
	return (
		<>
			<Field label={t.find(label)} type="search" value={words} onValue={setWords} />
			<ProblemNote problem={list.problem} again={list.reload} />
			<ul class="rows" aria-label={label}>
				{found.slice(0, rows).map((item, i) => (
					<li key={`${i} ${nameOf(item)}`}>
						<button type="button" class="small" aria-pressed={item === picked} onClick={() => onPick(item)}>
							<Text text={nameOf(item)} max={NAME_MAX} strict />
						</button>
						{hintOf(item) ? (
							<div class="quiet">
								<Text text={hintOf(item)} max={NAME_MAX} />
							</div>
						) : null}
					</li>
				))}
			</ul>
			{list.busy ? <Loading /> : null}
			{list.ready && !list.problem && found.length === 0 ? <p class="quiet">{list.items.length === 0 ? empty : t.noMatch}</p> : null}
			<div class="buttons">
				{found.length > rows ? (
					<button type="button" class="small" onClick={() => setRows(rows + ROWS)}>
						{en.more}
					</button>
				) : null}
				{list.more ? (
					<button type="button" class="small" onClick={list.more}>
						{t.fetchMore}
					</button>
				) : null}
				<button type="button" class="small" onClick={list.reload} aria-disabled={list.busy}>
					{t.reload}
				</button>
				<span class="quiet">{en.shown(count(Math.min(rows, found.length)))}</span>
			</div>
		</>
	);
}
