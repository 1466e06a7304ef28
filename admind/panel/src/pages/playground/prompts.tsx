/* Prompts as the connected client sees them. */
import {useState} from "preact/hooks";
import {en} from "../../en";
import type {McpClient} from "../../mcp/client";
import {type JsonObject, listOf, member, textOf} from "../../mcp/message";
import {CodeView} from "../../ui/code";
import {Form} from "../../ui/form";
import {jsonShown} from "../../ui/json";
import {Part} from "../../ui/page";
import {SchemaForm, type Values} from "../../ui/schema";
import {Text} from "../../ui/text";
import {Pick, useList} from "./pick";
import type {Ask} from "./question";
import {resultText} from "./raw";
import {RunView, useRun} from "./run";

const t = en.playground;
const TEXT_MAX = 100_000;

/* The arguments of a prompt as a schema, for the form. */
function schemaOf(prompt: JsonObject) {
	const list = listOf(prompt, "arguments");
	return {
		type: "object",
		properties: Object.fromEntries(list.map(a => [textOf(a, "name"), {type: "string", description: member(a, "description")}])),
		required: list.filter(a => member(a, "required") === true).map(a => textOf(a, "name")),
	};
}

export function Prompts({client, ask, open}: {client: McpClient; ask: Ask; open: boolean}) {
	const list = useList(client, "prompts/list", "prompts", open);
	const [prompt, setPrompt] = useState<JsonObject>(),
		[values, setValues] = useState<Values>({});
	const {run, start, cancel, clear} = useRun(client, ask);
	const name = textOf(prompt, "name");

	return (
		<div class="columns">
			<Part title={t.prompts}>
				<Pick
					label={t.prompts}
					list={list}
					nameOf={i => textOf(i, "name")}
					hintOf={i => textOf(i, "title") || textOf(i, "description")}
					picked={prompt}
					empty={t.noPrompts}
					onPick={i => {
						setPrompt(i);
						setValues({});
						clear();
					}}
				/>
			</Part>
			<Part title={t.get}>
				{prompt ? (
					<>
						<h3>
							<Text text={name} strict />
						</h3>
						<Form key={name} label={t.get} busy={run.busy} action={() => start(name, "prompts/get", {name, arguments: values})}>
							<SchemaForm schema={schemaOf(prompt)} values={values} onValues={setValues} />
						</Form>
						<RunView run={run} onCancel={cancel}>
							{result => (
								<>
									{listOf(result.value, "messages").map((m, i) => (
										<div key={i}>
											<p class="quiet">
												<Text text={textOf(m, "role")} max={60} />
											</p>
											<pre class="plain" tabIndex={0} aria-label={`${t.message} ${i + 1}`}>
												<Text
													text={textOf(m, "content", "text") || JSON.stringify(member(m, "content") ?? null)}
													max={TEXT_MAX}
												/>
											</pre>
										</div>
									))}
									<details>
										<summary>{t.definition}</summary>
										<CodeView label={t.definition} lang="json" text={jsonShown(resultText(result.text))} />
									</details>
								</>
							)}
						</RunView>
					</>
				) : (
					<p class="quiet">{t.choose}</p>
				)}
			</Part>
		</div>
	);
}
