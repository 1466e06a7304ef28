/* Runs an approved tool with a form that its schema makes (docs/decisions/0111). */
import {useState} from "preact/hooks";
import {api, type Schemas} from "../../api/client";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {link} from "../../route";
import {Form} from "../../ui/form";
import {jsonMembers} from "../../ui/json";
import {Loading, Note, ProblemNote} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {ResultView} from "../../ui/result";
import {SchemaForm, type Values} from "../../ui/schema";
import {Text} from "../../ui/text";

const t = en.tools;

export function ToolRun({id}: {id: string}) {
	const read = useRead("/api/tools/{id}", {path: {id}}),
		tool = read.data?.tool;
	const version = useRead(tool?.serving_version == null ? null : "/api/tools/{id}/versions/{id2}", {
		path: {id, id2: String(tool?.serving_version)},
	});
	const [values, setValues] = useState<Values>({}),
		[result, setResult] = useState<Schemas["OwnCallResult"]>();
	const act = useAction(async () => {
		setResult(undefined);
		setResult((await api.post("/api/calls", {body: {name: tool!.exposed_name, arguments: values}})).data);
	});

	return (
		<Page
			title={t.runTitle}
			heading={
				tool ? (
					<>
						{t.run} <Text text={tool.exposed_name} />
					</>
				) : undefined
			}
			back={[link("tools", id), t.backToOne]}
			intro={t.runIntro}
		>
			<ProblemNote problem={read.problem ?? version.problem} again={read.reload} />
			{tool && !tool.callable ? (
				<Note kind="warn">
					<p>{t.notCallable}</p>
				</Note>
			) : null}
			{version.data === undefined ? (
				read.problem || version.problem || (tool && tool.serving_version == null) ? null : (
					<Loading />
				)
			) : (
				<div class="columns">
					<Part title={t.arguments}>
						<Form label={t.run} busy={act.busy} problem={act.problem} action={act.run} disabled={!tool?.callable}>
							<SchemaForm schema={version.data.input_schema} source={jsonMembers(version.text ?? "{}").get("input_schema")} values={values} onValues={setValues} />
						</Form>
					</Part>
					<Part title={en.result.result} actions={result ? <a href={link("calls", result.execution)}>{t.record}</a> : null}>
						{act.busy ? (
							<Loading label={t.running} />
						) : result === undefined ? (
							<p class="quiet">{t.noResult}</p>
						) : (
							<div role="status">
								{result.failure_mode ? (
									<Note kind="bad">
										<p>
											{Object.hasOwn(en.failures, result.failure_mode)
												? en.failures[result.failure_mode]
												: result.failure_mode}
										</p>
									</Note>
								) : null}
								<ResultView text={result.result} />
							</div>
						)}
					</Part>
				</div>
			)}
		</Page>
	);
}
