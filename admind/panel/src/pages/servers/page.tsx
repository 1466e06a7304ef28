/* Servers: groups of tools that share a name, secrets, hosts and limits. */
import type {PageProps} from "../../pages";
import {ServerList} from "./list";
import {ServerOne} from "./one";

export default function Servers({rest: [id], query}: PageProps) {
	return id === undefined ? <ServerList query={query} /> : <ServerOne id={id} />;
}
