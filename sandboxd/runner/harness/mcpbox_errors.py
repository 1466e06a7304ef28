"""What went wrong, told so that the author of a tool can mend it."""

import errno
import os
import resource
import traceback

from mcpbox_hide import hidden

STDOUT_SHOWN = 8 * 1024     # characters of captured output in an error
TRACE_SHOWN = 12 * 1024     # characters of a traceback
CONTEXT_LINES = 2           # around the line at fault
OURS = "<mcpbox "           # file names of the harness


def safe_str(e):
    try:
        return str(e)
    except BaseException:
        return f"<{type(e).__name__} whose text cannot be made>"


def context(source, line):
    """Numbered lines around one, which is marked. Lines as Python counts them:
    str.splitlines() ends some at more characters."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not line or line > len(lines):
        return []
    first = max(1, line - CONTEXT_LINES)
    last = min(len(lines), line + CONTEXT_LINES)
    return [f"{'>' if n == line else ' '} {n:4} | {lines[n - 1]}"
            for n in range(first, last + 1)]


def _place(e, filename):
    """(line, column) of the innermost frame of the tool's own file."""
    if isinstance(e, SyntaxError) and e.filename == filename:
        return e.lineno, e.offset
    line = column = None
    for frame in traceback.extract_tb(e.__traceback__):
        if frame.filename == filename:
            line = frame.lineno
            column = getattr(frame, "colno", None)
    return line, None if column is None else column + 1


def describe(e, filename, source):
    """The error as a dictionary: type, message, line, column, code_context."""
    line, column = _place(e, filename)
    message = safe_str(e)
    if isinstance(e, SyntaxError):
        message = e.msg or message
    return {"type": type(e).__name__, "message": message, "line": line,
            "column": column, "code_context": context(source, line)}


def _ours(frame):
    """Ours, or the event loop's on the way from us to the tool."""
    return frame.filename.startswith(OURS) or (
        frame.name == "run_until_complete"
        and frame.filename.endswith("asyncio/base_events.py"))


def _trim(exc):
    """Takes our own frames out of a traceback and all it is chained to."""
    seen = set()
    todo = [exc]
    while todo:
        te = todo.pop()
        if te is None or id(te) in seen:
            continue
        seen.add(id(te))
        te.stack = traceback.StackSummary.from_list(
            [f for f in te.stack if not _ours(f)])
        todo += [te.__cause__, te.__context__]
        todo += getattr(te, "exceptions", None) or []


def trace(e):
    """The traceback without our frames."""
    try:
        te = traceback.TracebackException.from_exception(e, compact=True)
        _trim(te)
        text = "".join(te.format())
    except BaseException:
        return ""
    if not (te.stack or te.__cause__ or te.__context__
            or getattr(te, "exceptions", None)):
        return ""       # all of it was ours, and the message stands above
    if len(text) > TRACE_SHOWN:
        text = hidden(text)
        half = TRACE_SHOWN // 2
        text = text[:half] + "\n  [...]\n" + text[-half:]
    return text.rstrip()


def _chain(e):
    """The exception and what it stands for, at most a few."""
    seen = []
    while e is not None and e not in seen and len(seen) < 8:
        seen.append(e)
        e = e.__cause__ or e.__context__
    return seen


#: Why a secret or a host is not there, in an inspection and in a test.
NO_SECRET = (
    "is not there while the code is inspected: read secrets within main",
    "is not there: mcpbox_test_code runs code without secrets, whatever its "
    "version names; calls of the approved version have them")
NO_NETWORK = (
    "There is no network while the code is inspected: connect within main.",
    "mcpbox_test_code runs code without network, whatever its version "
    "declares and its server was granted: calls of the approved version "
    "have it.")
#: The same in a call whose version declares hosts: sandboxd adds a line for
#: each that was refused.
OTHER_HOSTS = (
    "A tool reaches the hosts that its version names in `requires` and that "
    "its server was granted; for each refused host this error says which of "
    "the two is missing.")
#: And in one whose version declares none.
no_network = (
    "This tool's version declares no hosts, so it has no network: name the "
    "host in `requires` (mcpbox_update_tool); if its server was not granted "
    "it, ask with mcpbox_request_network_access.")


def hint(e):
    """What a tool can't know: why the sandbox said no, and what to do."""
    for x in _chain(e):
        if not isinstance(x, OSError):
            continue
        frames = traceback.extract_tb(x.__traceback__)
        last = frames[-1] if frames else None
        if last and last.name in ("_execute_child", "_execvpe", "_posix_spawn"):
            return ["A tool in Python can't start other programs: there are "
                    "none in its sandbox. A tool of kind command runs one of "
                    "the programs that are configured."]
        if x.errno == errno.ENOSYS and last and "flock" in (last.line or ""):
            return ["Files have no flock here. Processes of one call exclude "
                    "each other by multiprocessing's locks; nobody else can "
                    "have a file of this call open."]
        if type(x).__name__ == "gaierror" or (
                x.errno in (errno.EPERM, errno.EACCES, errno.EAFNOSUPPORT)
                and last and ("connect" in (last.line or "")
                              or "socket" in (last.line or ""))):
            return [no_network]
    return []


