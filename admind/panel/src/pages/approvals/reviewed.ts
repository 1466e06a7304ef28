/*
 * What this tab has shown: the hash of each request that was drawn whole, and the
 * parts that the reviewer marked as viewed. Both are of a hash, so other content
 * begins without marks. They stay in this tab and decide nothing at the server:
 * an approval in bulk sends the hash that was drawn, and the vault compares it.
 */
const REVIEWED = "mcpbox-reviewed";
const VIEWED = "mcpbox-viewed-";

function held(key: string): Map<string, string> {
	try {
		return new Map(JSON.parse(sessionStorage.getItem(key) ?? "[]") as [string, string][]);
	} catch {
		return new Map();
	}
}

function keep(key: string, map: Map<string, string>): void {
	try {
		sessionStorage.setItem(key, JSON.stringify([...map]));
	} catch {
		/* The store is full: marks are lost, no decision is. */
	}
}

/** Remembers that the request was drawn with this hash. */
export function reviewedSet(id: string, hash: string): void {
	keep(REVIEWED, held(REVIEWED).set(id, hash));
}

/** Returns the hashes that were drawn, by request. */
export function reviewedAll(): Map<string, string> {
	return held(REVIEWED);
}

/** Returns true if the part of this content was marked as viewed. */
export function viewedHas(hash: string, part: string): boolean {
	return held(VIEWED + hash).has(part);
}

/** Marks a part of this content as viewed, or takes the mark away. */
export function viewedSet(hash: string, part: string, on: boolean): void {
	const map = held(VIEWED + hash);
	if (on) map.set(part, "");
	else map.delete(part);
	keep(VIEWED + hash, map);
}
