/* Who is logged in, for what a page offers. The server judges each request by itself; this only leaves out buttons. */
import {useEffect, useRef} from "preact/hooks";
import type {Schemas} from "./api/client";

let me: Schemas["Session"] | undefined;

/** Keeps who is logged in. */
export function meHolds(session: Schemas["Session"]): void {
	me = session;
}

/** Returns true if the person may change what is not a decision about approvals. */
export function meAdministers(): boolean {
	return me?.role === "administrator";
}

/** Returns true if the person may decide about approvals. */
export function meReviews(): boolean {
	return me?.role === "administrator" || me?.role === "reviewer";
}

/** Returns the name of who is logged in. */
export function meName(): string {
	return me?.username ?? "";
}

/** Returns true if an issuer signed the person in: there is no password here. No other name has an @. */
export function meIssued(): boolean {
	return meName().includes("@");
}

let changed: () => void = () => undefined;

/** Sets what reads again who is logged in. */
export function meWatch(f: () => void): void {
	changed = f;
}

/** Says that the login may have another role now: a passkey of an issuer's person conveys one at most. */
export function meChanged(): void {
	changed();
}

/** Calls f each `ms` milliseconds while the page is seen, and when it is seen again. */
export function useEvery(ms: number, f: () => void): void {
	const latest = useRef(f);
	latest.current = f;

	useEffect(() => {
		const tick = () => document.visibilityState === "visible" && latest.current();
		const timer = setInterval(tick, ms);
		document.addEventListener("visibilitychange", tick);
		return () => {
			clearInterval(timer);
			document.removeEventListener("visibilitychange", tick);
		};
	}, [ms]);
}
