/*
 * A client of MCP over Streamable HTTP, in the revisions that gatewayd serves.
 * It is a client like any other: each request goes with the credential that the
 * person chose, and with nothing of the panel's login.
 *
 * credentials "omit": cookies have no port, so the browser would send the half
 * of the login that is a cookie to the gateway, too (docs/decisions/0067).
 * Bounds: a program that took the gateway's port can answer without an end.
 */
import {failureOf, failureOfError, failureOfSilence, failureOfStatus, McpFailure} from "./failure";
import {capabilities, isModern, isObject, type JsonObject, listOf, member, metaOf, mirror, type Revision, serverOf, textOf} from "./message";
import type {MessageRecord} from "./record";
import {EventReader} from "./sse";
import {en} from "../en";

const t = en.mcp;
/* More than the largest result that a tool's limits allow. */
const ANSWER_MAX = 32_000_000;
/* A legacy stream that ends early is taken up again this often, and at most after this wait. */
const RESUMES_MAX = 50;
const RESUME_WAIT_MS = 1000;
const RESUME_WAIT_MAX_MS = 30_000;
/* A call that waits for a person's yes asks again after this; the gateway holds each such request for seconds. */
const AGAIN_MS = 1000;
/* Rounds of questions of one call: a tool may ask again and again, and ends by its own time. */
const ROUNDS_MAX = 200;
const SHOWN = ["content-type", "mcp-session-id", "mcp-protocol-version", "www-authenticate", "retry-after"];

/** A question of a tool to the person: a form, or a page to visit. */
export interface Question {
	message: string;
	schema: unknown;
	url: string | undefined;
}
/** The person's answer: the content of an accepted form, or the reason for its absence. */
export type Reply = {action: "accept"; content?: JsonObject} | {action: "decline" | "cancel"};

/** Takes the news and the questions of a call that runs. */
export interface Call {
	signal: AbortSignal;
	/** Hears of notifications: progress and log messages. */
	told: (method: string, params: unknown) => void;
	/** Asks the person. */
	ask: (question: Question) => Promise<Reply>;
	/** Hears that the call waits for an administrator's yes. */
	waits?: () => void;
}

/** The result of a request, and the text of the message that has it. */
export interface Result {
	value: JsonObject;
	text: string;
}

export interface Server {
	name: string;
	version: string;
	revision: string;
	instructions: string;
	capabilities: unknown;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
	return new Promise((done, stop) => {
		const ended = () => {
			clearTimeout(timer);
			stop(signal.reason);
		};
		const timer = setTimeout(() => {
			signal.removeEventListener("abort", ended);
			done();
		}, ms);
		signal.addEventListener("abort", ended, {once: true});
	});
}

function questionOf(params: unknown): Question {
	return {
		message: textOf(params, "message"),
		schema: member(params, "requestedSchema"),
		url: member(params, "mode") === "url" ? textOf(params, "url") : undefined,
	};
}

export class McpClient {
	#next = 1;
	#session: string | undefined;
	/* The revision that the server named, of legacy ones. */
	#agreed: string;
	readonly #client: JsonObject;

	constructor(
		readonly url: string,
		readonly revision: Revision,
		readonly token: string | undefined,
		readonly record: MessageRecord,
	) {
		this.#agreed = revision;
		this.#client = {name: "mcpbox-playground", version: "1"};
	}

