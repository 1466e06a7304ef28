"""A collector of OpenTelemetry that a test plays: takes OTLP over HTTP as JSON, keeps what it got, and answers as it is
told. It judges each request strictly, by the messages of opentelemetry-proto: unknown members, wrong types, ids that
are none and numbers that are no text are faults."""
import json
import re
import threading

_HEX = {n: re.compile("[0-9a-f]{%d}" % n) for n in (16, 32)}


class Malformed(AssertionError):
    pass


def need(good, what, value):
    if not good:
        raise Malformed(f"{what}: {value!r}")


def obj(value, what, members, required=()):
    need(isinstance(value, dict), what + " is no object", value)
    need(set(value) <= set(members), what + " has unknown members", set(value) - set(members))
    need(set(required) <= set(value), what + " lacks members", set(required) - set(value))
    for name in value:
        members[name](value[name], f"{what}.{name}")


def text(value, what):
    need(isinstance(value, str), what, value)


def u64(value, what):
    """In JSON, 64-bit integers are text."""
    need(isinstance(value, str) and value.isdigit() and int(value) < 1 << 64, what, value)


def u32(value, what):
    need(type(value) is int and 0 <= value < 1 << 32, what, value)


def number(value, what):
    need(type(value) in (int, float), what, value)


def boolean(value, what):
    need(isinstance(value, bool), what, value)


def hexa(n):
    def judge(value, what):
        need(isinstance(value, str) and _HEX[n].fullmatch(value) and value.strip("0"), what, value)
    return judge


def one_of(*values):
    def judge(value, what):
        need(type(value) is int and value in values, what, value)
    return judge


def some(judge, least=0):
    def judge_all(value, what):
        need(isinstance(value, list) and len(value) >= least, what, value)
        for i, v in enumerate(value):
            judge(v, f"{what}[{i}]")
    return judge_all


def message(required=(), **members):
    return lambda value, what: obj(value, what, members, required)


_value = message(stringValue=text, intValue=u64, doubleValue=number, boolValue=boolean)


def _attribute(value, what):
    obj(value, what, {"key": text, "value": _value}, ("key", "value"))
    need(len(value["value"]) == 1 and value["key"], what, value)


def attributes(value, what):
    some(_attribute)(value, what)
    keys = [a["key"] for a in value]
    need(len(keys) == len(set(keys)), what + " has a key twice", keys)


_resource = message(("attributes",), attributes=attributes)
_scope = message(("name",), name=text, version=text)
_span = message(("traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"),
                traceId=hexa(32), spanId=hexa(16), parentSpanId=hexa(16), flags=u32, name=text, kind=one_of(1, 2, 3, 4, 5),
                startTimeUnixNano=u64, endTimeUnixNano=u64, attributes=attributes,
                status=message(code=one_of(0, 1, 2), message=text))
_point = message(("timeUnixNano", "asInt"), attributes=attributes, startTimeUnixNano=u64, timeUnixNano=u64, asInt=u64)


def _histogram_point(value, what):
    obj(value, what, {"attributes": attributes, "startTimeUnixNano": u64, "timeUnixNano": u64, "count": u64, "sum": number,
                      "bucketCounts": some(u64), "explicitBounds": some(number)},
        ("startTimeUnixNano", "timeUnixNano", "count", "bucketCounts", "explicitBounds"))
    counts, bounds = value["bucketCounts"], value["explicitBounds"]
    need(len(counts) == len(bounds) + 1 and bounds == sorted(set(bounds)), what, value)
    need(sum(map(int, counts)) == int(value["count"]), what + ": buckets and count differ", value)


def _metric(value, what):
    obj(value, what, {
        "name": text, "unit": text, "description": text,
        "gauge": message(("dataPoints",), dataPoints=some(_point, 1)),
        "sum": message(("dataPoints", "aggregationTemporality", "isMonotonic"), dataPoints=some(_point, 1),
                       aggregationTemporality=one_of(1, 2), isMonotonic=boolean),
        "histogram": message(("dataPoints", "aggregationTemporality"), dataPoints=some(_histogram_point, 1),
                             aggregationTemporality=one_of(1, 2))}, ("name",))
    need(len({"gauge", "sum", "histogram"} & set(value)) == 1, what + " is not of one kind", value)


_traces = message(("resourceSpans",), resourceSpans=some(message(
    ("resource", "scopeSpans"), resource=_resource, schemaUrl=text, scopeSpans=some(message(
        ("scope", "spans"), scope=_scope, schemaUrl=text, spans=some(_span, 1)), 1)), 1))
_metrics = message(("resourceMetrics",), resourceMetrics=some(message(
    ("resource", "scopeMetrics"), resource=_resource, schemaUrl=text, scopeMetrics=some(message(
        ("scope", "metrics"), scope=_scope, schemaUrl=text, metrics=some(_metric, 1)), 1)), 1))
KINDS = {"/v1/traces": _traces, "/v1/metrics": _metrics}


def attrs(o):
    """The attributes of a span, a point or a resource."""
    return {a["key"]: next(iter(a["value"].values())) for a in o.get("attributes", ())}


class Collector:
    """For played.upstream.Service: its `handle`. answer: None, a triple of status, headers and body for every
    request, or a function of the request that gives one or None; raw: all bytes that came, heads too."""

    def __init__(self):
        self.lock = threading.Lock()
        self.answer, self.faults, self.raw = None, [], []
        self.spans, self.posts, self.refused = [], [], []

    def handle(self, r):
        answer = self.answer(r) if callable(self.answer) else self.answer
        with self.lock:
            self.raw.append(r.target.encode() + str(r.headers).encode() + r.body)
            if r.method != "POST" or r.path not in KINDS or r.headers.get("Content-Type") != "application/json":
                self.faults.append(f"{r.method} {r.path} {r.headers}")
                return 404, {}, b""
            try:
                body = json.loads(r.body)
                KINDS[r.path](body, r.path)
            except (ValueError, Malformed) as e:
                self.faults.append(str(e))
                return 400, {}, {}
            if answer is not None and not 200 <= answer[0] < 300:
                self.refused.append((r.path, body))
                return answer
            self.posts.append((r.path, body))
            if r.path == "/v1/traces":
                self.spans += [s for x in body["resourceSpans"] for y in x["scopeSpans"] for s in y["spans"]]
        return answer or (200, {}, {"partialSuccess": {}})

    def named(self, name):
        """The spans of a tool."""
        with self.lock:
            return [s for s in self.spans if attrs(s).get("gen_ai.tool.name") == name]

    def metrics(self):
        """The metrics of the last request, by name."""
        with self.lock:
            last = [body for path, body in self.posts if path == "/v1/metrics"][-1:]
        return {m["name"]: m for body in last for x in body["resourceMetrics"] for y in x["scopeMetrics"]
                for m in y["metrics"]}
