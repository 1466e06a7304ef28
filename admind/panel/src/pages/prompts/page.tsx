/* Prompts, resources and templates: the objects beside tools. Their pages are a tool's (#/tools/ID). */
import type {PageProps} from "../../pages";
import {ToolList} from "../tools/list";

export default function Prompts({query}: PageProps) {
	return <ToolList objects={["prompt", "resource", "template"]} query={query} />;
}
