"""The text side of a command: argv out of the spec and the arguments, the
result out of what it printed. command.c runs it; the command itself is
another process and can't change anything here.

A spec is {"argv": [text ...], "stdin"?: "{name}", "env"?: {NAME: text},
"ok_exit_codes"?: [integer ...]}: what stands after the program's name, and there
is no shell; an exit code of that list is a normal end, as 0 is. "{name}" in it is
replaced by the argument of that name: text as it is, everything else as JSON.
An item whose argument was not given (or is null) is left out. Any other brace
is itself.
"""

import base64
import json
import re
import resource
import signal

import mcpbox_results

KIND_INSPECT = 2            # enum context_kind
ARGV_MAX, ENV_MAX, TEXT_MAX, CODES_MAX = 256, 64, 4096, 32     # of a spec
ITEM_MAX = 128 * 1024 - 1   # the kernel's MAX_ARG_STRLEN with its NUL
STDERR_MAX = 64 * 1024      # it explains; stdout is the result
ROOM = 1024                 # of a result, for what is not output

#: All that a command finds in its environment, beside the spec's own names.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp",
               "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb",
               "SSL_CERT_DIR": "/etc/ssl/certs"}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class BadSpec(Exception):
    """The version's spec cannot be run."""


class BadArgument(Exception):
    """An argument has no form that a command line can take."""


def _text(value, what):
    if not isinstance(value, str) or "\0" in value:
        raise BadSpec(f"{what} must be text without a NUL character")
    if len(value.encode("utf-8", "surrogatepass")) > TEXT_MAX:
        raise BadSpec(f"{what} is longer than {TEXT_MAX} bytes")
    return value


def parse(raw):
    """(argv, stdin or None, env, exit codes that are no errors) of a spec."""
    try:
        spec = json.loads(raw)
    except ValueError as e:
        raise BadSpec(f"the spec is not JSON: {e}") from None
    if not isinstance(spec, dict) or not isinstance(spec.get("argv"), list):
        raise BadSpec('the spec must be an object with "argv", a list of '
                      "texts: what stands behind the program's name")
    unknown = sorted(set(spec) - {"argv", "stdin", "env", "ok_exit_codes"})
    if unknown:
        raise BadSpec(f"the spec has the unknown key {unknown[0]!r}; it may "
                      "have argv, stdin, env and ok_exit_codes")
    if len(spec["argv"]) > ARGV_MAX:
        raise BadSpec(f"argv has more than {ARGV_MAX} items")
    argv = [_text(item, f"argv[{i}]") for i, item in enumerate(spec["argv"])]
    stdin = spec.get("stdin")
    if stdin is not None and not _PLACE.fullmatch(_text(stdin, "stdin")):
        raise BadSpec('stdin must be one placeholder, like "{text}"')
    env = spec.get("env") or {}
    if not isinstance(env, dict) or len(env) > ENV_MAX:
        raise BadSpec(f"env must be an object of at most {ENV_MAX} texts")
    for name, value in env.items():
        if not _NAME.fullmatch(name):
            raise BadSpec(f"env: {name!r} is no name of a variable")
        _text(value, f"env.{name}")
    codes = spec.get("ok_exit_codes", [])
    if not isinstance(codes, list) or len(codes) > CODES_MAX or not all(
            type(n) is int and 1 <= n <= 255 for n in codes):
        raise BadSpec(f"ok_exit_codes must be at most {CODES_MAX} integers from 1 to 255")
    return argv, stdin, env, frozenset(codes)


def names(argv, stdin):
    """All placeholders, sorted."""
    return sorted({name for item in (*argv, stdin or "")
                   for name in _PLACE.findall(item)})


def _value(name, value):
    text = value if isinstance(value, str) else json.dumps(
        value, ensure_ascii=False, separators=(",", ":"))
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadArgument(f"{name} holds half of a surrogate pair, which is "
                          "no character") from None
    return raw


