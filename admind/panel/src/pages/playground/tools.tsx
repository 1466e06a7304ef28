/* Tools as the connected client sees them, and calls of them. */
import {useState} from "preact/hooks";
import {en} from "../../en";
import type {McpClient} from "../../mcp/client";
import {type JsonObject, member, textOf} from "../../mcp/message";
import {link} from "../../route";
import {CodeView} from "../../ui/code";
import {Form} from "../../ui/form";
import {Note} from "../../ui/notice";
import {Part} from "../../ui/page";
import {ResultView} from "../../ui/result";
import {SchemaForm, type Values} from "../../ui/schema";
import {Text} from "../../ui/text";
import {Pick, useList} from "./pick";
import type {Ask} from "./question";
import {resultText} from "./raw";
import {RunView, useRun} from "./run";

const t = en.playground;
const DESCRIPTION_MAX = 4000;

export function Tools({client, ask}: {client: McpClient; ask: Ask}) {
	const list = useList(client, "tools/list", "tools", true);
	const [tool, setTool] = useState<JsonObject>();
	const {run, start, cancel, clear} = useRun(client, ask);

	return (
		<div class="columns">
			<Part title={t.tools}>
				<Pick
					label={t.tools}
					list={list}
					nameOf={i => textOf(i, "name")}
					hintOf={i => textOf(i, "title") || textOf(i, "description")}
					picked={tool}
					empty={t.noTools}
					onPick={i => {
						setTool(i);
						clear();
					}}
				/>
			</Part>
			<div>
				{tool ? (
					<One
						key={textOf(tool, "name")}
						tool={tool}
						busy={run.busy}
						onCall={values =>
							start(textOf(tool, "name"), "tools/call", {name: textOf(tool, "name"), arguments: values}, member(tool, "inputSchema"))
						}
					/>
				) : (
					<Part title={t.call}>
						<p class="quiet">{t.choose}</p>
					</Part>
				)}
				{tool || run.busy ? (
					<Part title={en.result.result}>
						<RunView run={run} onCancel={cancel}>
							{result => (
								<>
									<Fix result={result.value} />
									<ToRecord result={result.value} />
									<ResultView text={resultText(result.text)} />
								</>
							)}
						</RunView>
					</Part>
				) : null}
			</div>
		</div>
	);
}

/* The remedy that gatewayd names for a failed call. */
function Fix({result}: {result: JsonObject}) {
	const fix = textOf(result, "_meta", "mcpbox/failure", "fix");
	return fix ? (
		<Note kind="bad">
			<p>
				<Text text={fix} max={DESCRIPTION_MAX} />{" "}
				<code>
					<Text text={textOf(result, "_meta", "mcpbox/failure", "failure_mode")} max={60} />
				</code>
			</p>
		</Note>
	) : null;
}

/* A link to the call's record, if the server says the id of one. */
function ToRecord({result}: {result: JsonObject}) {
	const id = textOf(result, "_meta", "mcpbox/execution", "execution_id");
	return /^[0-9a-f-]{32,36}$/.test(id) ? (
		<p>
			<a href={link("calls", id)}>{en.tools.record}</a>
		</p>
	) : null;
}

function One({tool, busy, onCall}: {tool: JsonObject; busy: boolean; onCall: (values: Values) => unknown}) {
	const [values, setValues] = useState<Values>({});
	const name = textOf(tool, "name");

	return (
		<Part title={t.call}>
			<h3>
				<Text text={name} strict />
			</h3>
			{textOf(tool, "description") ? (
				<p class="prose">
					<Text text={textOf(tool, "description")} max={DESCRIPTION_MAX} />
				</p>
			) : null}
			<Form label={t.call} busy={busy} action={() => onCall(values)}>
				<SchemaForm schema={member(tool, "inputSchema")} values={values} onValues={setValues} />
			</Form>
			<details>
				<summary>{t.definition}</summary>
				<CodeView label={t.definition} lang="json" text={JSON.stringify(tool, null, 2) + "\n"} />
			</details>
		</Part>
	);
}