	/** Begins: asks who is there. Throws an McpFailure. */
	async connect(signal: AbortSignal): Promise<Server> {
		const quiet: Call = {signal, told: () => undefined, ask: () => Promise.resolve({action: "cancel"})};
		let value: JsonObject;

		if (isModern(this.revision)) {
			({value} = await this.request("server/discover", {}, quiet));
		} else {
			({value} = await this.request(
				"initialize",
				{protocolVersion: this.revision, capabilities: capabilities(this.revision), clientInfo: this.#client},
				quiet,
			));
			this.#agreed = textOf(value, "protocolVersion") || this.revision;
			await this.#post({jsonrpc: "2.0", method: "notifications/initialized"}, {}, signal);
			if (this.#session !== undefined && member(value, "capabilities", "logging") !== undefined)
				await this.request("logging/setLevel", {level: "debug"}, quiet);
		}
		return {
			...serverOf(value),
			revision: this.#agreed,
			instructions: textOf(value, "instructions"),
			capabilities: member(value, "capabilities"),
		};
	}

	/** Ends the session, if there is one. Nothing is wrong if the server is gone. */
	async disconnect(): Promise<void> {
		if (this.#session === undefined) return;
		const headers = this.#headers({});
		this.#session = undefined;
		this.record.add({way: "sent", method: undefined, id: undefined, http: "DELETE", headers: this.#shown(headers), failed: false}, "");
		try {
			const answer = await fetch(this.url, {method: "DELETE", headers, credentials: "omit", redirect: "error", keepalive: true});
			this.#note(answer, "");
		} catch {
			/* The session ends by its time. */
		}
	}

	/** Returns one page of a list: tools/list, prompts/list and so on. */
	async list(method: string, name: string, cursor: string | undefined, signal: AbortSignal): Promise<{items: JsonObject[]; next: string | undefined}> {
		const {value} = await this.request(method, cursor === undefined ? {} : {cursor}, {
			signal,
			told: () => undefined,
			ask: () => Promise.resolve({action: "cancel"}),
		});
		return {items: listOf(value, name), next: textOf(value, "nextCursor") || undefined};
	}

	/** Sends a request and returns its result; the questions on the way go to the person. `schema` is the input schema of a
	 * called tool. Throws an McpFailure, or what aborted the signal. */
	async request(method: string, params: JsonObject, call: Call, schema?: unknown): Promise<Result> {
		let more: JsonObject = {};

		for (let round = 0; round < ROUNDS_MAX; round++) {
			const result = await this.#once(method, {...params, ...more}, call, schema);
			if (!isModern(this.revision) || member(result.value, "resultType") !== "input_required") return result;
			const state = member(result.value, "requestState"),
				asked = member(result.value, "inputRequests");
			const answers: JsonObject = {};
			if (!isObject(asked)) {
				call.waits?.();
				await pause(AGAIN_MS, call.signal);
			} else
				for (const [key, request] of Object.entries(asked))
					if (textOf(request, "method") === "elicitation/create") answers[key] = await this.#ask(call, member(request, "params"));
			more = {...(state === undefined ? {} : {requestState: state}), ...(isObject(asked) ? {inputResponses: answers} : {})};
		}
		throw failureOf("too_many_rounds", t.rounds(ROUNDS_MAX), t.roundsFix);
	}

	async #ask(call: Call, params: unknown): Promise<Reply> {
		return new Promise((done, stop) => {
			const ended = () => stop(call.signal.reason);
			call.signal.addEventListener("abort", ended, {once: true});
			call.ask(questionOf(params)).then(reply => {
				call.signal.removeEventListener("abort", ended);
				done(reply);
			}, stop);
		});
	}

	/* One request and its answer. A cancelled one is told to the server: modern revisions by the end of the connection. */
	async #once(method: string, params: JsonObject, call: Call, schema: unknown): Promise<Result> {
		const id = this.#next++;
		const own = isObject(params._meta) ? params._meta : {};
		const message = {jsonrpc: "2.0", id, method, params: {...params, _meta: {...metaOf(this.revision, this.#client, id), ...own}}};
		const headers = isModern(this.revision) ? mirror(method, message, schema) : {};

		try {
			return await this.#post(message, headers, call.signal, call, id);
		} catch (e) {
			if (call.signal.aborted && !isModern(this.revision) && this.#session !== undefined)
				await this.#post(
					{jsonrpc: "2.0", method: "notifications/cancelled", params: {requestId: id, reason: "cancelled by the person"}},
					{},
					new AbortController().signal,
				).catch(() => undefined);
			throw e;
		}
	}

	#headers(more: Record<string, string>): Record<string, string> {
		const headers: Record<string, string> = {Accept: "application/json, text/event-stream", ...more};

		if (this.token !== undefined) headers.Authorization = `Bearer ${this.token}`;
		if (this.#session !== undefined) headers["Mcp-Session-Id"] = this.#session;
		return headers;
	}

	#shown(headers: Record<string, string>): [string, string][] {
		return Object.entries(headers).map(([k, v]) => [k, k === "Authorization" ? `Bearer ${t.hidden}` : v]);
	}

	/* Records an answer of HTTP, with its message if it has one. */
	#note(answer: Response, text: string, message?: unknown): void {
		const id = member(message, "id");
		this.record.add(
			{
				way: "received",
				method: textOf(message, "method") || undefined,
				id: id === undefined ? undefined : JSON.stringify(id),
				http: String(answer.status),
				headers: SHOWN.flatMap(n => (answer.headers.has(n) ? [[n, answer.headers.get(n)!] as [string, string]] : [])),
				failed: !answer.ok || member(message, "error") !== undefined || member(message, "result", "isError") === true,
			},
			text,
		);
	}

	/* Sends by fetch(). Where there is no answer, finds out why. */
	async #send(init: RequestInit & {headers: Record<string, string>}): Promise<Response> {
		let forbidden = false;
		const look = (e: SecurityPolicyViolationEvent) => {
			if (e.effectiveDirective === "connect-src") forbidden = true;
		};

		document.addEventListener("securitypolicyviolation", look);
		try {
			return await fetch(this.url, {...init, credentials: "omit", redirect: "error", cache: "no-store", referrerPolicy: "no-referrer"});
		} catch (e) {
			if (init.signal?.aborted) throw e;
			/* The report of the policy is a task of its own, after the refusal. */
			await new Promise(done => setTimeout(done, 0));
			throw await failureOfSilence(this.url, forbidden);
		} finally {
			document.removeEventListener("securitypolicyviolation", look);
		}
	}

	/* Posts a message. With an id it waits for the answer to that; else the server takes the message and says nothing. */
	async #post(message: JsonObject, mirrored: Record<string, string>, signal: AbortSignal, call?: Call, id?: number): Promise<Result> {
		const method = textOf(message, "method") || undefined;
		const version: Record<string, string> = method === "initialize" || this.#agreed === "2025-03-26" ? {} : {"MCP-Protocol-Version": this.#agreed};
		const headers = this.#headers({"Content-Type": "application/json", ...version, ...mirrored}),
			text = JSON.stringify(message);

		this.record.add(
			{
				way: "sent",
				method,
				id: message.id === undefined ? undefined : JSON.stringify(message.id),
				http: "POST",
				headers: this.#shown(headers),
				failed: false,
			},
			text,
		);
		const answer = await this.#send({method: "POST", headers, body: text, signal});
		if (method === "initialize" && answer.ok) this.#session = answer.headers.get("Mcp-Session-Id") ?? undefined;
		if (id === undefined || call === undefined) {
			const said = answer.body === null ? "" : await this.#whole(answer);
			this.#note(answer, said);
			if (!answer.ok) throw failureOfStatus(answer.status, answer.headers.get("WWW-Authenticate"));
			return {value: {}, text: ""};
		}
		return this.#answer(answer, call, id);
	}

	async #whole(answer: Response): Promise<string> {
		const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
		let text = "";

		for (;;) {
			const {value, done} = await reader.read();
			if (done) return text;
			text += value;
			if (text.length > ANSWER_MAX) {
				void reader.cancel();
				throw failureOf("too_large", t.tooLarge, t.tooLargeFix, answer.status);
			}
		}
	}

	/* Reads the answer to the request `id`: one message, or a stream that ends with it. */
	async #answer(answer: Response, call: Call, id: number): Promise<Result> {
		const type = (answer.headers.get("Content-Type") ?? "").split(";")[0]!.trim().toLowerCase();
		if (type === "text/event-stream" && answer.ok) return this.#stream(answer, call, id);
		const text = answer.body === null ? "" : await this.#whole(answer);
		let message: unknown;

		try {
			message = JSON.parse(text);
		} catch {
			this.#note(answer, text);
			throw failureOfStatus(answer.status, answer.headers.get("WWW-Authenticate"));
		}
		this.#note(answer, text, message);
		return this.#result(answer, text, message);
	}

	#result(answer: Response, text: string, message: unknown): Result {
		const result = member(message, "result");

		if (isObject(result)) return {value: result, text};
		if (member(message, "error") !== undefined)
			throw failureOfError(member(message, "error"), answer.status, answer.headers.get("WWW-Authenticate"));
		throw failureOfStatus(answer.status, answer.headers.get("WWW-Authenticate"));
	}

