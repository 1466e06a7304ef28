/* The messages between this page and the gateway, as they were sent. */
import {useState} from "preact/hooks";
import {en} from "../../en";
import {type Entry, type MessageRecord, recordBounds} from "../../mcp/record";
import {CodeView} from "../../ui/code";
import {jsonShown} from "../../ui/json";
import {State} from "../../ui/notice";
import {Part} from "../../ui/page";
import {count, Text} from "../../ui/text";

const t = en.playground;
/* Drawn at once. */
const ROWS = 20;
const WORD_MAX = 100;
const HEADER_MAX = 600;
const clock = new Intl.DateTimeFormat("en-GB", {timeStyle: "medium"});

export function Messages({record}: {record: MessageRecord}) {
	const [rows, setRows] = useState(ROWS);

	return (
		<Part
			title={t.messages}
			actions={
				record.entries.length > 0 ? (
					<button type="button" class="small" onClick={() => record.clear()}>
						{t.forget}
					</button>
				) : undefined
			}
		>
			<p class="quiet">{record.entries.length === 0 ? t.noMessages : t.messagesWhy(recordBounds.entries)}</p>
			{record.entries.length > 0 ? (
				<ul class="rows" aria-label={t.messages}>
					{record.entries.slice(0, rows).map(e => (
						<li key={e.n}>
							<One e={e} />
						</li>
					))}
				</ul>
			) : null}
			{record.entries.length > rows ? (
				<p>
					<button type="button" class="small" onClick={() => setRows(rows + ROWS)}>
						{t.older}
					</button>
				</p>
			) : null}
			{record.dropped > 0 ? <p class="quiet">{t.dropped(record.dropped)}</p> : null}
		</Part>
	);
}

function One({e}: {e: Entry}) {
	const [open, setOpen] = useState(false),
		[copied, setCopied] = useState(false);
	const what = e.method ?? (e.id !== undefined ? t.answerOf(e.id) : e.text === "" ? t.onlyHttp : t.message);

	return (
		<details onToggle={x => setOpen(x.currentTarget.open)}>
			<summary>
				<time class="quiet" dateTime={e.at}>
					{clock.format(new Date(e.at))}
				</time>{" "}
				<span>{e.way === "sent" ? `→ ${t.sent}` : `← ${t.received}`}</span>{" "}
				<code>
					<Text text={what} max={WORD_MAX} strict />
				</code>{" "}
				<span class="quiet">{e.http}</span> {e.failed ? <State state="error" /> : null}
			</summary>
			{open ? (
				<>
					{e.headers.length > 0 ? (
						<pre class="plain" tabIndex={0} aria-label={t.headers}>
							{e.headers.map(([name, value]) => (
								<>
									{name}: <Text text={value} max={HEADER_MAX} strict />
									{"\n"}
								</>
							))}
						</pre>
					) : null}
					{e.text !== "" ? (
						<>
							<CodeView label={t.body} lang="json" text={e.length > e.text.length ? e.text : jsonShown(e.text)} />
							{e.length > e.text.length ? <p class="quiet">{t.cut(count(e.length))}</p> : null}
							<p>
								<button
									type="button"
									class="small"
									onClick={() => void navigator.clipboard.writeText(e.text).then(() => setCopied(true))}
								>
									{t.copyMessage}
								</button>{" "}
								<span role="status">{copied ? en.once.copied : ""}</span>
							</p>
						</>
					) : null}
				</>
			) : null}
		</details>
	);
}
