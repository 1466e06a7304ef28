/*
 * The login of this tab.
 *
 * A login is two halves (docs/decisions/0067): the cookie, which no script can
 * read, and the half that the answer to a login says once. This file keeps the
 * second in sessionStorage, which belongs to one origin, port included, and to
 * one tab. A new tab asks the other tabs for it; a login in one tab replaces
 * the cookie of all, so it tells the others the new half.
 */
import {en} from "../en";

const KEY = "mcpbox-half";
const HALF = /^[A-Za-z0-9_-]{43}$/;
/* Other tabs answer at once or not at all: nobody waits for longer. */
const TABS_ANSWER_MS = 150;

type Word = {ask: true} | {half: string | null};

const tabs = new BroadcastChannel("mcpbox-login");
let half: string | null = sessionStorage.getItem(KEY);
const listeners = new Set<() => void>();

function keep(value: string | null): void {
	half = value;
	if (value === null) sessionStorage.removeItem(KEY);
	else sessionStorage.setItem(KEY, value);
	for (const f of listeners) f();
}

tabs.onmessage = (e: MessageEvent<Word>) => {
	if ("ask" in e.data) {
		if (half !== null) tabs.postMessage({half});
	} else if (e.data.half === null || HALF.test(e.data.half)) keep(e.data.half);
};

/** Returns the second half of the login, or null where there is none. */
export function sessionHalf(): string | null {
	return half;
}

/** Keeps the half that the answer to a login said, and tells the other tabs. */
export function sessionBegin(value: string): void {
	keep(value);
	tabs.postMessage({half: value});
}

/** Forgets the login in all tabs. The server ends it by POST /api/logout. */
export function sessionEnd(): void {
	keep(null);
	tabs.postMessage({half: null});
}

/** Forgets the login in this tab alone: the server said that it is over. */
export function sessionOver(): void {
	keep(null);
}

/** Asks the other tabs for the half. Returns true once one of them said it. */
export function sessionAsk(): Promise<boolean> {
	if (half !== null) return Promise.resolve(true);
	return new Promise(done => {
		const stop = sessionWatch(() => end());
		const timer = setTimeout(() => end(), TABS_ANSWER_MS);
		function end() {
			clearTimeout(timer);
			stop();
			done(half !== null);
		}
		tabs.postMessage({ask: true});
	});
}

/** Calls f after each change of the login. Returns what ends that. */
export function sessionWatch(f: () => void): () => void {
	listeners.add(f);
	return () => listeners.delete(f);
}

const endings = new Set<() => Promise<void>>();

/** Has sessionLeave() call f: what needs the login is done before it is over. Returns what ends that. */
export function sessionBeforeEnd(f: () => Promise<void>): () => void {
	endings.add(f);
	return () => endings.delete(f);
}

/** Waits for all that sessionBeforeEnd() was given. The person signs out next. */
export async function sessionLeave(): Promise<void> {
	await Promise.allSettled([...endings].map(f => f()));
}

/** Names the ways in which a login began, for people. */
export const sessionWays: Record<string, string> = en.session.ways;
