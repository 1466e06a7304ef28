/*
 * The messages that passed, for the person who reads them. Number and size are
 * bounded: a server that sends without an end costs the older ones. The token
 * is never in it.
 */

/** Which way a message went. */
export type Way = "sent" | "received";

export interface Entry {
	n: number;
	at: string;
	way: Way;
	/** The method, or undefined: an answer, or HTTP without a message. */
	method: string | undefined;
	/** The id of the request, as JSON; undefined: it has none. */
	id: string | undefined;
	/** The status of HTTP and headers: of an answer, or of the request. */
	http: string;
	headers: [string, string][];
	/** The message as it was sent, cut after TEXT_MAX characters. */
	text: string;
	/** Its length before that. */
	length: number;
	/** It has an error. */
	failed: boolean;
}

/* The longest text of one message; the call's record has the whole text. */
const TEXT_MAX = 100_000;
/* The texts of all messages together: some MiB of a tab. */
const ENTRIES_MAX = 200;
const CHARS_MAX = 2_000_000;

export const recordBounds = {entries: ENTRIES_MAX, text: TEXT_MAX};

export class MessageRecord {
	entries: readonly Entry[] = [];
	/** Messages that left because there were too many. */
	dropped = 0;
	#n = 0;
	readonly #changed: () => void;

	constructor(changed: () => void) {
		this.#changed = changed;
	}

	add(entry: Omit<Entry, "n" | "at" | "text" | "length">, text: string): void {
		const kept = [
			{...entry, n: ++this.#n, at: new Date().toISOString(), text: text.slice(0, TEXT_MAX), length: text.length},
			...this.entries,
		];
		let chars = 0,
			n = 0;
		while (n < kept.length && n < ENTRIES_MAX && (n === 0 || chars + kept[n]!.text.length <= CHARS_MAX)) chars += kept[n++]!.text.length;
		this.dropped += kept.length - n;
		this.entries = kept.slice(0, n);
		this.#changed();
	}

	clear(): void {
		this.entries = [];
		this.dropped = 0;
		this.#changed();
	}
}
