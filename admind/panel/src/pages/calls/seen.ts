/*
 * Calls that the list has shown. A viewer may read the list and no single call,
 * so a viewer's page of one call comes from here.
 */
import type {Schemas} from "../../api/client";

type Call = Schemas["Execution"];

/* More are not remembered: a list may be read for long. */
const SEEN_MAX = 2000;
const seen = new Map<string, Call>();

/** Remembers calls of the list. */
export function seenHolds(calls: readonly Call[]): void {
	for (const c of calls) {
		seen.delete(c.id);
		seen.set(c.id, c);
		if (seen.size > SEEN_MAX) seen.delete(seen.keys().next().value!);
	}
}

/** Returns a call that the list has shown. */
export function seenOne(id: string): Call | undefined {
	return seen.get(id);
}
