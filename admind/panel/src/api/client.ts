/*
 * Requests to the REST API of this origin, with the types of docs/openapi.yaml:
 * a route, a parameter or a member that is not in it does not compile.
 */
import {exactText} from "./exact";
import type {components, paths} from "./schema";
import {sessionHalf, sessionOver} from "./session";
import {en} from "../en";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];
type Method = "get" | "post" | "put" | "patch" | "delete";

/** The routes that have a method. */
export type Routes<M extends Method> = {[P in keyof paths]: paths[P][M] extends {responses: unknown} ? P : never}[keyof paths];
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;
type Json<T> = T extends {content: {"application/json": infer B}} ? B : undefined;
type Answers<O> = O extends {responses: infer R}
	? R extends {200: infer A}
		? Json<A>
		: R extends {201: infer A}
			? Json<A>
			: R extends {202: infer A}
				? Json<A>
				: undefined
	: never;
/** The body of a route's answer. */
export type Answer<P extends keyof paths, M extends Method> = Answers<Operation<P, M>>;
/** The body of a route's request. */
export type Body<P extends keyof paths, M extends Method> =
	Operation<P, M> extends {requestBody?: infer R} ? Json<NonNullable<R>> : undefined;
type Query<P extends keyof paths, M extends Method> =
	Operation<P, M> extends {parameters: {query?: infer Q}} ? NonNullable<Q> : Record<string, never>;

export interface Options<P extends keyof paths, M extends Method> {
	/** Values of {names} in the route. */
	path?: Record<string, string>;
	query?: Query<P, M>;
	/** A value in it may be an Exact. */
	body?: Body<P, M>;
	/** The ETag of what a change was made from. */
	match?: string;
	signal?: AbortSignal;
}

/** An answer, its text, and its ETag with the quotes, where it has one. */
export interface Answered<T> {
	data: T;
	text: string;
	etag: string | null;
}

/** A refusal: the problem that the server said, or one made here where it did not answer. */
export class Refusal extends Error {
	constructor(readonly problem: Problem) {
		super(problem.detail);
	}
}

/* Asked for where the server demands a fresh proof for a change, which is named as
 * "POST /api/tokens". Resolves to true once the proof was given; ui/proof.tsx sets
 * it. */
let prove: (change: string) => Promise<boolean> = () => Promise.resolve(false);

export function clientProof(f: (change: string) => Promise<boolean>): void {
	prove = f;
}

/** Asks for a fresh proof before a change is sent: one that begins with a ceremony, whose challenge a proof would replace.
 * Resolves to true once the proof was given. */
export function clientProve(change: string): Promise<boolean> {
	return prove(change);
}

function away(): Problem {
	return {
		type: "about:blank",
		title: en.problem.awayTitle,
		status: 0,
		detail: en.problem.awayDetail,
		failure_mode: "unreachable",
		fix: en.problem.awayFix,
	};
}

function unreadable(status: number): Problem {
	return {
		type: "about:blank",
		title: en.problem.unreadableTitle,
		status,
		detail: en.problem.unreadableDetail(status),
		failure_mode: "unreadable",
		fix: en.problem.unreadableFix,
	};
}

function address(route: string, path: Record<string, string> = {}, query: object = {}): string {
	const place = route.replace(/\{(\w+)\}/g, (_, name: string) => {
		const value = path[name];
		if (value === undefined) throw new Error(`${route} lacks ${name}`);
		return encodeURIComponent(value);
	});
	const words = new URLSearchParams();
	for (const [name, value] of Object.entries(query))
		if (value !== undefined && value !== null && value !== "") words.set(name, String(value));
	return words.size > 0 ? `${place}?${words}` : place;
}

/** Sends one request with both halves of the login, or with `half` in place of its second. The caller reads the body.
 * `keepalive`: the request goes on after the page has left. Throws a Refusal. */
export async function send(
	method: string,
	to: string,
	options: {body?: unknown; match?: string; signal?: AbortSignal; half?: string; keepalive?: boolean} = {},
): Promise<Response> {
	const headers: Record<string, string> = {};
	const half = options.half ?? sessionHalf();
	let answer: Response, problem: Problem;

	if (half !== null) headers["X-CSRF-Token"] = half;
	if (options.body !== undefined) headers["Content-Type"] = "application/json";
	if (options.match !== undefined) headers["If-Match"] = options.match;
	try {
		answer = await fetch(to, {
			method,
			headers,
			body: options.body === undefined ? undefined : exactText(options.body),
			signal: options.signal,
			keepalive: options.keepalive,
			credentials: "same-origin",
			redirect: "error",
			cache: "no-store",
		});
	} catch (e) {
		if (options.signal?.aborted) throw e;
		throw new Refusal(away());
	}
	if (answer.ok) return answer;
	try {
		problem = (await answer.json()) as Problem;
		if (typeof problem.detail !== "string" || typeof problem.failure_mode !== "string") throw new Error();
	} catch {
		problem = unreadable(answer.status);
	}
	if (answer.status === 401 && problem.failure_mode === "unauthenticated" && sessionHalf() === half) sessionOver();
	throw new Refusal(problem);
}

async function ask<P extends keyof paths, M extends Method>(
	method: M,
	route: P,
	options: Options<P, M> = {},
): Promise<Answered<Answer<P, M>>> {
	const to = address(route, options.path, options.query);
	let answer: Response;

	try {
		answer = await send(method.toUpperCase(), to, options);
	} catch (e) {
		if (!(e instanceof Refusal) || e.problem.failure_mode !== "proof_required" || !(await prove(`${method.toUpperCase()} ${route}`)))
			throw e;
		answer = await send(method.toUpperCase(), to, options);
	}
	const text = answer.status === 204 ? "" : await answer.text();
	return {data: (text === "" ? undefined : JSON.parse(text)) as Answer<P, M>, text, etag: answer.headers.get("ETag")};
}

/** The API. Each answers with the body and the ETag, or throws a Refusal. Where the server demands a fresh proof, the
 * person is asked for one and the request is sent again. */
export const api = {
	get: <P extends Routes<"get">>(route: P, options?: Options<P, "get">) => ask("get", route, options),
	post: <P extends Routes<"post">>(route: P, options?: Options<P, "post">) => ask("post", route, options),
	put: <P extends Routes<"put">>(route: P, options?: Options<P, "put">) => ask("put", route, options),
	patch: <P extends Routes<"patch">>(route: P, options?: Options<P, "patch">) => ask("patch", route, options),
	delete: <P extends Routes<"delete">>(route: P, options?: Options<P, "delete">) => ask("delete", route, options),
};

/** Returns the problem of anything that was thrown. */
export function problemOf(e: unknown): Problem {
	if (e instanceof Refusal) return e.problem;
	return {
		type: "about:blank",
		title: en.problem.ownTitle,
		status: 0,
		detail: e instanceof Error ? e.message : String(e),
		failure_mode: "panel",
		fix: en.problem.ownFix,
	};
}
