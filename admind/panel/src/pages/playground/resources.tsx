/* Resources and their templates as the connected client sees them. */
import {useState} from "preact/hooks";
import {en} from "../../en";
import type {McpClient} from "../../mcp/client";
import {type JsonObject, listOf, member, textOf} from "../../mcp/message";
import {CodeView} from "../../ui/code";
import {Field, Form} from "../../ui/form";
import {jsonShown} from "../../ui/json";
import {Part} from "../../ui/page";
import {bytes, Text} from "../../ui/text";
import {Pick, useList} from "./pick";
import type {Ask} from "./question";
import {resultText} from "./raw";
import {RunView, useRun} from "./run";

const t = en.playground;
const NAME_MAX = 200;

export function Resources({client, ask, open}: {client: McpClient; ask: Ask; open: boolean}) {
	const resources = useList(client, "resources/list", "resources", open),
		templates = useList(client, "resources/templates/list", "resourceTemplates", open);
	const [picked, setPicked] = useState<JsonObject>(),
		[uri, setUri] = useState("");
	const {run, start, cancel, clear} = useRun(client, ask);
	const isTemplate = member(picked, "uriTemplate") !== undefined;

	function pick(i: JsonObject) {
		setPicked(i);
		setUri(textOf(i, "uri") || textOf(i, "uriTemplate"));
		clear();
	}
	return (
		<div class="columns">
			<div>
				<Part title={t.resources}>
					<Pick
						label={t.resources}
						list={resources}
						nameOf={i => textOf(i, "uri")}
						hintOf={i => textOf(i, "title") || textOf(i, "description") || textOf(i, "name")}
						picked={picked}
						onPick={pick}
						empty={t.noResources}
					/>
				</Part>
				{templates.items.length > 0 || templates.problem ? (
					<Part title={t.template}>
						<Pick
							label={t.template}
							list={templates}
							nameOf={i => textOf(i, "uriTemplate")}
							hintOf={i => textOf(i, "title") || textOf(i, "description") || textOf(i, "name")}
							picked={picked}
							onPick={pick}
							empty={t.noResources}
						/>
					</Part>
				) : null}
			</div>
			<Part title={t.read}>
				<Form label={t.read} busy={run.busy} action={() => start(uri, "resources/read", {uri})}>
					<Field label={t.uri} hint={isTemplate ? t.variables : undefined} value={uri} onValue={setUri} required />
				</Form>
				<RunView run={run} onCancel={cancel}>
					{result => (
						<>
							{listOf(result.value, "contents").map((c, i) => (
								<div key={i}>
									<p class="quiet">
										<Text text={`${textOf(c, "uri")} ${textOf(c, "mimeType")}`} max={NAME_MAX} strict />
									</p>
									{member(c, "blob") !== undefined ? (
										<p>{t.blob(bytes(Math.floor((textOf(c, "blob").replace(/=+$/, "").length * 3) / 4)))}</p>
									) : (
										<CodeView label={`${t.resources} ${i + 1}`} text={textOf(c, "text")} />
									)}
								</div>
							))}
							<details>
								<summary>{t.definition}</summary>
								<CodeView label={t.definition} lang="json" text={jsonShown(resultText(result.text))} />
							</details>
						</>
					)}
				</RunView>
			</Part>
		</div>
	);
}
