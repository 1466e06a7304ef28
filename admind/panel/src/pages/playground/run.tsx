/* One call at a time: its progress, its log messages, its end. */
import {useEffect, useRef, useState} from "preact/hooks";
import type {Problem} from "../../api/client";
import {problemOf} from "../../api/client";
import {en} from "../../en";
import type {McpClient, Result} from "../../mcp/client";
import {McpFailure} from "../../mcp/failure";
import {type JsonObject, member, textOf} from "../../mcp/message";
import {Loading, Note, ProblemNote} from "../../ui/notice";
import {Text} from "../../ui/text";
import type {Ask} from "./question";

const t = en.playground;
/* A tool may log without an end; its record has all that counts. */
const LOGS_MAX = 200;
const LINE_MAX = 2000;

interface Progress {
	done: number;
	total: number | undefined;
	message: string;
}

export interface Run {
	busy: boolean;
	name: string;
	result: Result | undefined;
	problem: Problem | undefined;
	cancelled: boolean;
	waits: boolean;
	progress: Progress | undefined;
	logs: string[];
}

const NOTHING: Run = {
	busy: false,
	name: "",
	result: undefined,
	problem: undefined,
	cancelled: false,
	waits: false,
	progress: undefined,
	logs: [],
};

function progressOf(params: unknown): Progress {
	const done = member(params, "progress"),
		total = member(params, "total");
	return {
		done: typeof done === "number" ? done : 0,
		total: typeof total === "number" && total > 0 ? total : undefined,
		message: textOf(params, "message"),
	};
}

function lineOf(params: unknown): string {
	const data = member(params, "data");
	return `${textOf(params, "level") || "log"}: ${typeof data === "string" ? data : JSON.stringify(data ?? null)}`;
}

/** Makes calls by `client`. A new one begins when the one before has ended. */
export function useRun(client: McpClient, ask: Ask) {
	const [run, set] = useState(NOTHING);
	const stop = useRef<AbortController | undefined>(undefined);

	useEffect(() => () => stop.current?.abort(), [client]);
	async function start(name: string, method: string, params: JsonObject, schema?: unknown): Promise<void> {
		if (stop.current) return;
		const mine = (stop.current = new AbortController());
		const {signal} = mine;
		set({...NOTHING, busy: true, name});
		try {
			const result = await client.request(
				method,
				params,
				{
					signal,
					told: (what, p) => {
						if (what === "notifications/progress") set(r => ({...r, progress: progressOf(p)}));
						if (what === "notifications/message") set(r => ({...r, logs: [...r.logs, lineOf(p)].slice(-LOGS_MAX)}));
					},
					ask: q => ask(q, signal),
					waits: () => set(r => ({...r, waits: true})),
				},
				schema,
			);
			set(r => ({...r, busy: false, waits: false, result}));
		} catch (e) {
			set(r => ({
				...r,
				busy: false,
				waits: false,
				cancelled: signal.aborted,
				problem: signal.aborted ? undefined : e instanceof McpFailure ? e.problem : problemOf(e),
			}));
		} finally {
			stop.current = undefined;
		}
	}
	return {
		run,
		start,
		cancel: () => stop.current?.abort(),
		clear: () => {
			if (!stop.current) set(NOTHING);
		},
	};
}

/** Draws how a call goes on, until its result, which `children` draws. */
export function RunView({run, onCancel, children}: {run: Run; onCancel: () => void; children: (result: Result) => unknown}) {
	return (
		<>
			{run.busy ? (
				<>
					<Loading label={t.running} />
					<p>
						<button type="button" onClick={onCancel}>
							{t.cancelCall}
						</button>
					</p>
				</>
			) : null}
			{run.waits ? (
				<Note kind="warn">
					<p role="status">{t.waitsForYes}</p>
				</Note>
			) : null}
			{run.progress ? (
				<p class="prose">
					<progress aria-label={t.progress} value={run.progress.total ? run.progress.done : undefined} max={run.progress.total} />{" "}
					<Text text={`${run.progress.done}${run.progress.total ? ` / ${run.progress.total}` : ""} ${run.progress.message}`} max={LINE_MAX} />
				</p>
			) : null}
			{run.logs.length > 0 ? (
				<div class="tail" role="region" aria-label={t.logs} tabIndex={0}>
					<ul class="lines">
						{run.logs.map((l, i) => (
							<li key={i}>
								<Text text={l} max={LINE_MAX} />
							</li>
						))}
					</ul>
				</div>
			) : null}
			<ProblemNote problem={run.problem} />
			{run.cancelled ? (
				<Note>
					<p role="status">{t.cancelled}</p>
				</Note>
			) : null}
			{run.result ? <div role="status">{children(run.result) as never}</div> : null}
			{!run.busy && !run.result && !run.problem && !run.cancelled ? <p class="quiet">{t.noResult}</p> : null}
		</>
	);
}
