/* Tools: the list, one tool with its versions, two versions compared, a run, and the editor. Prompts and resources have the same pages. */
import type {PageProps} from "../../pages";
import {ToolCompare} from "./compare";
import {ToolEdit, ToolNew} from "./edit";
import {ToolList} from "./list";
import {ObjectNew} from "./object";
import {ToolOne} from "./one";
import {ToolRun} from "./run";
import {ToolVersion} from "./version";

export default function Tools({rest: [id, what, version], query}: PageProps) {
	if (id === undefined) return <ToolList objects={["tool"]} query={query} />;
	if (id === "new") {
		const object = query.get("object"),
			server = query.get("server") ?? "";
		return object === "prompt" || object === "resource" ? (
			<ObjectNew key={object} object={object} server={server} />
		) : (
			<ToolNew server={server} />
		);
	}
	switch (what) {
		case "compare":
			return <ToolCompare id={id} a={query.get("a")} b={query.get("b")} />;
		case "versions":
			return <ToolVersion id={id} version={version ?? ""} />;
		case "run":
			return <ToolRun id={id} />;
		case "edit":
			return <ToolEdit id={id} />;
		default:
			return <ToolOne id={id} />;
	}
}