def _fill(item, given):
    """One item with its arguments in place; None if one was not given."""
    out, at = [], 0
    for match in _PLACE.finditer(item):
        name = match.group(1)
        if given.get(name) is None:
            return None
        value = _value(name, given[name])
        if b"\0" in value:
            raise BadArgument(f"{name} holds a NUL character, which no "
                              "command line can")
        out += [item[at:match.start()].encode("utf-8", "surrogatepass"),
                value]
        at = match.end()
    out.append(item[at:].encode("utf-8", "surrogatepass"))
    filled = b"".join(out)
    if len(filled) > ITEM_MAX:
        raise BadArgument(f"an item of the command line would be "
                          f"{len(filled)} bytes; at most {ITEM_MAX} are "
                          "possible. Pass long text as the spec's stdin.")
    return filled


def command_line(argv, stdin, env, given):
    """(argv behind the name, stdin or None, environment) as bytes."""
    items = [_fill(item, given) for item in argv]
    data = None
    if stdin is not None:
        name = _PLACE.fullmatch(stdin).group(1)
        value = given.get(name)
        data = b"" if value is None else _value(name, value)
    pairs = [f"{k}={v}".encode("utf-8", "surrogatepass")
             for k, v in {**ENVIRONMENT, **env}.items()]
    return [item for item in items if item is not None], data, pairs


class _Stream:
    """What one stream held: kept bytes and how many there were."""

    def __init__(self, kept, total):
        self.kept, self.total = kept, total

    def cut(self, n):
        self.kept = self.kept[:n]

    def text(self):
        """(text, are these the bytes): a character that the cut tore apart
        goes; what is no UTF-8 is shown with U+FFFD in its place."""
        try:
            return self.kept.decode("utf-8"), True
        except UnicodeDecodeError as e:
            if (self.total > len(self.kept)
                    and e.reason == "unexpected end of data"):
                self.cut(e.start)
                return self.kept.decode("utf-8"), True
        return self.kept.decode("utf-8", "replace"), False


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _content(end, out, err, prefix):
    """The result for reading: how it ended, stdout, stderr."""
    parts = []
    if prefix:
        parts.append(prefix)
    text = out.text()[0]
    if out.total > len(out.kept):
        text += f"\n[{out.total - len(out.kept)} more bytes were printed]"
    if text or not parts:
        parts.append(text)
    blocks = [{"type": "text", "text": "\n".join(parts)}]
    said = err.text()[0]
    if said:
        if err.total > len(err.kept):
            said += f"\n[{err.total - len(err.kept)} more bytes]"
        blocks.append({"type": "text", "text": "--- stderr ---\n" + said})
    return blocks


def _structured(end, out, err):
    found = {"exit_code": end.get("exit_code")}
    if "signal" in end:
        found["signal"] = end["signal"]
    for name, stream in (("stdout", out), ("stderr", err)):
        text, exact = stream.text()
        found[name] = text
        if not exact:
            found[name + "_base64"] = base64.b64encode(stream.kept).decode()
        found[name + "_truncated"] = stream.total > len(stream.kept)
    found["duration_ms"] = end["duration_ms"]
    return found


def body(end, out, err, prefix, limit):
    """The CallToolResult, cut until it fits."""
    while True:
        result = {"content": _content(end, out, err, prefix),
                  "structuredContent": _structured(end, out, err),
                  "isError": bool(prefix)}
        raw = json.dumps(result, ensure_ascii=False,
                         separators=(",", ":")).encode("utf-8", "replace")
        if len(raw) <= limit or not (out.kept or err.kept):
            return raw
        # Escapes make bytes longer than they were: cut by what it came to.
        part = max(0.0, (limit - ROOM) / len(raw)) * 0.95
        for stream in (out, err):
            stream.cut(int(len(stream.kept) * part))


def _limit(name, value, unit):
    return f"The command met a limit: the limit {name} is {value} {unit}."


def _ended(status, cpu_ms, cpu_limit_ms, fine):
    """(how it ended, failure's name or None, sentence)"""
    signalled = status & 0x7f
    if not signalled:
        code = status >> 8 & 0xff
        if code == 0 or code in fine:
            return {"exit_code": code}, None, ""
        return ({"exit_code": code}, "EXCEPTION",
                f"The command ended with exit code {code}.")
    name = _signal_name(signalled)
    end = {"exit_code": None, "signal": name}
    # SIGKILL a second after SIGXCPU that it caught: limits.c
    if signalled == signal.SIGXCPU or (signalled == signal.SIGKILL and
                                       cpu_ms >= cpu_limit_ms):
        return end, "LIMIT", _limit("cpu_ms", cpu_limit_ms, "ms")
    if signalled == signal.SIGXFSZ:
        return end, "LIMIT", _limit(
            "file_bytes", resource.getrlimit(resource.RLIMIT_FSIZE)[0],
            "bytes")
    if signalled == signal.SIGKILL:
        return end, "LIMIT", ("The command was killed by the kernel (SIGKILL),"
                              " most likely for want of memory.")
    if signalled == signal.SIGSYS:
        return end, "EXCEPTION", ("The command made a system call that the "
                                  "sandbox forbids.")
    return end, "EXCEPTION", f"The command was ended by {name}."


