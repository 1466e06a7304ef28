"""Figures as tables for people and as one JSON object for programs."""
import json
import statistics

from harness.clients.visits import PAGES
from harness.document import replace_section, table
from parts import BWRAP, CLIENTS, HOSTILE_WHAT, PYTHON, SPACE_MS
from management import CALLS, CLIENTS as MANAGERS
from paint import USEFUL
from requests import CLIENTS as AT_ONCE
from requests import METHODS, SERVERS
from signed import first, interval, ratio

SECTION = "tests/bench/run"
# Pages of the panel that the table has.
SLOWEST = 8


def mid(values, scale=1.0, digits=2):
    """The median and, behind it, the smallest and largest round."""
    if not values:
        return "-"
    m, lo, hi = (x * scale for x in (statistics.median(values), min(values), max(values)))
    return f"{m:.{digits}f} ({lo:.{digits}f} to {hi:.{digits}f})"


def calls(v):
    one = [("ping", "ping"), ("tools/call, `def main`", "plain"),
           ("tools/call, `async def main`", "aio")]
    rows = [(text, n, mid(v[f"{key} {n} p50"], 1e-3), mid(v[f"{key} {n} p99"], 1e-3),
             mid(v[f"{key} {n} rate"], 1, 0)) for text, key in one for n in CLIENTS]
    rows += [(text, n, mid(v[f"{key} {n} p50"], 1e-3), mid(v[f"{key} {n} p99"], 1e-3),
              mid(v[f"{key} {n} rate"], 1, 0))
             for text, key in (("start of python3", "python3"), ("start of bwrap + python3", "bwrap"))
             for n in (1, 16)]
    rows.append(("the kernel's floor", 1, mid(v["floor p50"], 1e-3), mid(v["floor p99"], 1e-3),
                 mid(v["floor rate"], 1, 0)))
    return table(("what", "at once", "p50 ms", "p99 ms", "a second"), rows)


def lone(v):
    rows = [(f"tools/call, `{form}`, {what}", *(mid(v[f"{key} {kind} {p}"], 1e-3) for p in ("p50", "p99")))
            for kind, what in (("spaced", "other arguments each time"),
                               ("spaced again", "the same arguments"))
            for form, key in (("def main", "plain"), ("async def main", "aio"))]
    rows.append(("start of bwrap + python3", *(mid(v[f"bwrap {p}"], 1e-3) for p in ("p50", "p99"))))
    return table(("what", "p50 ms", "p99 ms"), rows)


def cpu(v):
    keys = [("plain", 1), ("aio", 1), ("plain", 16), ("aio", 16)]
    names = ["ours", "runners", "zygote", "pool-init", "sandboxd", "sandboxd-spawn", "gatewayd-local",
             "admind", "admind-vault", "admind-check", "admind-http", "machine", "postgresql", "client"]
    label = {"ours": "**all of ours**", "machine": "whole machine less PostgreSQL and client"}
    head = ("µs a call", *(("async " if t == "aio" else "") + f"def, {n} at once" for t, n in keys))
    rows = [(label.get(name, name), *(mid(v[f"{t} {n} {name}"], 1, 0) for t, n in keys))
            for name in names]
    floor = [(name, mid(v[f"{name} process"], 1, 0), mid(v[f"{name} machine"], 1, 0))
             for name in ("floor", "floor with a runner's binds")]
    return (table(head, rows) + "\n\n"
            + table(("µs a process", "by the processes' own account", "whole machine"), floor))


def memory(v):
    rows = [(k.removeprefix("idle "), mid(v[k], 1 / 1024, 1)) for k in v
            if k.startswith("idle ") and "number" not in k]
    rows.append(("at most, 16 clients calling", mid(v["load all"], 1 / 1024, 1)))
    rows.append(("of that runners", mid(v["load runners"], 1 / 1024, 1)))
    return table(("PSS", "MiB"), rows)


def neighbours(v):
    rows = [(what, mid(v[f"{what} alone"], 1e-3), mid(v[f"{what} beside"], 1e-3),
             mid(v[f"{what} ratio"]), mid(v[f"{what} beside p99"], 1e-3)) for what in HOSTILE_WHAT]
    return table(("beside a tool that", "p50 ms alone", "p50 ms beside", "ratio", "p99 ms beside"),
                 rows)


def requests(v):
    label = {"gatewayd": "gatewayd", "bare": "bare libevent", "node": "TypeScript server"}
    rows = [(f"{method}, {v[f'{name} bytes'][0]} bytes", label[server], n,
             mid(v[f"{name} {server} {n} rate"], 1, 0), mid(v[f"{name} {server} {n} p50"], 1e-3),
             mid(v[f"{name} {server} {n} p99"], 1e-3), mid(v[f"{name} {server} {n} server"], 1, 1),
             mid(v[f"{name} {server} {n} client"], 1, 1))
            for name, (method, _, _) in METHODS.items() for n in AT_ONCE for server in SERVERS]
    return table(("request", "server", "clients", "a second", "p50 ms", "p99 ms",
                  "server's µs a request", "client's"), rows)


