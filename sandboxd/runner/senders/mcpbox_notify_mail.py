"""Hands a notification to a submission server: the targets "smtp" and "smtps"
of mcpbox_notify.py (RFC 5321, 4954, 3207, 8314).

The dialogue is smtplib's. Its socket is ours, since smtplib bounds neither the
time of a whole dialogue nor the lines of a reply. No text of the server's is
passed on: a server may repeat what it got, the password too."""

import base64
import datetime
import ipaddress
import re
import socket
import ssl
import time

import mcpbox_drivers
import mcpbox_http

PORTS = {"smtp": 587, "smtps": 465}
#: Bytes of all replies, before TLS and again with it. Real ones have 1 kB.
REPLIES_MAX = 64 << 10

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:/?#@]+)(?::([0-9]{1,5}))?")
#: Nothing that separates addresses, or ends the line of a command.
_MAIL = re.compile(r'[^\s<>()\[\],;:"\\@\x00-\x20\x7f-\U0010ffff]+')
_NO_REPLY = "what came back is no reply of a mail server"
#: The networks of this machine and of a home or an office.
_LOCAL = tuple(map(ipaddress.ip_network, (
    "127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
    "fc00::/7")))


class Refused(Exception):
    """The server answered one of our commands with another code."""

    def __init__(self, step, code):
        super().__init__(f"{step} is refused: SMTP {code}")
        self.code = code


def address(text):
    """Judges a mail address for a command and a header, where =? would begin
    text that is decoded."""
    name, at, domain = text.partition("@")
    if not at or len(text) > 254 or not _MAIL.fullmatch(name) \
            or not _MAIL.fullmatch(domain) or "=?" in text:
        raise mcpbox_drivers.InvalidArguments(
            "the target has no usable mail address")
    return text


def server(kind, text):
    """Takes HOST[:PORT] apart, as mcpbox_http does it."""
    found = _HOST.fullmatch(text)
    try:
        if not found:
            raise mcpbox_http.BadRequest("no host")
        return mcpbox_http.url(f"http://{found[1]}:{found[2] or PORTS[kind]}")
    except mcpbox_http.BadRequest:
        raise mcpbox_drivers.InvalidArguments(
            "the target has no usable mail server") from None


def account(secret):
    """Splits a secret into user and password."""
    user, colon, password = secret.partition(":")
    if not colon or not user or not password:
        raise mcpbox_drivers.InvalidArguments(
            "the secret of a mail server must be user:password")
    return user, password


