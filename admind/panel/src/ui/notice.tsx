/* What went wrong, what was done, what waits, and what is empty. */
import type {ComponentChildren} from "preact";
import {useEffect, useState} from "preact/hooks";
import type {Problem} from "../api/client";
import {en} from "../en";
import {Text} from "./text";

/** Draws a refusal: what happened, what to do about it, and a button that tries again. */
export function ProblemNote({problem, again}: {problem: Problem | undefined; again?: () => void}) {
	if (problem === undefined) return null;
	return (
		<div class="note bad" role="alert">
			<p>
				<strong>
					<Text text={problem.detail} />
				</strong>
			</p>
			{problem.fix ? (
				<p>
					<Text text={problem.fix} />
				</p>
			) : null}
			<p class="quiet">
				<code>
					<Text text={problem.failure_mode} />
				</code>
				{problem.status ? ` ${problem.status}` : ""}
				{again ? (
					<>
						{" "}
						<button type="button" class="small" onClick={again}>
							{en.again}
						</button>
					</>
				) : null}
			</p>
		</div>
	);
}

/** Draws a remark: `kind` is info, good, warn or bad. */
export function Note({kind = "info", children}: {kind?: "info" | "good" | "warn" | "bad"; children: ComponentChildren}) {
	return <div class={`note ${kind}`}>{children}</div>;
}

/** Says that something is fetched. */
export function Loading({label = en.loading}: {label?: string}) {
	return (
		<p class="loading" role="status">
			{label}
		</p>
	);
}

/** Teaches what would be here: a title, a sentence or two, and what to do. */
export function Empty({title, children}: {title: string; children?: ComponentChildren}) {
	return (
		<div class="empty">
			<p class="empty-title">{title}</p>
			{children}
		</div>
	);
}

let tell: (text: string) => void = () => undefined;

/** Says in a line that something was done. Screen readers read it; it goes by itself when the next page opens. */
export function done(text: string): void {
	tell(text);
}

/** Says the same on the page that go() opens next: the line of this page goes with it. */
export function doneThere(text: string): void {
	window.addEventListener("hashchange", () => tell(text), {once: true});
}

/** Draws what done() says. The page has one. */
export function DoneLine() {
	const [text, set] = useState("");

	useEffect(() => {
		tell = set;
		const clear = () => set("");
		window.addEventListener("hashchange", clear);
		return () => window.removeEventListener("hashchange", clear);
	}, []);
	return (
		<div class="done" role="status">
			{text ? (
				<>
					<span>
						<Text text={text} />
					</span>{" "}
					<button type="button" class="small plain" onClick={() => set("")}>
						{en.close}
					</button>
				</>
			) : null}
		</div>
	);
}

const KINDS: Record<string, string> = {
	approved: "good",
	running: "good",
	active: "good",
	done: "good",
	ok: "good",
	enabled: "good",
	serving: "good",
	granted: "good",
	pending: "warn",
	pending_review: "warn",
	degraded: "warn",
	stopped: "warn",
	warning: "warn",
	expiring: "warn",
	open: "warn",
	quarantined: "warn",
	draft: "info",
	info: "info",
	superseded: "info",
	expired: "info",
	closed: "info",
	rejected: "bad",
	revoked: "bad",
	failed: "bad",
	refused: "bad",
	killed: "bad",
	lost: "bad",
	error: "bad",
	disabled: "bad",
	deleted: "bad",
	withdrawn: "bad",
};

/** Draws a state as a word with a colour and a mark; the word alone says it all. */
export function State({state, kind}: {state: string | null | undefined; kind?: "info" | "good" | "warn" | "bad"}) {
	return state ? (
		<span class={`state ${kind ?? (Object.hasOwn(KINDS, state) ? KINDS[state] : "info")}`}>
			{Object.hasOwn(en.states, state) ? en.states[state] : state}
		</span>
	) : null;
}
