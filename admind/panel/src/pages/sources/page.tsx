/* Other MCP servers as sources of tools. */
import type {PageProps} from "../../pages";
import {SourceList} from "./list";
import {SourceOne} from "./one";

export default function Sources({rest: [id], query}: PageProps) {
	return id === undefined ? <SourceList query={query} /> : <SourceOne id={id} />;
}
