"""choose: asks the person at the client to choose.

The answer is typed by a person and passed on by a client: this tool looks at
its action before its content. Where nobody can be asked the model is told how
to go on, so that the tool is of use with every client.
"""

from typing import Annotated, Optional

import mcpbox

OPTIONS_MAX = 20


def main(question: str,
         options: Annotated[list[str], "2 to 20, each of them different"],
         fallback: Annotated[Optional[str],
                             "the option to take if nobody can be asked"]
         = None):
    """Asks the person which of some options they want, in a form of their
    client, and returns what they chose.

    Args:
        question: what is to be decided, in a sentence or two
    """
    if not 2 <= len(options) <= OPTIONS_MAX or (
            len(set(options)) < len(options)):
        raise mcpbox.ToolError(f"give 2 to {OPTIONS_MAX} options, each of "
                               "them different")
    if fallback is not None and fallback not in options:
        raise mcpbox.ToolError("fallback must be one of the options")
    try:
        answer = mcpbox.elicit(question, {"choice": options})
    except mcpbox.ClientError as e:
        if fallback is not None:
            return {"choice": fallback, "by": "fallback"}
        raise mcpbox.ToolError(
            f"nobody could be asked ({e}): ask in the conversation, or call "
            "again with fallback") from None
    if not answer.accepted:
        return {"choice": None, "by": answer.action}
    return {"choice": answer.content["choice"], "by": "person"}