def http_info(e):
    """Status, address and start of the body of a failed HTTP request."""
    status = getattr(e, "code", None)
    if type(e).__name__ in ("HTTPError", "HTTPStatusError") and hasattr(
            e, "response"):
        return _response(e.response)
    if type(e).__name__ != "HTTPError" or not isinstance(status, int):
        return []
    out = [f"HTTP status: {status}"]
    url = getattr(e, "url", None)
    if isinstance(url, str):
        out.append(f"URL: {hidden(url)[:500]}")
    try:
        body = e.read(1000).decode("utf-8", "replace")
        out.append("Body: " + hidden(body, torn=len(body) > 900))
    except Exception:
        pass
    return out


def _response(r):
    """The same of an exception of requests or httpx."""
    out = []
    try:
        out.append(f"HTTP status: {int(r.status_code)}")
        out.append(f"URL: {hidden(str(r.url))[:500]}")
        body = hidden(str(r.text)[:4000], torn=True)
        out.append("Body: " + body[:1000])
    except Exception:
        pass
    return out


def process_limit(e):
    """Is this what fork() or a new thread says at the call's limit? A socket
    that would block raises the same exception as fork(), so the line at fault
    is looked at; a thread may also lack memory, so a fork is tried."""
    if not isinstance(e, BlockingIOError):
        return (isinstance(e, RuntimeError)
                and "start new thread" in safe_str(e) and not _can_fork())
    frames = traceback.extract_tb(e.__traceback__)
    return bool(frames) and "fork" in (frames[-1].line or "") or not _can_fork()


def _can_fork():
    try:
        pid = os.fork()
    except OSError:
        return False
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def _limit(name, value, unit):
    """As sandboxd says it, names and units of common/version/limit.h."""
    return f"the limit {name} is {value} {unit}"


def process_text():
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    return (_limit("processes", most, "processes and threads")
            + ", two of them the platform's. It is the tool's limit, its "
            "server's, or what the setting memory_budget leaves of it")


def _full_text():
    """Which of its two limits /tmp has reached."""
    try:
        fs = os.statvfs("/tmp")
    except OSError:
        return None
    if fs.f_favail == 0 and fs.f_bavail > 0:
        return _limit("tmp_inodes", fs.f_files, "files and directories")
    return _limit("tmp_bytes", fs.f_blocks * fs.f_frsize, "bytes")


#: What limit_met said last: by the time of the report things may have changed.
told = None


def limit_met(e):
    """The limit of the call that an exception stands for, in words, or None.
    A tool can raise what it likes: it is told about itself."""
    global told
    number = e.errno if isinstance(e, OSError) else None
    found = None
    if isinstance(e, MemoryError):
        found = _limit("memory_bytes",
                       resource.getrlimit(resource.RLIMIT_AS)[0], "bytes")
    elif number == errno.EFBIG:
        found = _limit("file_bytes",
                       resource.getrlimit(resource.RLIMIT_FSIZE)[0], "bytes")
    elif number in (errno.ENOSPC, errno.EDQUOT):
        found = _full_text()
    elif number == errno.EMFILE:
        found = _limit("files",
                       resource.getrlimit(resource.RLIMIT_NOFILE)[0],
                       "descriptors")
    elif process_limit(e):
        found = process_text()
    told = found and "The call met a limit: " + found + "."
    return told


def too_large_text(limit):
    return ("The result is too large: " + _limit("result_bytes", limit, "bytes")
            + ". Return less: a summary, a page, or the part that is needed.")


def text(e, filename, source, stdout, truncated):
    """The whole report."""
    d = describe(e, filename, source)
    message = d["message"]
    parts = [f"{d['type']}: {message}" if message else d["type"]]
    if d["line"]:
        where = f"line {d['line']}"
        if d["column"]:
            where += f", column {d['column']}"
        parts.append(f"at {where}")
    parts += d["code_context"]
    parts += http_info(e)
    parts += hint(e)
    if not isinstance(e, SyntaxError) or e.filename != filename:
        found = trace(e)
        if found:
            parts += ["", found]
    if stdout:
        parts += ["", output(stdout, truncated)]
    return "\n".join(parts)


def output(stdout, truncated):
    shown = hidden(stdout.decode("utf-8", "replace"), truncated)
    if len(shown) > STDOUT_SHOWN:
        shown = "[...]\n" + shown[-STDOUT_SHOWN:]
    note = " (truncated)" if truncated else ""
    return f"--- stdout{note} ---\n{shown.rstrip()}"
