/* The choice of a server. REST lists 200 at once; where there are more, a field finds the others by a part of their name. */
import {useEffect, useState} from "preact/hooks";
import type {Problem, Schemas} from "../api/client";
import {usePages, useRead} from "../api/use";
import {en} from "../en";
import {Choice, Field} from "./form";

/* As many as one page of REST has. */
const SHOWN_MAX = 200;
/* Typing is over after this; then the list is fetched once. */
const TYPED_MS = 350;

type Server = Schemas["Server"];

/** Servers to choose from. */
export interface Servers {
	/** Those that match the words, by name. */
	items: readonly Server[];
	/** There are more than one page of them, so they are searched. */
	many: boolean;
	/** More match than `items` has. */
	more: boolean;
	words: string;
	find: (words: string) => void;
	/** The server of the value, also where it is not in `items`. */
	chosen: Server | undefined;
	/** There is no server at all. */
	none: boolean;
	/** Returns a server's name, "" while it is not known. */
	nameOf: (id: string) => string;
	problem: Problem | undefined;
	reload: () => void;
}

/** Reads the servers. `value` is the id or the name of the chosen one, "" for none. */
export function useServers(value: string): Servers {
	const [typed, setTyped] = useState(""),
		[words, setWords] = useState(""),
		[many, setMany] = useState(false);
	const list = usePages("/api/servers", {query: {limit: SHOWN_MAX, ...(words ? {search: words} : {})}});
	const listed = list.items.find(s => s.id === value || s.name === value);
	const one = useRead(value !== "" && !list.loading && listed === undefined ? "/api/servers/{id}" : null, {path: {id: value}});
	const chosen = listed ?? one.data,
		more = list.more !== undefined;

	useEffect(() => {
		const timer = setTimeout(() => setWords(typed.trim().toLowerCase()), TYPED_MS);
		return () => clearTimeout(timer);
	}, [typed]);
	useEffect(() => {
		if (more) setMany(true);
	}, [more]);
	return {
		items: list.items,
		many: many || more,
		more,
		words: typed,
		find: setTyped,
		chosen,
		none: words === "" && !list.loading && list.problem === undefined && list.items.length === 0,
		nameOf: id => (chosen?.id === id ? chosen.name : (list.items.find(s => s.id === id)?.name ?? "")),
		problem: list.problem,
		reload: list.reload,
	};
}

/** Draws the choice. `any` is the label of no server, where none may be chosen; `by` is what of a server is its value. */
export function ServerChoice({
	servers,
	label,
	value,
	onValue,
	any,
	by = "id",
}: {
	servers: Servers;
	label: string;
	value: string;
	onValue: (value: string) => void;
	any?: string;
	by?: "id" | "name";
}) {
	const {chosen} = servers;
	/* What is chosen stays in the list, whatever is searched. One that REST does not know stays as its id. */
	const held = value === "" || servers.items.some(s => s[by] === value) ? [] : [[value, chosen?.name ?? value] as const];

	return (
		<>
			{servers.many ? (
				<Field label={en.servers.find} hint={en.servers.findHint} type="search" value={servers.words} onValue={servers.find} maxLength={24} />
			) : null}
			<Choice
				label={label}
				hint={servers.more ? en.servers.moreMatch(SHOWN_MAX) : servers.many && servers.items.length === 0 ? en.servers.noneMatch : undefined}
				value={value}
				onValue={onValue}
				options={[...(any === undefined ? [] : [["", any] as const]), ...held, ...servers.items.map(s => [s[by], s.name] as const)]}
			/>
		</>
	);
}
