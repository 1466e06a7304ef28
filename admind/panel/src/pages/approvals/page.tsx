/* Approvals: the list, the policy of review, and the review of one request. */
import type {PageProps} from "../../pages";
import {List} from "./list";
import {One} from "./one";
import {Policy} from "./policy";

/** Draws the page that the address names. */
export default function ({rest, query}: PageProps) {
	const at = rest[0];
	return at === undefined ? <List query={query} /> : at === "policy" ? <Policy /> : <One key={at} id={at} />;
}
