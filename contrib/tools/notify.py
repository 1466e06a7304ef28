"""notify: a message to a person's phone, through ntfy.sh.

Whoever knows the topic can read along, so it is a secret: an administrator
sets it, the call gets it, and a mark stands for it in everything that leaves.
Without a value the call fails before any code runs. The version has `confirm:
true`: somebody reads each message before it goes.
"""

from typing import Annotated, Literal

import mcpbox

SERVICE = "https://ntfy.sh/"
TEXT_MAX = 4000             # bytes; ntfy makes a file of what is longer
PRIORITY = {"low": 2, "default": 3, "high": 4}


def main(message: str, title: str = "",
         priority: Annotated[Literal["low", "default", "high"],
                             "high rings, low is silent"] = "default") -> str:
    """Sends a notification to the person's phone. An administrator confirms
    each one.

    Args:
        message: a few sentences
        title: shown above the message
    """
    if not message.strip() or len(message.encode()) > TEXT_MAX:
        raise mcpbox.ToolError(f"message must have 1 to {TEXT_MAX} bytes")
    try:
        r = mcpbox.http.post(SERVICE, timeout=10, json={
            "topic": mcpbox.secrets["NTFY_TOPIC"], "message": message,
            "title": title, "priority": PRIORITY[priority]})
        sent = r.raise_for_status().json()
    except mcpbox.http.StatusError as e:
        raise mcpbox.ToolError(f"ntfy.sh refused the message with status "
                               f"{e.status_code}: nothing was sent") from None
    except mcpbox.http.ConnectError as e:
        raise mcpbox.ToolError(f"ntfy.sh cannot be reached ({e}): nothing was "
                               "sent, try again later") from None
    except mcpbox.http.Error as e:
        raise mcpbox.ToolError(f"ntfy.sh gave no answer ({e}): the message "
                               "may have been sent") from None
    return f"sent as {sent.get('id', 'unknown')}"
