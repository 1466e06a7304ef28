/* Addresses within the page: `#/place/id?word=value`. The server sees none of them. */
import {useEffect, useState} from "preact/hooks";

export interface Route {
	/** The parts between slashes, decoded: ["approvals", "0198…"]. */
	parts: string[];
	query: URLSearchParams;
}

/** Reads an address such as "#/calls?tool=x". Anything else is the first page. */
export function routeRead(hash: string): Route {
	const [place = "", words = ""] = hash.replace(/^#\/?/, "").split("?", 2) as [string, string?];
	const parts: string[] = [];

	for (const part of place.split("/"))
		if (part !== "")
			try {
				parts.push(decodeURIComponent(part));
			} catch {
				parts.push(part);
			}
	return {parts, query: new URLSearchParams(words)};
}

/** Returns the address of a place: link("calls", id) or link("calls", {tool: name}). Empty values are left out. */
export function link(...parts: (string | Record<string, string | undefined | null>)[]): string {
	const words = new URLSearchParams();
	let place = "#";

	for (const part of parts)
		if (typeof part === "string") place += "/" + encodeURIComponent(part);
		else
			for (const [name, value] of Object.entries(part))
				if (value !== undefined && value !== null && value !== "") words.set(name, value);
	if (place === "#") place = "#/";
	return words.size > 0 ? `${place}?${words}` : place;
}

/** Goes to an address of link(). */
export function go(to: string): void {
	location.hash = to;
}

/** Changes words of the address in place: no step of the browser's history. */
export function goWords(words: Record<string, string | undefined | null>): void {
	const {parts, query} = routeRead(location.hash);
	const all: Record<string, string | undefined | null> = {...Object.fromEntries(query), ...words};

	history.replaceState(null, "", link(...parts, all));
	window.dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Returns where the page is, and draws the component again when that changes. */
export function useRoute(): Route {
	const [hash, set] = useState(location.hash);

	useEffect(() => {
		const f = () => set(location.hash);
		window.addEventListener("hashchange", f);
		return () => window.removeEventListener("hashchange", f);
	}, []);
	return routeRead(hash);
}