def _missing(name, allowed):
    if not allowed:
        return (f"{name} cannot be run: no programs are configured here (the "
                "setting commands of mcpbox-sandboxd-spawn)")
    return (f"{name} is not on the list of programs that commands may run; "
            f"allowed are {', '.join(sorted(allowed))}")


def _error(e):
    return {"ok": False, "error": {
        "type": type(e).__name__, "message": str(e), "line": None,
        "column": None, "code_context": []}}


def inspect_spec(spec, name, digest, allowed):
    """The inspection object: schema of the arguments, and what would run."""
    try:
        argv, stdin, _, _ = parse(spec)
        if digest is None:
            raise BadSpec(_missing(name, allowed))
    except BadSpec as e:
        return _error(e)
    wanted = names(argv, stdin)
    return {"ok": True, "doc": None, "is_async": False,
            "executable_digest": digest,
            "input_schema": {
                "type": "object",
                "properties": {n: {"type": "string"} for n in wanted},
                "required": wanted, "additionalProperties": False}}


def _run(spec, arguments, path, limit, cpu_limit_ms):
    """(failure, body)"""
    import _mcpbox
    argv, stdin, env, fine = parse(spec)
    line, data, pairs = command_line(argv, stdin, env, json.loads(arguments))
    try:
        status, out, out_n, err, err_n, duration, cpu = _mcpbox.command(
            path, line, pairs, data, limit, min(limit, STDERR_MAX))
    except OSError as e:
        if e.errno == 7:    # E2BIG
            raise BadArgument("the command line is too long; pass long text "
                              "as the spec's stdin") from None
        if e.errno == 11:   # EAGAIN
            return _mcpbox.LIMIT, mcpbox_results.error_body(_limit(
                "processes", resource.getrlimit(resource.RLIMIT_NPROC)[0],
                "processes and threads, one of them the platform's"), limit)
        raise
    end, failure, prefix = _ended(status, cpu, cpu_limit_ms, fine)
    end["duration_ms"] = duration
    return (0 if failure is None else getattr(_mcpbox, failure),
            body(end, _Stream(out, out_n), _Stream(err, err_n), prefix, limit))


def start(kind, spec, arguments, name, path, digest, wanted, allowed, limit,
          cpu_limit_ms):
    """command's one entry: pycommand.c calls it; it always ends in finish().
    digest: of the program here, None if there is none; wanted: of the one
    that was approved."""
    import _mcpbox
    if kind == KIND_INSPECT:
        _mcpbox.finish(0, mcpbox_results.encode(
            inspect_spec(spec, name, digest, allowed), limit))
        return
    try:
        if digest is None:
            raise BadSpec(_missing(name, allowed))
        if digest != wanted:
            raise BadSpec(f"{name} is not the program that was approved any "
                          f"more: its SHA-256 is {digest}, approved was "
                          f"{wanted or 'none'}. Make a new version of the "
                          "tool and have it approved.")
        failure, result = _run(spec, arguments, path, limit, cpu_limit_ms)
    except BadSpec as e:
        failure = _mcpbox.BAD_CODE
        result = mcpbox_results.error_body(str(e), limit)
    except BadArgument as e:
        failure = _mcpbox.INVALID_ARGUMENTS
        result = mcpbox_results.error_body(str(e), limit)
    except MemoryError:
        failure = _mcpbox.LIMIT
        result = mcpbox_results.error_body(
            "The output does not fit into the call's memory.", limit)
    except OSError as e:
        failure = _mcpbox.EXCEPTION
        result = mcpbox_results.error_body(
            f"{name} could not be started: {e.strerror}", limit)
    _mcpbox.finish(failure, result)