	/* Reads streams until the answer comes: the first, and where it ends early, those that go on after its last event. */
	async #stream(answer: Response, call: Call, id: number): Promise<Result> {
		let last: string | undefined;

		for (let n = 0; n < RESUMES_MAX; n++) {
			const events = new EventReader(ANSWER_MAX),
				reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
			let broken: unknown;
			try {
				for (;;) {
					const {value, done} = await reader.read();
					if (done) break;
					for (const event of events.feed(value)) {
						last = event.id ?? last;
						if (event.data === "") continue;
						const result = this.#event(answer, event.data, call, id);
						if (result) {
							void reader.cancel();
							return result;
						}
					}
				}
			} catch (e) {
				void reader.cancel().catch(() => undefined);
				if (call.signal.aborted || e instanceof McpFailure) throw e;
				if (e instanceof RangeError) throw failureOf("too_large", t.tooLarge, t.tooLargeFix, answer.status);
				broken = e;
			}
			if (last === undefined || this.#session === undefined) throw failureOf("cut", t.cut, t.cutFix, broken === undefined ? answer.status : 0);
			await pause(Math.min(events.retry ?? RESUME_WAIT_MS, RESUME_WAIT_MAX_MS), call.signal);
			const headers = this.#headers({"MCP-Protocol-Version": this.#agreed, "Last-Event-ID": last});
			this.record.add({way: "sent", method: undefined, id: undefined, http: "GET", headers: this.#shown(headers), failed: false}, "");
			answer = await this.#send({method: "GET", headers, signal: call.signal});
			if (!answer.ok || answer.body === null) {
				this.#note(answer, answer.body === null ? "" : await this.#whole(answer));
				throw failureOfStatus(answer.status, answer.headers.get("WWW-Authenticate"));
			}
		}
		throw failureOf("cut", t.cut, t.cutFix);
	}

	/* Takes one message of a stream. Returns the result if it is the answer. */
	#event(answer: Response, text: string, call: Call, id: number): Result | undefined {
		let message: unknown;

		try {
			message = JSON.parse(text);
		} catch {
			this.#note(answer, text);
			throw failureOfStatus(answer.status, null);
		}
		this.#note(answer, text, message);
		const method = textOf(message, "method"),
			other = member(message, "id");
		if (method === "") {
			if (other === id) return this.#result(answer, text, message);
		} else if (other === undefined) call.told(method, member(message, "params"));
		else void this.#serve(method, other, member(message, "params"), call);
		return undefined;
	}

	/* Answers a request of the server's, which comes on a legacy stream. */
	async #serve(method: string, id: unknown, params: unknown, call: Call): Promise<void> {
		const said =
			method === "ping"
				? {result: {}}
				: method === "elicitation/create"
				? {result: await this.#ask(call, params).catch(() => ({action: "cancel"}))}
				: {error: {code: -32601, message: "This client can't do that."}};
		await this.#post({jsonrpc: "2.0", id, ...said}, {}, call.signal).catch(() => undefined);
	}
}
