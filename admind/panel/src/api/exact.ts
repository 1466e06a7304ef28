/*
 * JSON text within a value. A number of the browser has 53 bits, and members
 * whose names are numbers change places in an object. So what a person typed or
 * read as JSON is kept as its text, and goes to the server as that text.
 */

/** JSON text in the place of the value that it is. */
export class Exact {
	/** `text` is valid JSON. */
	constructor(readonly text: string) {}

	/** Serves JSON.stringify(), which may round numbers; exactText() does not. */
	toJSON(): unknown {
		return JSON.parse(this.text);
	}
}

/** Returns a value as JSON, with each Exact in it as its text. */
export function exactText(value: unknown): string {
	const kept: string[] = [];
	/* A mark that no text of the value can have: each mark has a name that is made now. */
	const mark = crypto.getRandomValues(new Uint32Array(4)).join("-");
	const text = JSON.stringify(value, function (this: Record<string, unknown>, name: string, v: unknown) {
		const own = this[name];
		return own instanceof Exact ? `${mark}:${kept.push(own.text) - 1}` : v;
	});

	return kept.length === 0 ? text : text.replace(new RegExp(`"${mark}:(\\d+)"`, "g"), (_, n: string) => kept[Number(n)]!);
}
