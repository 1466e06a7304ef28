/* Hooks that read the API for a component. */
import {useCallback, useEffect, useRef, useState} from "preact/hooks";
import {type Answer, api, type Options, type Problem, problemOf, type Routes} from "./client";

export interface Read<T> {
	/** The newest answer. While another is fetched, and after a failure, the one before. */
	data: T | undefined;
	/** Its text, for what the browser would round. */
	text: string | undefined;
	etag: string | null;
	problem: Problem | undefined;
	loading: boolean;
	/** Fetches again. */
	reload: () => void;
}

/** Reads a route. Reads again where the route, its values or its query change; `null` reads nothing. */
export function useRead<P extends Routes<"get">>(route: P | null, options: Options<P, "get"> = {}): Read<Answer<P, "get">> {
	const [state, set] = useState<Omit<Read<Answer<P, "get">>, "reload">>({
		data: undefined,
		text: undefined,
		etag: null,
		problem: undefined,
		loading: route !== null,
	});
	const [round, again] = useState(0);
	const key = route === null ? null : JSON.stringify([route, options.path, options.query]);
	const last = useRef(key);

	useEffect(() => {
		if (route === null) return;
		const stop = new AbortController();
		const other = last.current !== key;
		last.current = key;
		set(s => (other ? {data: undefined, text: undefined, etag: null, problem: undefined, loading: true} : {...s, loading: true}));
		api.get(route, {...options, signal: stop.signal}).then(
			a => set({data: a.data, text: a.text, etag: a.etag, problem: undefined, loading: false}),
			e => stop.signal.aborted || set(s => ({...s, problem: problemOf(e), loading: false})),
		);
		return () => stop.abort();
	}, [key, round]);
	return {...state, reload: useCallback(() => again(n => n + 1), [])};
}

interface PageOf<T> {
	items: T[];
	next_cursor: string | null;
}
type ItemOf<A> = A extends {items: (infer T)[]} ? T : never;

export interface Paged<T> {
	items: T[];
	problem: Problem | undefined;
	loading: boolean;
	/** Fetches the next page; undefined after the last. */
	more: (() => void) | undefined;
	/** Begins again at the first page. */
	reload: () => void;
}

/** Reads a list by pages of `limit` (50). Begins again where the route or its query change. */
export function usePages<P extends Routes<"get">>(route: P, options: Options<P, "get"> = {}): Paged<ItemOf<Answer<P, "get">>> {
	type T = ItemOf<Answer<P, "get">>;
	const [state, set] = useState<{key: string; items: T[]; next: string | null; problem?: Problem; loading: boolean}>({
		key: "",
		items: [],
		next: null,
		loading: true,
	});
	const [round, again] = useState(0);
	const key = JSON.stringify([route, options.path, options.query]);
	const stop = useRef<AbortController | undefined>(undefined);

	function fetchPage(cursor: string | null) {
		stop.current?.abort();
		const mine = (stop.current = new AbortController());
		set(s => ({...s, loading: true, ...(s.key === key ? {} : {key, items: [], next: null, problem: undefined})}));
		const query = {...options.query, ...(cursor === null ? {} : {cursor})} as Options<P, "get">["query"];
		api.get(route, {...options, query, signal: mine.signal}).then(
			a => {
				const page = a.data as unknown as PageOf<T>;
				set(s => ({
					key,
					items: cursor === null ? page.items : [...s.items, ...page.items],
					next: page.next_cursor,
					loading: false,
				}));
			},
			e => mine.signal.aborted || set(s => ({...s, problem: problemOf(e), loading: false})),
		);
	}

	useEffect(() => {
		fetchPage(null);
		return () => stop.current?.abort();
	}, [key, round]);
	const next = state.next;
	return {
		items: state.key === key ? state.items : [],
		problem: state.problem,
		loading: state.loading || state.key !== key,
		more: next === null || state.loading ? undefined : () => fetchPage(next),
		reload: useCallback(() => again(n => n + 1), []),
	};
}

export interface Action<A extends unknown[]> {
	run: (...args: A) => Promise<boolean>;
	busy: boolean;
	problem: Problem | undefined;
	clear: () => void;
}

/** Makes an action of f: it runs once at a time, keeps its problem, and returns true where f ended well. */
export function useAction<A extends unknown[]>(f: (...args: A) => Promise<unknown>): Action<A> {
	const [busy, setBusy] = useState(false);
	const [problem, setProblem] = useState<Problem>();
	const running = useRef(false);
	const latest = useRef(f);
	latest.current = f;

	const run = useCallback(async (...args: A) => {
		if (running.current) return false;
		running.current = true;
		setBusy(true);
		setProblem(undefined);
		try {
			await latest.current(...args);
			return true;
		} catch (e) {
			setProblem(problemOf(e));
			return false;
		} finally {
			running.current = false;
			setBusy(false);
		}
	}, []);
	return {run, busy, problem, clear: useCallback(() => setProblem(undefined), [])};
}
