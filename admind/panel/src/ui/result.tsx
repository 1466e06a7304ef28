/* A CallToolResult of MCP (2026-07-28, "Tool Result"), made by a tool: text, structured content, and what else is in it. */
import {en} from "../en";
import {CodeView} from "./code";
import {jsonMembers, jsonShown} from "./json";
import {Note} from "./notice";
import {Text} from "./text";

const t = en.result;
const TEXT_MAX = 200_000;

function json(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

/* The text of the structured content as it was written; undefined where there is none, or two. */
function structured(text: string): string | undefined {
	try {
		return jsonMembers(text).get("structuredContent");
	} catch {
		return undefined;
	}
}

/** Draws a result. Images and other blocks are named and not drawn: their bytes are a tool's choice. */
export function ResultView({text}: {text: string}) {
	const value = json(text) as {content?: unknown; structuredContent?: unknown; isError?: unknown} | undefined;
	if (typeof value !== "object" || value === null || !Array.isArray(value.content))
		return <CodeView label={t.text} text={jsonShown(text)} lang="json" />;
	const whole = structured(text);
	return (
		<>
			{value.isError === true ? (
				<Note kind="bad">
					<p>{t.error}</p>
				</Note>
			) : null}
			{(value.content as {type?: unknown; text?: unknown}[]).map((block, i) =>
				typeof block?.text === "string" ? (
					<pre key={i} class="plain" tabIndex={0} aria-label={t.text}>
						<Text text={block.text} max={TEXT_MAX} />
					</pre>
				) : (
					<p key={i} class="quiet">
						{t.other}:{" "}
						<code>
							<Text text={String(block?.type ?? "")} max={60} />
						</code>
					</p>
				),
			)}
			{whole !== undefined ? (
				<details>
					<summary>{t.structured}</summary>
					<CodeView label={t.structured} text={jsonShown(whole)} lang="json" />
				</details>
			) : null}
		</>
	);
}