def signed(v):
    """Of single requests: the median and p95."""
    label = (("api", "tools/call by an API token"), ("signed", "tools/call by a signed token that was seen"),
             ("first", "server/discover, the first request of a signed token"),
             ("second", "server/discover, its second"))
    rows = [(text, len(times), *spread(times)) for text, times in
            [(text, v[key]) for key, text in label] + [("first less second, of each token", first(v))]]
    low, high = interval(v)
    return (table(("what", "requests", "p50 ms", "p95 ms"), rows)
            + f"\n\nA call by a signed token takes {ratio(v):.3f} times as long as one by an API token; in 95 of "
            f"100 draws of as many pairs it is {low:.3f} to {high:.3f}.")


def spread(times):
    return tuple(f"{x / 1000:.3f}" for x in (statistics.median(times), statistics.quantiles(times, n=20)[-1]))


def paint(v):
    rows = [(what, "empty" if kind == "empty" else "has the files", mid(v[f"{what} {kind} first"], 1, 0), mid(v[f"{what} {kind} useful"], 1, 0))
            for what in USEFUL for kind in ("empty", "cached")]
    return table(("page", "cache", "first paint ms", "all drawn ms"), rows)


def pages(v):
    order = sorted(PAGES, key=lambda p: -statistics.median(v[f"{p} drawn"]))[:SLOWEST]
    return table(("page", "all drawn ms", "slowest request ms"), [
        (f"`{p}`", mid(v[f"{p} drawn"], 1, 0), mid(v[f"{p} slowest"], 1, 0)) for p in order])


def management(v):
    rows = [("`mcpbox_list_servers`, no servers but ours", 1, mid(v["small p50"], 1e-3),
             mid(v["small p99"], 1e-3), mid(v["small rate"], 1, 0))]
    rows += [(f"`{tool}`", n, mid(v[f"{tool} {n} p50"], 1e-3), mid(v[f"{tool} {n} p99"], 1e-3),
              mid(v[f"{tool} {n} rate"], 1, 0)) for tool in CALLS for n in MANAGERS]
    return table(("what", "at once", "p50 ms", "p99 ms", "a second"), rows)


def text(parts, facts, goals):
    blocks = [
        table(("goal", "measured", "bound", ""), [g.row() for g in goals]),
        "Machine: " + ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in facts.items()) + ".",
        "**Calls and process starts.** Median of the rounds, smallest and largest round in "
        "brackets. Calls without a pause between them are bound by how fast runners are forked, once "
        "the pool's are used up: at best the kernel's floor and what a call costs besides, divided "
        "by the processors. `ping` is the cost of client, transport and gatewayd alone. Starts are "
        f"`{' '.join(PYTHON)}` and `{' '.join(BWRAP)}`.", calls(parts["calls"]),
        f"**Lone calls**: one client, {SPACE_MS} ms between an answer and the next call, in short "
        "turns with process starts.", lone(parts["lone"]),
        "**Processor time.** Daemons, zygote and pool-init by the scheduler's count, runners by "
        "the records. The whole machine's account also has the kernel's own threads, which "
        "take namespaces apart.", cpu(parts["cpu"]),
        "**Memory**, PostgreSQL apart.", memory(parts["memory"]),
        "**Start** of the whole suite, PostgreSQL included, to the first answered call: "
        + mid(parts["startup"]["seconds"]) + " s.",
        "**Neighbours.** p50 of `def main` with one client. A cpu controller shares out the "
        f"processors: {'yes' if facts['cpu_controller'] else 'no'}.", neighbours(parts["neighbours"]),
        "**Requests that run no tool.** The last two columns are processor time: where the "
        "client's is as large as the server's, the rate is bound by both.",
        requests(parts["requests"]),
        "**Signed tokens** (JWTs) at the tunnel's socket, in pairs with an API token, in random order; "
        "then people whose token was never seen.", signed(parts["signed"]),
        "**The panel** in Debian's Chromium without a screen, from the start of the navigation until a frame has "
        "the whole first page.", paint(parts["paint"]),
        f"**The panel with much**: 10,000 tools of 100 servers, 1,000 requests that wait, a million records. The {SLOWEST} slowest "
        f"of {len(PAGES)} pages.", pages(parts["pages"]),
        "**Management calls**, the first on a small suite, the others with 10,000 tools of 100 "
        "servers and a million records. Each is recorded, as every call is.",
        management(parts["management"]),
    ]
    return "\n\n".join(blocks) + "\n"


def as_json(parts, facts, goals):
    return {"facts": facts,
            "goals": [{"text": g.text, "value": round(g.value, 3), "bound": g.bound,
                       "met": g.met} for g in goals],
            "median": {p: {k: round(statistics.median(x), 3) for k, x in v.items()}
                       for p, v in parts.items()}}


def write(path, parts, facts, goals):
    body = (text(parts, facts, goals) + "\n<details><summary>The same as JSON</summary>\n\n```json\n"
            + json.dumps(as_json(parts, facts, goals), indent=1) + "\n```\n\n</details>")
    replace_section(path, SECTION, body)
