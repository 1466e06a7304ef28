/* One version whole. */
import {useRead} from "../../api/use";
import {en} from "../../en";
import {link} from "../../route";
import {Loading, ProblemNote} from "../../ui/notice";
import {Page, Part} from "../../ui/page";
import {Text} from "../../ui/text";
import {Content} from "./content";

const t = en.tools;

export function ToolVersion({id, version}: {id: string; version: string}) {
	const read = useRead("/api/tools/{id}/versions/{id2}", {path: {id, id2: version}});
	const v = read.data;
	return (
		<Page
			title={t.versionTitle(version)}
			back={[link("tools", id), t.backToOne]}
			heading={
				v ? (
					<>
						<Text text={v.exposed_name} /> {t.versionTitle(version)}
					</>
				) : undefined
			}
		>
			<ProblemNote problem={read.problem} again={read.reload} />
			{v ? (
				<Part title={t.content}>
					<Content v={v} source={read.text ?? "{}"} />
				</Part>
			) : read.problem ? null : (
				<Loading />
			)}
		</Page>
	);
}
