"""A browser as far as a sign-in needs one: cookies by host, redirects, refreshes and forms. It runs nothing and asks
nobody but this machine."""
import html
import http.client
import re
import ssl
import urllib.parse

from harness.patience import patience

#: Where clients of the tests wait for their code. Nobody listens: the address is what counts.
CALLBACK = "http://localhost:3118/callback"
REDIRECTS_MAX = 20


class Page:
    """One answer: status, fields (lower case; Set-Cookie is in `cookies`), text, and the URL that it is of."""

    def __init__(self, url, r):
        self.url, self.status = url, r.status
        self.cookies = r.headers.get_all("Set-Cookie") or []
        self.headers = {k.lower(): v for k, v in r.getheaders()}
        self.text = r.read().decode()

    @property
    def next(self):
        """Where it leads by itself, or None."""
        to = self.headers.get("location") if 300 <= self.status < 400 else None
        if to is None and self.status == 200:
            m = re.search(r'<meta http-equiv="refresh" content="0;url=([^"]*)">', self.text)
            to = m and html.unescape(m[1])
        return to and urllib.parse.urljoin(self.url, to)

    @property
    def handle(self):
        """Of a consent page, or None."""
        m = re.search(r'name="handle" value="([^"]*)"', self.text)
        return m and html.unescape(m[1])

    @property
    def scopes(self):
        return [html.unescape(s) for s in re.findall(r'name="scope" value="([^"]*)"', self.text)]

    def __repr__(self):
        return f"<{self.status} {self.url} {self.headers} {self.text[:1000]!r}>"


class Browser:
    """who: of whom the played sign-in pages believe that it is. address: what a proxy says the peer is."""

    def __init__(self, who="ann", cafile=None, address=None):
        self.fields = {"X-Who": who, **({"CF-Connecting-IP": address} if address else {})}
        self.tls = ssl.create_default_context(cafile=cafile)
        self.jar = {}

    def ask(self, method, url, body=None, headers=None):
        """One request. body: bytes, or a form's pairs."""
        u = urllib.parse.urlsplit(url)
        fields = {**self.fields, **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            body = urllib.parse.urlencode(body).encode()
            fields["Content-Type"] = "application/x-www-form-urlencoded"
        cookies = self.jar.setdefault(u.netloc, {})
        if cookies:
            fields["Cookie"] = "; ".join(f"{k}={v}" for k, v in cookies.items())
        c = (http.client.HTTPSConnection(u.netloc, timeout=patience(60), context=self.tls) if u.scheme == "https"
             else http.client.HTTPConnection(u.netloc, timeout=patience(60)))
        try:
            c.request(method, u.path + ("?" + u.query if u.query else ""), body, fields)
            page = Page(url, c.getresponse())
        finally:
            c.close()
        for cookie in page.cookies:
            pair, *more = cookie.split(";")
            name, _, value = pair.partition("=")
            if any(re.fullmatch(r"(?i)\s*max-age=0|\s*expires=.*1970.*", m) for m in more):
                cookies.pop(name, None)
            else:
                cookies[name] = value
        return page

    def follow(self, page):
        """Goes on until nothing leads on. The last page, or the URL at CALLBACK."""
        for _ in range(REDIRECTS_MAX):
            to = page.next
            if to is None:
                return page
            if to.startswith(CALLBACK):
                return to
            page = self.ask("GET", to)
        raise AssertionError(f"too many redirects: {page}")

    def open(self, url):
        return self.follow(self.ask("GET", url))

    def decide(self, page, scope=None, decision="allow"):
        """Sends a consent page's form, and goes on."""
        pairs = [("handle", page.handle), ("decision", decision)]
        pairs += [("scope", s) for s in (page.scopes if scope is None else scope)]
        return self.follow(self.ask("POST", page.url.partition("?")[0], pairs))

    def sign_in(self, url, **more):
        """The whole way; the URL that brings the code."""
        page = self.open(url)
        if isinstance(page, Page):
            assert page.status == 200 and page.handle, page
            page = self.decide(page, **more)
        assert isinstance(page, str) and "code=" in page, page
        return page
