/* Words about calls that the list and one call share. */
import {en} from "../../en";

const t = en.calls;

/** Returns a failure mode in words; one that is not known as it is. */
export function failureWords(mode: string): string {
	return Object.hasOwn(t.failures, mode) ? t.failures[mode]![0] : mode;
}

/** Returns the sentence that says what to do after a failure, "" where there is none. */
export function failureFix(mode: string): string {
	return Object.hasOwn(t.failures, mode) ? t.failures[mode]![1] : "";
}
