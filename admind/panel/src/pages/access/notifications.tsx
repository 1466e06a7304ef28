/* Targets that are told when requests wait, and a test of each. They are named in the access document. */
import {useState} from "preact/hooks";
import {api} from "../../api/client";
import {useAction, usePages} from "../../api/use";
import {en} from "../../en";
import {meAdministers} from "../../me";
import {done, Empty, Note, ProblemNote} from "../../ui/notice";
import {List} from "../../ui/table";
import {count, Text, Time} from "../../ui/text";

const t = en.access;

export function Notifications() {
	const list = usePages("/api/notifications"),
		[failed, setFailed] = useState<string>();
	const test = useAction(async (target: string) => {
		setFailed(undefined);
		const {data} = await api.post("/api/notifications/test", {body: {target}});
		if (data.sent) done(t.testSent(target));
		else setFailed(`${target}: ${data.error}`);
	});
	return (
		<>
			<ProblemNote problem={test.problem} />
			{failed ? (
				<Note kind="bad">
					<p>
						{t.testNotSent} <Text text={failed} max={500} />
					</p>
				</Note>
			) : null}
			<List
				label={t.tabs.notifications}
				list={list}
				keyOf={n => n.target}
				empty={
					<Empty title={t.noTargets}>
						<p>{t.noTargetsWhy}</p>
					</Empty>
				}
				columns={[
					{
						name: t.target,
						kind: "wide",
						cell: n => (
							<>
								<Text text={n.target} />
								{n.error ? (
									<div class="error plain-weight">
										<Text text={n.error} max={400} />
									</div>
								) : null}
							</>
						),
					},
					{name: t.untold, kind: "number", cell: n => count(n.waiting)},
					{name: t.told, kind: "number", cell: n => count(n.sent)},
					{name: t.sent, cell: n => (n.sent_at ? <Time at={n.sent_at} /> : t.never)},
					{name: t.notBefore, cell: n => (n.next_at ? <Time at={n.next_at} /> : t.atOnce)},
					...(meAdministers()
						? [
								{
									name: en.actions,
									cell: (n: {target: string}) => (
										<button type="button" class="small" aria-disabled={test.busy} onClick={() => test.run(n.target)}>
											{t.sendTest}
										</button>
									),
								},
							]
						: []),
				]}
			/>
		</>
	);
}
