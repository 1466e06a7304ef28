/*
 * A live tail: what happens now, newest first, while the reader has it on.
 *
 * New lines wait while the reader has gone down or has the focus inside: a line
 * must not move away under a finger. Screen readers hear numbers, some seconds
 * apart, and never each line.
 */
import type {ComponentChildren} from "preact";
import {useEffect, useRef, useState} from "preact/hooks";
import {type Problem, problemOf} from "../api/client";
import {sessionHalf, sessionWatch} from "../api/session";
import {type Happening, happeningText, streamFollow} from "../api/stream";
import {en} from "../en";
import {Note} from "./notice";
import {Part} from "./page";
import {Text} from "./text";

const t = en.tail;
/* Older lines leave; they are in the lists. */
const LINES_MAX = 200;
/* The status is told at most as often. */
const TELL_MS = 2000;
const clock = new Intl.DateTimeFormat("en-GB", {timeStyle: "medium"});

/* Returns when an event was, or when it came where it says no time. */
function timeOf(e: Happening, came: string): Date {
	const said = new Date(happeningText(e, "at"));
	return Number.isNaN(said.getTime()) ? new Date(came) : said;
}

interface Line {
	n: number;
	e: Happening;
	at: string;
}
interface Lines {
	shown: Line[];
	held: Line[];
	/* All that came, and those of them that wait. */
	came: number;
	waiting: number;
}
const NONE: Lines = {shown: [], held: [], came: 0, waiting: 0};

/* Follows the stream while `on`, and again after a new login. `accept` chooses lines. */
function useTail(on: boolean, calls: boolean, accept: (e: Happening) => boolean) {
	const [up, setUp] = useState(false),
		[problem, setProblem] = useState<Problem>(),
		[lines, setLines] = useState(NONE);
	const [half, setHalf] = useState(sessionHalf()),
		paused = useRef(false),
		wanted = useRef(accept);
	wanted.current = accept;

	const flush = (s: Lines): Lines => ({...s, shown: [...s.held, ...s.shown].slice(0, LINES_MAX), held: [], waiting: 0});
	useEffect(() => sessionWatch(() => setHalf(sessionHalf())), []);
	useEffect(() => {
		if (!on || half === null) return;
		const stop = new AbortController();
		let ups = 0;
		const add = (e: Happening) =>
			setLines(s => {
				const more = {
					...s,
					came: s.came + 1,
					waiting: s.waiting + 1,
					held: [{n: s.came, e, at: new Date().toISOString()}, ...s.held].slice(0, LINES_MAX),
				};
				return paused.current ? more : flush(more);
			});
		streamFollow(
			stop.signal,
			calls,
			e => (e.type === "dropped" || wanted.current(e)) && add(e),
			(now, p) => {
				if (now && ups++ > 0) add({type: "gap"});
				setUp(now);
				setProblem(p);
			},
		).catch(e => setProblem(problemOf(e)));
		return () => {
			stop.abort();
			setUp(false);
			setProblem(undefined);
		};
	}, [on, half, calls]);
	return {
		up,
		problem,
		lines,
		pause(yes: boolean) {
			paused.current = yes;
			if (!yes) setLines(s => (s.held.length > 0 ? flush(s) : s));
		},
	};
}

/* Returns the text, but changes it at most each TELL_MS. */
function useSlow(text: string): string {
	const [told, setTold] = useState(text),
		last = useRef(0);

	useEffect(() => {
		const timer = setTimeout(
			() => {
				last.current = Date.now();
				setTold(text);
			},
			Math.max(0, last.current + TELL_MS - Date.now()),
		);
		return () => clearTimeout(timer);
	}, [text]);
	return told;
}

/** Draws a tail with its switch. `row` draws an event of the types that `accept` lets through. `more` stands under the
 * switch: actions for what came. */
export function Tail({
	title,
	calls,
	accept,
	row,
	more,
}: {
	title: string;
	calls: boolean;
	accept: (e: Happening) => boolean;
	row: (e: Happening) => ComponentChildren;
	more?: (came: number) => ComponentChildren;
}) {
	const [on, setOn] = useState(false),
		{up, problem, lines, pause} = useTail(on, calls, accept);
	const list = useRef<HTMLDivElement>(null),
		inside = useRef(false),
		down = useRef(false);
	const told = useSlow(!on ? t.off : !up ? t.connecting : lines.waiting > 0 ? t.held(lines.waiting) : t.count(lines.came));

	function look() {
		pause(inside.current || down.current);
	}
	return (
		<Part
			title={title}
			actions={
				<>
					<p role="status" class="quiet">
						{told}
					</p>
					<button type="button" aria-pressed={on} onClick={() => setOn(!on)}>
						{on ? t.stop : t.start}
					</button>
				</>
			}
		>
			<div class="live">
				{lines.waiting > 0 ? (
					<button
						type="button"
						class="small"
						onClick={() => {
							list.current?.scrollTo(0, 0);
							inside.current = down.current = false;
							look();
						}}
					>
						{t.showHeld}
					</button>
				) : null}
				{more?.(lines.came)}
			</div>
			{on && problem && problem.detail ? (
				<Note kind="warn">
					<p>
						<Text text={problem.detail} max={300} /> {t.again}
					</p>
				</Note>
			) : null}
			{lines.shown.length > 0 ? (
				<div
					class="tail"
					role="region"
					aria-label={title}
					tabIndex={0}
					ref={list}
					onScroll={e => {
						down.current = e.currentTarget.scrollTop > 4;
						look();
					}}
					onFocusIn={() => {
						inside.current = true;
						look();
					}}
					onFocusOut={e => {
						inside.current = e.relatedTarget instanceof Node && e.currentTarget.contains(e.relatedTarget);
						look();
					}}
				>
					<ul class="lines">
						{lines.shown.map(({n, e, at}) => (
							<li key={n}>
								<time class="quiet" dateTime={timeOf(e, at).toISOString()}>
									{clock.format(timeOf(e, at))}
								</time>{" "}
								{e.type === "gap" ? t.gap : e.type === "dropped" ? t.dropped(Number(happeningText(e, "count"))) : row(e)}
							</li>
						))}
					</ul>
				</div>
			) : null}
			{lines.came > LINES_MAX ? <p class="quiet">{t.bound(LINES_MAX)}</p> : null}
		</Part>
	);
}