def is_local(host):
    """Tells whether this is an address, not a name, of those networks."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(ip in net for net in _LOCAL)


def message(n, sender, to):
    """Makes the bytes of the mail. They follow from the notification alone, so
    a second sending is the same mail, with the same Message-ID."""
    from email import policy
    from email.message import EmailMessage
    m = EmailMessage(policy.SMTP.clone(cte_type="7bit"))
    m["From"], m["To"], m["Subject"] = sender, to, n.title
    m["Date"] = datetime.datetime.fromtimestamp(n.at, datetime.timezone.utc)
    m["Message-ID"] = f"<{n.id}@{sender.partition('@')[2]}>"
    m["Auto-Submitted"] = "auto-generated"
    m.set_content("\n\n".join(filter(None, (n.text, n.link))) + "\n",
                  charset="utf-8")
    return m.as_bytes()


def _need(step, reply, first=200, last=299):
    """Goes on only with a code between these."""
    code = reply[0]
    if not 200 <= code <= 599:
        raise mcpbox_http.ProtocolError(_NO_REPLY)
    if not first <= code <= last:
        raise Refused(step, code)


class _Session:
    """smtplib's client on a socket with an end."""

    def __init__(self, u, until, name, context):
        import smtplib
        self._u, self._until, self._context = u, until, context
        self._smtp = smtplib.SMTP(local_hostname=name)  # connects to nobody
        self._sock = None

    def _left(self):
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _use(self, sock):
        self._sock = sock
        self._smtp.sock = mcpbox_http._Sock(sock, self._until, REPLIES_MAX)
        self._smtp.sock.raw.spent = ("the server's replies are larger than "
                                     f"{REPLIES_MAX} bytes")
        self._smtp.file = None

    def _wrap(self):
        self._sock.settimeout(self._left())
        self._use(self._context.wrap_socket(self._sock,
                                            server_hostname=self._u.host))

    def open(self, tls):
        self._use(socket.create_connection((self._u.host, self._u.port),
                                           self._left()))
        if tls:
            self._wrap()
        _need("the connection", self._smtp.getreply())
        self._smtp.ehlo_or_helo_if_needed()

    def offers(self, extension):
        return self._smtp.has_extn(extension)

    def starttls(self):
        _need("STARTTLS", self._smtp.docmd("STARTTLS"))
        self._wrap()
        # All that came in the clear may be forged (RFC 3207, 4.2).
        self._smtp.helo_resp = self._smtp.ehlo_resp = None
        self._smtp.esmtp_features, self._smtp.does_esmtp = {}, False
        self._smtp.ehlo_or_helo_if_needed()

    def login(self, user, password):
        """Shows user and password. smtplib's own login takes ASCII alone."""
        def b64(text):
            return base64.b64encode(
                text.encode("utf-8", "surrogateescape")).decode()
        ways = self._smtp.esmtp_features.get("auth", "").upper().split()
        if "PLAIN" in ways:
            last = self._smtp.docmd(
                "AUTH", "PLAIN " + b64(f"\0{user}\0{password}"))
        elif "LOGIN" in ways:
            _need("AUTH", self._smtp.docmd("AUTH", "LOGIN"), 334, 334)
            _need("AUTH", self._smtp.docmd(b64(user)), 334, 334)
            last = self._smtp.docmd(b64(password))
        else:
            raise mcpbox_http.ProtocolError(
                "the server offers neither AUTH PLAIN nor AUTH LOGIN")
        _need("the user or the password", last, 235, 235)

    def mail(self, sender, to, raw):
        """Returns the code of the reply that takes the mail over."""
        _need("the sender", self._smtp.mail(sender))
        _need("the recipient", self._smtp.rcpt(to))
        reply = self._smtp.data(raw)
        _need("the mail", reply)
        try:
            self._smtp.putcmd("quit")   # its answer would change nothing
        except OSError:
            pass
        return reply[0]

    def close(self):
        self._smtp.close()
        if self._sock is not None:
            self._sock.close()


def _talk(s, kind, free, login, envelope):
    """Leads the dialogue. A user's password is shown in TLS alone: free is
    false with a login."""
    s.open(kind == "smtps")
    if kind == "smtp":
        if s.offers("starttls"):
            s.starttls()
        elif not free:
            raise mcpbox_http.TlsError("the server offers no STARTTLS, and "
                                       "nothing is sent without it")
    if login:
        s.login(*login)
    return s.mail(*envelope)


def send(n, kind, u, sender, to, login, until):
    """Sends it. Returns the code of the last reply; Refused, or an Error of
    mcpbox_http, says why not."""
    import smtplib
    context = ssl.create_default_context()
    free = kind == "smtp" and login is None and is_local(u.host)
    if free:
        # TLS is not demanded here. With an unknown certificate, too, it keeps
        # the mail from those who only listen.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    raw = message(n, sender, to)
    s = _Session(u, until, sender.partition("@")[2], context)
    try:
        with mcpbox_http._errors(u.authority):
            try:
                return _talk(s, kind, free, login, (sender, to, raw))
            except smtplib.SMTPDataError as e:
                _need("the mail", (e.smtp_code,))
            except smtplib.SMTPHeloError as e:
                _need("EHLO", (e.smtp_code,))
            except smtplib.SMTPServerDisconnected as e:
                if isinstance(e.__context__, TimeoutError):
                    raise TimeoutError from None
                raise mcpbox_http.ProtocolError(
                    "the server ended the connection") from None
            except smtplib.SMTPException:
                pass
            raise mcpbox_http.ProtocolError(_NO_REPLY)
    finally:
        s.close()
