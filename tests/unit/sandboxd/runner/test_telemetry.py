"""The run that sends telemetry, in a plain interpreter: where it posts, and what it says of the answers."""

import types

import pytest

from test_inspect import fake  # noqa: F401: the played _mcpbox

import mcpbox_drivers as drivers
import mcpbox_http
import mcpbox_telemetry

URL = "http://192.168.1.5:4318"
TRACES = {"path": "/v1/traces", "body": '{"resourceSpans":[]}'}
METRICS = {"path": "/v1/metrics", "body": '{"resourceMetrics":[]}'}


@pytest.fixture
def collector(monkeypatch):
    """answers: path -> (status, headers, body) or an exception; got: what was posted."""
    played = types.SimpleNamespace(answers={}, got=[])

    def request(method, address, headers, body, *, timeout, max_bytes):
        assert method == "POST" and 0 < timeout <= mcpbox_telemetry.SEND_S
        assert headers == {"Content-Type": "application/json"} and max_bytes == mcpbox_telemetry.ANSWER_MAX
        played.got.append((address, body))
        answer = played.answers.get(address.removeprefix(URL), (200, {}, b"{}"))
        if isinstance(answer, Exception):
            raise answer
        return mcpbox_http.Response(answer[0], "", answer[1], address, answer[2])
    monkeypatch.setattr(mcpbox_http, "request", request)
    return played


def send(*posts):
    body = mcpbox_telemetry.main({"url": URL, "hosts": []}, {"posts": list(posts)}, {})
    assert not body.value["isError"]
    return body.value["structuredContent"]


def test_the_bytes_are_sent_as_they_are(collector):
    odd = {"path": "/v1/traces", "body": '{ "a" : "\u00e4\\u0000" }'}
    assert send(odd, METRICS) == {"sent": 2, "status": 200, "retry_after": 0, "rejected": 0, "why": ""}
    assert collector.got == [(URL + "/v1/traces", odd["body"].encode()), (URL + "/v1/metrics", METRICS["body"].encode())]


def test_nothing_is_sent_after_a_refusal(collector):
    collector.answers["/v1/traces"] = 503, {"retry-after": "7"}, b"canary-body"
    said = send(TRACES, METRICS)
    assert said == {"sent": 0, "status": 503, "retry_after": 7, "rejected": 0, "why": f"{URL}/v1/traces: HTTP 503"}
    assert len(collector.got) == 1
    collector.answers = {"/v1/metrics": (404, {}, b"")}
    assert (lambda s: (s["sent"], s["status"]))(send(TRACES, METRICS)) == (1, 404)


@pytest.mark.parametrize("value, seconds", [("7", 7), (" 120 ", 120), ("0", 0), ("-1", 0), ("1.5", 0), ("", 0),
                                            ("999999", 0), ("Fri, 31 Dec 1999 23:59:59 GMT", 0), ("\u0665", 0)])
def test_retry_after(collector, value, seconds):
    collector.answers["/v1/traces"] = 429, {"retry-after": value}, b""
    assert send(TRACES)["retry_after"] == seconds


def test_a_redirect_is_not_followed(collector):
    collector.answers["/v1/traces"] = 307, {"location": "https://evil.example/\x1b[2J"}, b""
    said = send(TRACES)
    assert said["sent"] == 0 and "a redirect, which is not followed; it leads to https://evil.example/" in said["why"]
    assert "\x1b" not in said["why"] and len(collector.got) == 1


@pytest.mark.parametrize("error", [mcpbox_http.ConnectError("nobody answers"), mcpbox_http.Timeout("too slow"),
                                   mcpbox_http.TooLarge("too large"), mcpbox_http.TlsError("bad certificate")])
def test_no_answer(collector, error):
    collector.answers["/v1/traces"] = error
    said = send(TRACES, METRICS)
    assert said["sent"] == said["status"] == 0 and str(error) in said["why"]


@pytest.mark.parametrize("body, n", [
    (b'{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}', 3), (b'{"partialSuccess":{"rejectedSpans":3}}', 3),
    (b'{"partialSuccess":{}}', 0), (b'{"partialSuccess":[]}', 0), (b"[]", 0), (b"", 0), (b"<html>", 0),
    (b'{"partialSuccess":{"rejectedSpans":"1e99"}}', 0), (b'{"partialSuccess":{"rejectedSpans":1e999}}', 0),
    (b'{"partialSuccess":{"rejectedSpans":-1}}', 0), (b'{"partialSuccess":{"rejectedSpans":null}}', 0)])
def test_partial_success(collector, body, n):
    collector.answers["/v1/traces"] = 200, {}, body
    said = send(TRACES)
    assert (said["sent"], said["rejected"]) == (1, n)


def test_no_other_path(collector):
    with pytest.raises(drivers.InvalidArguments):
        send({"path": "/admin", "body": ""})
    assert collector.got == []
