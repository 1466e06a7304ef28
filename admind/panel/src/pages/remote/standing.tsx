/* How a way in is, in words. */
import {en} from "../../en";
import {State} from "../../ui/notice";
import type {Way} from "./state";

const t = en.remote;

/** Draws whether it works as far as is known: a fault, a use, or neither. */
export function Standing({way}: {way: Way}) {
	if (way.fault !== "") return <State state={t.faulty} kind="bad" />;
	return way.usedAt ? <State state={t.works} kind="good" /> : <State state={t.unused} kind="info" />;
}
