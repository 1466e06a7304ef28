/*
 * What happens now: GET /api/activity/stream, read by fetch(), since
 * EventSource sets no header. Each event's data is one JSON object. Events have
 * no numbers, so those that are told during a gap are lost to a reader.
 */
import {type Problem, problemOf, send} from "./client";

/* Waits between two tries after an end, in milliseconds. */
const WAITS_MS = [1000, 2000, 5000, 15_000, 30_000];
/* A longer event than a record can be is no event of ours. */
const EVENT_MAX = 1_000_000;

export interface Happening {
	type: string;
	[member: string]: unknown;
}

/** Returns a member of an event as text, "" where it has none. */
export function happeningText(e: Happening, name: string): string {
	const value = Object.hasOwn(e, name) ? e[name] : undefined;
	return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

/* Hands on the events of one answer until it ends. Returns the problem that its last event names. */
async function read(answer: Response, event: (e: Happening) => void): Promise<Problem | undefined> {
	const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
	let text = "",
		problem: Problem | undefined;

	for (;;) {
		const {value, done} = await reader.read();
		if (done) return problem;
		const blocks = (text + value).split("\n\n");
		text = blocks.pop()!;
		if (text.length > EVENT_MAX) throw new Error("an event without an end");
		for (const block of blocks) {
			const data = block
				.split("\n")
				.filter(l => l.startsWith("data:"))
				.map(l => l.slice(5).trimStart())
				.join("\n");
			if (data === "") continue;
			const e = JSON.parse(data) as Happening;
			if (e.type === "end")
				problem = {
					type: "about:blank",
					title: "",
					status: 0,
					detail: happeningText(e, "message"),
					fix: "",
					failure_mode: happeningText(e, "failure_mode"),
				};
			else event(e);
		}
	}
}

/* Waits, or until `signal` aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
	return new Promise(done => {
		const timer = setTimeout(done, ms);
		signal.addEventListener(
			"abort",
			() => {
				clearTimeout(timer);
				done();
			},
			{once: true},
		);
	});
}

/** Follows the stream until `signal` aborts; comes back after ends, but not without a login. `calls` false: activity alone.
 * `state` hears of connections and failures. */
export async function streamFollow(
	signal: AbortSignal,
	calls: boolean,
	event: (e: Happening) => void,
	state: (up: boolean, problem?: Problem) => void,
): Promise<void> {
	for (let round = 0; !signal.aborted; round++) {
		try {
			const answer = await send("GET", calls ? "/api/activity/stream" : "/api/activity/stream?kind=activity", {signal});
			state(true);
			round = 0;
			const problem = await read(answer, event);
			if (!signal.aborted) state(false, problem);
		} catch (e) {
			if (signal.aborted) return;
			const problem = problemOf(e);
			state(false, problem);
			if (problem.failure_mode === "unauthenticated") return;
		}
		await pause(WAITS_MS[Math.min(round, WAITS_MS.length - 1)]!, signal);
	}
}
