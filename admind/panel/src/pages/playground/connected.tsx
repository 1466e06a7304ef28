/* An open connection: the server, its lists, and what the person does with them. */
import {useEffect, useRef, useState} from "preact/hooks";
import {en} from "../../en";
import {link} from "../../route";
import {CodeView} from "../../ui/code";
import {Copy} from "../../ui/copy";
import {Part, Tabs} from "../../ui/page";
import {Facts} from "../../ui/table";
import {Text} from "../../ui/text";
import type {Connection} from "./page";
import {Prompts} from "./prompts";
import {Question, useQuestions} from "./question";
import {Resources} from "./resources";
import {Tools} from "./tools";

const t = en.playground;
const NAME_MAX = 200;
const INSTRUCTIONS_MAX = 20_000;
const PARTS = ["", "prompts", "resources"];

/** Draws it. The parts stay where they are while another is looked at, so that a call goes on. */
export function Connected({at, tab, onEnd, busy}: {at: Connection; tab: string; onEnd: () => unknown; busy: boolean}) {
	const {client, server, temporary} = at;
	const [shown, setShown] = useState(false),
		top = useRef<HTMLDivElement>(null);
	const questions = useQuestions();
	const here = PARTS.includes(tab) ? tab : "";

	/* The form that had the focus is gone. */
	useEffect(() => top.current?.focus(), []);
	return (
		<div ref={top} tabIndex={-1}>
			<Part
				title={t.server}
				actions={
					<button type="button" onClick={onEnd} aria-disabled={busy}>
						{t.disconnect}
					</button>
				}
			>
				<Facts
					facts={[
						[t.server, <Text text={`${server.name} ${server.version}`} max={NAME_MAX} />],
						[t.revision, <Text text={server.revision} max={NAME_MAX} strict />],
						[
							t.connectedAs,
							<Text text={temporary ? t.byToken(temporary.name) : at.as === "pasted" ? t.byPasted : t.client} />,
						],
						[
							t.gateway,
							<code>
								<Text text={client.url} strict />
							</code>,
						],
					]}
				/>
				{temporary ? (
					<>
						<p>
							<button type="button" class="small" aria-expanded={shown} onClick={() => setShown(!shown)}>
								{shown ? t.hideToken : t.showToken}
							</button>
						</p>
						{shown ? <Copy label={t.tokenName} text={temporary.token} /> : null}
					</>
				) : null}
				<details>
					<summary>{t.instructions}</summary>
					{server.instructions ? (
						<pre class="plain" tabIndex={0} aria-label={t.instructions}>
							<Text text={server.instructions} max={INSTRUCTIONS_MAX} />
						</pre>
					) : (
						<p class="quiet">{t.noInstructions}</p>
					)}
				</details>
				<details>
					<summary>{t.capabilities}</summary>
					<CodeView label={t.capabilities} lang="json" text={JSON.stringify(server.capabilities ?? null, null, 2) + "\n"} />
				</details>
			</Part>
			<Tabs
				at={here === "" ? link("playground") : link("playground", here)}
				tabs={[
					[link("playground"), t.tools],
					[link("playground", "prompts"), t.prompts],
					[link("playground", "resources"), t.resources],
				]}
			/>
			<div hidden={here !== ""}>
				<Tools client={client} ask={questions.ask} />
			</div>
			<div hidden={here !== "prompts"}>
				<Prompts client={client} ask={questions.ask} open={here === "prompts"} />
			</div>
			<div hidden={here !== "resources"}>
				<Resources client={client} ask={questions.ask} open={here === "resources"} />
			</div>
			{questions.first ? <Question key={questions.first.n} asked={questions.first} /> : null}
		</div>
	);
}
