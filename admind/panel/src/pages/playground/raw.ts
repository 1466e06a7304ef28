/* The text of a message's result as it was sent: a parser would round its numbers. */
import {jsonMembers} from "../../ui/json";

/** Returns the text of the member `result`; the whole message where that can't be told. */
export function resultText(message: string): string {
	try {
		return jsonMembers(message).get("result") ?? message;
	} catch {
		return message;
	}
}
