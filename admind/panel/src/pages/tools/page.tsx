/* Tools: the list, one tool with its versions, two versions compared, a run, and the editor. Prompts and resources have the same pages. */
import type {PageProps} from "../../pages";
import {ToolCompare} from "./compare";
import {ToolEdit, ToolNew} from "./edit";
import {ToolList} from "./list";
import {ToolOne} from "./one";
import {ToolRun} from "./run";
import {ToolVersion} from "./version";

export default function Tools({rest: [id, what, version], query}: PageProps) {
	if (id === undefined) return <ToolList objects={["tool"]} query={query} />;
	if (id === "new") {
		const object = query.get("object"),
			server = query.get("server") ?? "";
		const kind = object === "prompt" || object === "resource" ? object : "tool";
		return <ToolNew key={kind} object={kind} server={server} />;
	}
	switch (what) {
		case "compare":
			return <ToolCompare id={id} a={query.get("a")} b={query.get("b")} />;
		case "versions":
			return <ToolVersion id={id} version={version ?? ""} />;
		case "run":
			return <ToolRun id={id} />;
		case "edit":
			return <ToolEdit key={id} id={id} />;
		default:
			return <ToolOne id={id} />;
	}
}
