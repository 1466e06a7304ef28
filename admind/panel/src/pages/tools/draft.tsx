/* Drafts by the management tools that POST /api/drafts takes (docs/decisions/0111), and the request for review. */
import {useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction} from "../../api/use";
import {en} from "../../en";
import {go, link} from "../../route";
import {Area, Form} from "../../ui/form";
import {done, doneThere} from "../../ui/notice";
import {Part} from "../../ui/page";
import {ResultView} from "../../ui/result";

const t = en.tools;
type Draft = NonNullable<NonNullable<Parameters<typeof api.post<"/api/drafts">>[1]>["body"]>["name"];
/** What a management tool answers. */
export type Result = Schemas["OwnCallResult"];

interface Made {
	id?: string;
	request_id?: string;
	version_hash?: string;
}

/** Returns the structured content of a management tool's result, whose form is its outputSchema. */
export function made(result: Result): Made {
	const value = JSON.parse(result.result) as {structuredContent?: Made};
	return value.structuredContent ?? {};
}

/** Makes drafts. `bad` is the answer where the arguments were at fault. `from` is the version that the page shows: if
 * another was made since, nothing is done, so that no content of a client has a person's name unread. */
export function useDraft() {
	const [bad, setBad] = useState<Result>();
	return {
		bad,
		clear: () => setBad(undefined),
		run: async (name: Draft, args: Record<string, unknown>, from?: Schemas["Version"]): Promise<Result | undefined> => {
			setBad(undefined);
			const {data} = await api.post("/api/drafts", {body: {name, arguments: args}, ...(from ? {match: `"${from.version_hash}"`} : {})});
			if (data.failure_mode !== null) {
				setBad(data);
				return undefined;
			}
			return data;
		},
	};
}

/** Draws the form that asks for the review of a draft. */
export function Submit({id, v, onDone}: {id: string; v: Schemas["Version"]; onDone: () => void}) {
	const [notes, setNotes] = useState(""),
		draft = useDraft();
	const act = useAction(async () => {
		const result = await draft.run("request_publish", {tool_id: id, notes}, v);
		if (result !== undefined) {
			const request = made(result).request_id;
			if (request) {
				doneThere(t.submitted);
				go(link("approvals", request));
			} else {
				done(t.submitted);
				onDone();
			}
		}
	});

	return (
		<Part title={t.submitTitle}>
			{v.approval_status !== "draft" ? (
				<p class="quiet">{t.notDraft(en.states[v.approval_status] ?? v.approval_status)}</p>
			) : (
				<Form label={t.submit} busy={act.busy} problem={act.problem} action={act.run}>
					<Area label={t.notes} hint={t.notesHint} value={notes} onValue={setNotes} rows={3} maxLength={2000} />
					{draft.bad ? <ResultView text={draft.bad.result} /> : null}
				</Form>
			)}
		</Part>
	);
}
