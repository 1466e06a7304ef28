/* Failures of the MCP client as the panel's own refusals, which every form shows with their remedy. */
import {Refusal} from "../../api/client";
import type {McpFailure} from "../../mcp/failure";

/** Returns the failure as a Refusal. */
export function refused(e: McpFailure): Refusal {
	return new Refusal(e.problem);
}
