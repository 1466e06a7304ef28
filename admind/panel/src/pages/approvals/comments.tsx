/* What reviewers say to each other about a request. The author's model does not read it. */
import {useState} from "preact/hooks";
import {api} from "../../api/client";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {meReviews} from "../../me";
import {Area, Form} from "../../ui/form";
import {done, Loading, ProblemNote} from "../../ui/notice";
import {Part} from "../../ui/page";
import {Text, Time} from "../../ui/text";

/** Draws the thread, and a field for those who may add to it. */
export function Comments({id}: {id: string}) {
	const t = en.approvals,
		thread = useRead("/api/approvals/{id}/comments", {path: {id}});
	const [text, setText] = useState("");
	const act = useAction(async () => {
		await api.post("/api/approvals/{id}/comments", {path: {id}, body: {text}});
		setText("");
		thread.reload();
		done(t.commented);
	});

	return (
		<Part title={t.comments}>
			<ProblemNote problem={thread.problem} again={thread.reload} />
			{thread.data === undefined ? (
				thread.loading ? (
					<Loading />
				) : null
			) : thread.data.items.length === 0 ? (
				<p class="quiet">{t.noComments}</p>
			) : (
				<ul class="thread">
					{thread.data.items.map(c => (
						<li key={c.id}>
							<p class="quiet">
								<strong>
									<Text text={c.author} />
								</strong>{" "}
								<Time at={c.at} />
							</p>
							<p class="lines">
								<Text text={c.text} />
							</p>
						</li>
					))}
				</ul>
			)}
			{meReviews() ? (
				<div id="comment">
					<Form label={t.comment} busy={act.busy} problem={act.problem} action={act.run} disabled={text.trim() === ""}>
						<Area label={t.commentLabel} hint={t.commentHint} value={text} onValue={setText} rows={3} maxLength={2000} />
					</Form>
				</div>
			) : null}
		</Part>
	);
}
