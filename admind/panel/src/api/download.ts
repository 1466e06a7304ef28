/* Downloads by fetch(), since a link sends no header and so no half of the login. */
import {en} from "../en";
import {Refusal, send} from "./client";

/* The last line of a file that is not whole is shorter than this. */
const LAST_LINE_MAX = 8192;

/* Throws where the file ends early: lines of an export end with one that says so (docs/openapi.yaml). */
async function whole(file: Blob): Promise<void> {
	const end = await file.slice(-LAST_LINE_MAX).text(),
		last = end.trimEnd().split("\n").pop() ?? "";
	if (!last.includes('"export_failed"')) return;
	let said: unknown;
	try {
		said = JSON.parse(last);
	} catch {
		return;
	}
	if (typeof said === "object" && said !== null && "event" in said && said.event === "export_failed")
		throw new Refusal({
			type: "about:blank",
			title: en.problem.cutTitle,
			status: 0,
			failure_mode: "export_failed",
			fix: en.problem.cutFix,
			detail:
				"message" in said && typeof said.message === "string" ? `${en.problem.cutDetail} ${said.message}` : en.problem.cutDetail,
		});
}

/** Fetches lines and offers them as a file. The browser keeps the whole before it saves it. Throws a Refusal. */
export async function download(route: string, query: Record<string, string>, name: string): Promise<void> {
	const words = new URLSearchParams(query).toString();
	const answer = await send("GET", words === "" ? route : `${route}?${words}`);
	let file: Blob;

	try {
		file = await answer.blob();
	} catch {
		throw new Refusal({
			type: "about:blank",
			title: en.problem.cutTitle,
			status: 0,
			failure_mode: "export_failed",
			fix: en.problem.cutFix,
			detail: en.problem.cutDetail,
		});
	}
	await whole(file);
	const url = URL.createObjectURL(file),
		a = document.createElement("a");
	a.href = url;
	a.download = name;
	a.click();
	setTimeout(() => URL.revokeObjectURL(url), 1000);
}
