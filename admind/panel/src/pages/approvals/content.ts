/*
 * The content of a request, as it was drawn.
 *
 * A reviewer's yes names the content that stood on the page, so three things
 * come from one answer of GET /api/approvals/{id} and are never mixed with
 * another: the text, the values, and the ETag. The answer's process computed the
 * ETag over the bytes that it shows, and the vault computes it again before it
 * seals. Later answers with the same ETag may replace what is drawn (admind's
 * words beside the content may have changed). One with another ETag never does:
 * it waits as `newer` until the reviewer asks for it, so what is on the page does
 * not change under a pointer that is about to press Approve.
 */
import {useCallback, useEffect, useRef, useState} from "preact/hooks";
import {type Problem, problemOf, type Schemas, send} from "../../api/client";
import {en} from "../../en";
import {useEvery} from "../../me";
import {jsonMembers} from "./json";

/* Content of a request changes rarely, and a state when another person decides. */
const CHECK_MS = 20_000;

export interface Drawn {
	etag: string;
	/** The whole answer. */
	raw: string;
	request: Schemas["Approval"];
	/** The members of the content, each as its text. */
	members: Map<string, string>;
}

/* Names the kind of a content by its own members, which the server made of the bytes. The request's `kind` is admind's
 * word: under another kind's headings a reviewer would look in the wrong places. */
function kindOf(members: Drawn["members"]): string {
	return members.has("format")
		? "tool"
		: members.has("version_hash")
			? "call"
			: members.get("kind") === '"module"'
				? "module"
				: "network";
}

async function fetchContent(id: string, signal: AbortSignal): Promise<Drawn> {
	const answer = await send("GET", `/api/approvals/${encodeURIComponent(id)}`, {signal});
	const raw = await answer.text(),
		request = JSON.parse(raw) as Schemas["Approval"],
		etag = answer.headers.get("ETag") ?? "";

	if (etag !== `"${request.hash}"`) throw new Error(en.approvals.twoHashes);
	const members = jsonMembers(jsonMembers(raw).get("content") ?? "{}");
	if (kindOf(members) !== request.kind) throw new Error(en.approvals.otherKind);
	return {etag, raw, request, members};
}

export interface Content {
	drawn: Drawn | undefined;
	/** The content is another one now. */
	newer: boolean;
	problem: Problem | undefined;
	/** Reads again; what is drawn stays if its hash is another. */
	check: () => void;
	/** Reads again and draws what comes. */
	reload: () => void;
}

/** Reads a request and looks at times whether it is still the same. */
export function useContent(id: string): Content {
	const [drawn, setDrawn] = useState<Drawn>(),
		[newer, setNewer] = useState(false),
		[problem, setProblem] = useState<Problem>();
	const held = useRef<Drawn | undefined>(undefined),
		stop = useRef<AbortController | undefined>(undefined);

	const read = useCallback(
		(replace: boolean) => {
			stop.current?.abort();
			const mine = (stop.current = new AbortController());
			fetchContent(id, mine.signal).then(
				d => {
					if (mine.signal.aborted) return;
					setProblem(undefined);
					if (!replace && held.current !== undefined && held.current.etag !== d.etag) {
						setNewer(true);
						return;
					}
					held.current = d;
					setDrawn(d);
					setNewer(false);
				},
				e => mine.signal.aborted || setProblem(problemOf(e)),
			);
		},
		[id],
	);
	const check = useCallback(() => read(false), [read]),
		reload = useCallback(() => read(true), [read]);

	useEffect(() => {
		read(true);
		return () => stop.current?.abort();
	}, [read]);
	useEvery(CHECK_MS, check);
	return {drawn, newer, problem, check, reload};
}
