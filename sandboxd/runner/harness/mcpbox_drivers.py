"""Drivers: modules of ours that make a call's result from a specification,
where a tool of kind code has a main of its own.

A driver is a module of the harness with

    main(spec, arguments, secrets)  -> a value as a tool's main returns it,
                                       a Body, or an awaitable of either
    inspect(spec)                   -> a JSON object, for CONTEXT_INSPECT;
                                       optional

spec and arguments are JSON values, secrets is {name: value}. What goes wrong
and is somebody else's (the other server's, the caller's, a missing grant) is a
Failure; mcpbox.ToolError and every other exception say `exception`.

One that this build does not have is no mystery: the call says so.
"""

import _mcpbox
import json
import sys

#: enum runner_driver
HTTP, MCP, MODULE, KEYS, TELEMETRY, NOTIFY = 1, 2, 3, 4, 5, 6
MODULES = {HTTP: "mcpbox_httpkind", MCP: "mcpbox_mcp", MODULE: "mcpbox_wheel",
           KEYS: "mcpbox_keys", TELEMETRY: "mcpbox_telemetry", NOTIFY: "mcpbox_notify"}


class Body:
    """The whole answer as it is to be: a CallToolResult with its content,
    structuredContent and isError, or what the call's form is instead."""

    def __init__(self, value):
        self.value = value


class Failure(Exception):
    """Ends the call with a failure of its own and this text."""

    failure = _mcpbox.EXCEPTION


class Upstream(Failure):
    """The other server answered with an error, or nothing of use."""

    failure = _mcpbox.UPSTREAM


class UpstreamChanged(Failure):
    """The other server's tool is not what was imported."""

    failure = _mcpbox.UPSTREAM_CHANGED


class InvalidArguments(Failure):
    """The caller's arguments do not fit the specification."""

    failure = _mcpbox.INVALID_ARGUMENTS


class MissingGrant(Failure):
    """A host that nobody granted, known before any connect."""

    failure = _mcpbox.MISSING_GRANT


class Timeout(Failure):
    """No whole answer in the specification's time."""

    failure = _mcpbox.TIMEOUT


class Limit(Failure):
    """A limit of the specification or of the call was met."""

    failure = _mcpbox.LIMIT


def credential(name, value):
    """A secret as it may stand in a request that a specification describes:
    not what OAuth of a source keeps (mcpbox_oauth.py), whose tokens go to
    that source's server alone."""
    if value.lstrip().startswith("{"):
        try:
            made = json.loads(value)
        except (ValueError, RecursionError):
            return value
        if not made.keys().isdisjoint(("token_endpoint", "pending",
                                       "registration")):
            raise Failure(f"the secret {name} has the tokens of a source, "
                          "which are for that source alone")
    return value


def find(driver):
    """The driver's module, which the zygote has loaded."""
    name = MODULES.get(driver)
    module = sys.modules.get(name)
    if module is None or not hasattr(module, "main"):
        raise Failure(f"this installation has no driver {name or driver}")
    return module


def inspect(driver, spec):
    """What a driver says of a specification, as an inspection object."""
    try:
        said = getattr(find(driver), "inspect", None)
        if said is None:
            raise Failure("specifications of this kind are not inspected")
        return said(json.loads(spec.decode("utf-8")))
    except Exception as e:
        return {"ok": False, "error": {
            "type": type(e).__name__, "message": str(e), "line": None,
            "column": None, "code_context": []}}
