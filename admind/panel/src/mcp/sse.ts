/*
 * Reads an event stream (WHATWG HTML, "Interpreting an event stream"). No I/O:
 * text in, events out.
 *
 * The sender is whoever listens at the gateway's address, so an event without
 * an end is refused before it fills the memory.
 */

/** One event. `id` is undefined where the event does not change it. */
export interface StreamEvent {
	data: string;
	id: string | undefined;
}

/** Takes the text of one stream, piece by piece. */
export class EventReader {
	/** Milliseconds that the sender asked to wait before a reader comes again; undefined: it said nothing. */
	retry: number | undefined;
	#rest = "";
	#data: string[] = [];
	#id: string | undefined;
	#size = 0;
	/* The last piece ended with CR: a LF that comes next belongs to it. */
	#cr = false;

	constructor(readonly max: number) {}

	/** Returns the events that are whole now. Throws for one that is longer than `max` characters. */
	feed(text: string): StreamEvent[] {
		const events: StreamEvent[] = [];
		if (text === "") return events;
		if (this.#cr && text[0] === "\n") text = text.slice(1);
		this.#cr = text.endsWith("\r");
		const lines = (this.#rest + text).split(/\r\n|\r|\n/);

		this.#rest = lines.pop()!;
		for (const line of lines) {
			const event = this.#line(line);
			if (event) events.push(event);
		}
		if (this.#size + this.#rest.length > this.max) throw new RangeError("an event without an end");
		return events;
	}

	#line(line: string): StreamEvent | undefined {
		if (line === "") {
			const event = this.#data.length > 0 || this.#id !== undefined ? {data: this.#data.join("\n"), id: this.#id} : undefined;
			this.#data = [];
			this.#id = undefined;
			this.#size = 0;
			return event;
		}
		const colon = line.indexOf(":"),
			name = colon < 0 ? line : line.slice(0, colon),
			value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
		if (name === "data") {
			this.#data.push(value);
			this.#size += value.length;
			if (this.#size > this.max) throw new RangeError("an event without an end");
		} else if (name === "id" && !value.includes("\0")) this.#id = value;
		else if (name === "retry" && /^\d{1,9}$/.test(value)) this.retry = Number(value);
		return undefined;
	}
}
