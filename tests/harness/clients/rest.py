"""The admin REST API, as a browser would use it: a login is a cookie and a header."""
import http.client
import json

from harness.patience import patience


class Rest:
    def __init__(self, where):
        self.where = where
        self.cookie = self.csrf = None

    def request(self, method, path, body=None, headers=None):
        """(status, headers in lower case, JSON value or None)."""
        h = {"Accept": "application/json"}
        if body is not None:
            h["Content-Type"] = "application/json"
        if self.cookie:
            h["Cookie"] = self.cookie
        if self.csrf:
            h["X-CSRF-Token"] = self.csrf
        h.update(headers or {})
        h = {k: v for k, v in h.items() if v is not None}
        c = http.client.HTTPConnection(*self.where(), timeout=patience(30))
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            c.request(method, path, data, h)
            r = c.getresponse()
            raw = r.read()
            headers = {}
            for k, v in r.getheaders():	# several Set-Cookie: a line each
                headers[k.lower()] = headers.get(k.lower(), "") + ("\n" if k.lower() in headers else "") + v
            try:
                value = json.loads(raw) if raw else None
            except ValueError:
                value = raw
            return r.status, headers, value
        finally:
            c.close()

    def get(self, path):
        return self.request("GET", path)

    def login(self, username, password):
        status, headers, value = self.request(
            "POST", "/api/login", {"username": username, "password": password})
        if status == 200:
            self.cookie = next(c.split(";")[0] for c in headers["set-cookie"].split("\n")
                               if c.startswith("mcpbox_session="))
            self.csrf = value["csrf_token"]
        return status, headers, value
