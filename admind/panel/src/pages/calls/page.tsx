/* Calls: the list with its filters and figures, and one call whole. */
import type {PageProps} from "../../pages";
import {CallList} from "./list";
import {CallOne} from "./one";

export default function Calls({rest: [id], query}: PageProps) {
	return id === undefined ? <CallList query={query} /> : <CallOne id={id} />;
}
