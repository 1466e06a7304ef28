/*
 * Questions of tools to the person (elicitation).
 *
 * Attackers: the tool that asks. It chooses the text, the fields and the
 * address, and wants a password or a visit. So the title and the warning are
 * ours, its text is marked as its own, and its address is text to copy, never a
 * link.
 */
import {useEffect, useRef, useState} from "preact/hooks";
import {en} from "../../en";
import type {Question as Asked, Reply} from "../../mcp/client";
import {Copy} from "../../ui/copy";
import {Dialog} from "../../ui/dialog";
import {Form} from "../../ui/form";
import {Note} from "../../ui/notice";
import {SchemaForm, type Values} from "../../ui/schema";
import {Text} from "../../ui/text";

const t = en.playground;
const MESSAGE_MAX = 4000;

interface Waiting {
	n: number;
	question: Asked;
	reply: (reply: Reply) => void;
}

/** Keeps the questions that wait. `ask` adds one, and resolves once the person replied. */
export function useQuestions() {
	const [waiting, setWaiting] = useState<Waiting[]>([]);
	const next = useRef(0),
		all = useRef<Waiting[]>([]);

	function put(list: Waiting[]) {
		all.current = list;
		setWaiting(list);
	}
	/* A connection that ends asks nothing any more. */
	useEffect(() => () => all.current.forEach(w => w.reply({action: "cancel"})), []);
	return {
		first: waiting[0],
		ask: (question: Asked, signal: AbortSignal) =>
			new Promise<Reply>(done => {
				const n = next.current++;
				const reply = (r: Reply) => {
					put(all.current.filter(w => w.n !== n));
					done(r);
				};
				signal.addEventListener("abort", () => reply({action: "cancel"}), {once: true});
				put([...all.current, {n, question, reply}]);
			}),
	};
}

export type Ask = ReturnType<typeof useQuestions>["ask"];

/** Draws one question as a dialog. */
export function Question({asked: {question, reply}}: {asked: Waiting}) {
	const [values, setValues] = useState<Values>({});
	const page = question.url !== undefined;

	return (
		<Dialog title={t.question} onClose={() => reply({action: "cancel"})}>
			<Note kind="warn">
				<p>{page ? t.pageWhy : t.questionWhy}</p>
			</Note>
			<pre class="plain" tabIndex={0} aria-label={t.question}>
				<Text text={question.message} max={MESSAGE_MAX} />
			</pre>
			{page ? <Copy label={t.address} text={question.url!} /> : null}
			<Form
				label={page ? t.visited : t.answer}
				action={() => reply(page ? {action: "accept"} : {action: "accept", content: values})}
				onCancel={() => reply({action: "cancel"})}
			>
				{page ? null : <SchemaForm schema={question.schema} values={values} onValues={setValues} />}
				<p>
					<button type="button" onClick={() => reply({action: "decline"})}>
						{t.decline}
					</button>
				</p>
			</Form>
		</Dialog>
	);
}
