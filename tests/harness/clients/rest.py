"""The admin REST API, as a browser would use it: a login is a cookie and a header."""
import http.client
import json

from harness.patience import patience


class Rest:
    """proves: as a page does, it answers 403 proof_required with the password it logged in with and sends the request
    again, so that no test depends on how long ago its login was."""

    def __init__(self, where, proves=True):
        self.where = where
        self.proves = proves
        self.cookie = self.csrf = self.password = None

    def request(self, method, path, body=None, headers=None):
        """(status, headers in lower case, JSON value or None)."""
        proves = self.proves and self.password is not None
        if proves and path == "/api/approvals/bulk":
            self.prove()    # one proof for all items: a stale one would refuse those in the middle
        answer = self.once(method, path, body, headers)
        if (proves and answer[0] == 403 and answer[2].get("failure_mode") == "proof_required"
                and self.prove()[0] == 204):
            answer = self.once(method, path, body, headers)
        if path == "/api/password" and answer[0] == 204:
            self.password = body["new_password"]
        return answer

    def prove(self):
        return self.once("POST", "/api/proof", {"password": self.password})

    def once(self, method, path, body=None, headers=None):
        """A request as it is, without a proof before or after it."""
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
            self.password = password
        return status, headers, value
