/* Makes a fault between this page and the gateway a problem with its remedy. */
import type {Problem} from "../api/client";
import {en} from "../en";
import {challengePart, member, textOf} from "./message";

const t = en.mcp;

/** A failure of the transport or of the protocol. */
export class McpFailure extends Error {
	constructor(readonly problem: Problem) {
		super(problem.detail);
	}
}

export function failureOf(failure_mode: string, detail: string, fix: string, status = 0): McpFailure {
	return new McpFailure({type: "about:blank", title: detail, status, detail, failure_mode, fix});
}

/** Returns the failure of an error of JSON-RPC. gatewayd's errors name their fix. */
export function failureOfError(error: unknown, status: number, challenge: string | null): McpFailure {
	const said = textOf(error, "message") || t.noMessage,
		code = member(error, "code");
	const scope = challengePart(challenge, "scope");
	const fix = textOf(error, "data", "fix");

	return failureOf(
		textOf(error, "data", "failure_mode") || (typeof code === "number" ? String(code) : "error"),
		said,
		[fix, status === 401 ? t.unauthenticatedFix : status === 403 && scope !== "" ? t.scopeFix(scope) : ""].filter(s => s !== "").join(" "),
		status,
	);
}

/** Returns the failure of an answer that has no message. */
export function failureOfStatus(status: number, challenge: string | null): McpFailure {
	const scope = challengePart(challenge, "scope");

	if (status === 401) return failureOf("unauthenticated", t.unauthenticated, t.unauthenticatedFix, status);
	if (status === 403) return failureOf("forbidden", t.forbidden, scope ? t.scopeFix(scope) : t.forbiddenFix, status);
	if (status === 404) return failureOf("not_found", t.notFound, t.notFoundFix, status);
	return failureOf("unreadable", t.unreadable(status), t.unreadableFix, status);
}

/**
 * Returns why a request got no answer. A browser does not say, so: it reports
 * when this page's policy forbade the request; and a question whose answer no
 * script may read tells whether anybody listens there.
 */
export async function failureOfSilence(url: string, forbidden: boolean): Promise<McpFailure> {
	if (!URL.canParse(url)) return failureOf("policy", t.policy(url), t.policyFix);
	const at = new URL(url);

	if (forbidden) return failureOf("policy", t.policy(at.origin), t.policyFix);
	try {
		await fetch(`${at.origin}/health`, {mode: "no-cors", credentials: "omit", cache: "no-store"});
	} catch {
		return failureOf("unreachable", t.unreachable(url), t.unreachableFix(at.port || (at.protocol === "https:" ? "443" : "80")));
	}
	return failureOf("forbidden_origin", t.refused(location.origin), t.refusedFix(location.origin));
}
