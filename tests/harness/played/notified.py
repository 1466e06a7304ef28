"""Targets of notifications that a test plays: an HTTP server (webhook, ntfy, Matrix) and a mail server. Both keep all that
they got as it came, and answer as they are told.

    with Web() as web: ...                    # web.port, web.url("/topic")
        web.answer = 429, {"Retry-After": "7"}, b""
        web.got[0].method, .target, .headers, .body
    with Mail(users={"u": "p"}, context=c) as mail: ...     # STARTTLS; at_once=True: TLS from the first byte on
        mail.replies["RCPT"] = "550 5.1.1 no such user"
        mail.got[0].sender, .recipients, .data, .message, .tls, .user

A listening socket may be given, so that they can be in a network namespace (netns.py)."""
import base64
import email
import email.policy
import socket
import threading
import types

from harness import listening
from harness.played.upstream import Service


class Web(Service):
    """answer: status, headers and body for every request, or a function of the request that gives them."""

    def __init__(self, sock=None, context=None):
        self.answer = 200, {}, b"{}"
        super().__init__(self._handle, sock=sock, context=context)

    def _handle(self, r):
        return self.answer(r) if callable(self.answer) else self.answer

    @property
    def got(self):
        return list(self.requests)


class Mail:
    """A submission server. context: of TLS; without it STARTTLS is not offered. users: names and passwords; without
    them AUTH is not offered. ways: mechanisms of AUTH. replies: a command's word, or "GREETING" or "END" (of the mail),
    to the reply instead of the usual one; bytes are sent as they are, and a function gets the socket and ends the
    connection. commands: each line that came, with whether it came in TLS."""

    def __init__(self, users=None, sock=None, context=None, at_once=False, ways=("PLAIN", "LOGIN")):
        self.users, self.context, self.at_once, self.ways = users, context, at_once, ways
        self.replies, self.got, self.commands = {}, [], []
        self.sock = sock or socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self._open, self._lock = set(), threading.Lock()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(c,), daemon=True).start()

    def _serve(self, c):
        talk = _Talk(self, c)
        with self._lock:
            self._open.add(talk)
        try:
            talk.run()
        except (OSError, ValueError):
            pass            # the other side left, or speaks no TLS
        finally:
            with self._lock:
                self._open.discard(talk)
            talk.c.close()

    def close(self):
        listening.end(self.sock, self.thread)
        with self._lock:
            for talk in self._open:
                try:
                    talk.c.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class _Talk:
    """One connection."""

    def __init__(self, mail, c):
        self.m, self.c, self.tls = mail, c, False
        self._new()

    def _new(self):
        """Begins again, as RFC 3207 asks for after STARTTLS."""
        self.user = self.hello = None
        self.sender, self.recipients = None, []
        self.lines = self.c.makefile("rb")

    def _wrap(self):
        self.c = self.m.context.wrap_socket(self.c, server_side=True)
        self.tls = True
        self._new()

    def say(self, word, usual):
        """Answers; True if the usual answer was given."""
        reply = self.m.replies.get(word, usual)
        if callable(reply):
            reply(self.c)
            raise OSError("the test ends the connection")
        self.c.sendall(reply if isinstance(reply, bytes) else reply.encode() + b"\r\n")
        return reply is usual

    def line(self):
        raw = self.lines.readline(65536)
        if not raw.endswith(b"\n"):
            raise OSError("the client left")
        return raw.rstrip(b"\r\n").decode("utf-8", "surrogateescape")

    def run(self):
        if self.m.at_once:
            self._wrap()
        self.say("GREETING", "220 mail.example ESMTP")
        while True:
            line = self.line()
            self.m.commands.append((line, self.tls))
            word, _, rest = line.partition(" ")
            does = getattr(self, "do_" + word.upper(), None)
            if does is None:
                self.say(word.upper(), "502 5.5.1 no such command")
            elif does(rest):
                return

    def do_EHLO(self, rest):
        self.hello = rest
        offers = ["mail.example", "8BITMIME"]
        if self.m.context is not None and not self.tls:
            offers.append("STARTTLS")
        if self.m.users is not None:
            offers.append("AUTH " + " ".join(self.m.ways))
        self.say("EHLO", "\r\n".join(f"250{'-' if i < len(offers) - 1 else ' '}{o}" for i, o in enumerate(offers)))

    def do_HELO(self, rest):
        self.hello = rest
        self.say("HELO", "250 mail.example")

    def do_STARTTLS(self, rest):
        if self.m.context is None or self.tls:
            self.say("STARTTLS", "503 5.5.1 no TLS here")
        elif self.say("STARTTLS", "220 2.0.0 go on"):
            self._wrap()

    def do_AUTH(self, rest):
        way, _, first = rest.partition(" ")
        if self.m.users is None or way.upper() not in self.m.ways:
            self.say("AUTH", "504 5.5.4 no such mechanism")
            return
        if way.upper() == "PLAIN":
            user, password = self._told(first or self._ask("")).split("\0")[1:]
        else:
            user = self._told(first or self._ask("Username:"))
            password = self._told(self._ask("Password:"))
        if self.m.users.get(user) != password:
            self.say("AUTH", "535 5.7.8 not these: " + user + " " + password)    # as a careless server would
        elif self.say("AUTH", "235 2.7.0 welcome"):
            self.user = user

    def _ask(self, what):
        self.c.sendall(b"334 " + base64.b64encode(what.encode()) + b"\r\n")
        return self.line()

    @staticmethod
    def _told(text):
        return base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")

    def do_MAIL(self, rest):
        if self.m.users is not None and self.user is None:
            self.say("MAIL", "530 5.7.0 log in first")
        elif self.say("MAIL", "250 2.1.0 fine"):
            self.sender, self.recipients = rest[len("FROM:"):], []

    def do_RCPT(self, rest):
        if self.sender is None:
            self.say("RCPT", "503 5.5.1 from whom?")
        elif self.say("RCPT", "250 2.1.5 fine"):
            self.recipients.append(rest[len("TO:"):])

    def do_DATA(self, rest):
        if not self.recipients:
            self.say("DATA", "503 5.5.1 to whom?")
            return
        if not self.say("DATA", "354 go on"):
            return
        lines = []
        while (raw := self.lines.readline()) != b".\r\n":
            if not raw:
                raise OSError("the client left")
            lines.append(raw.removeprefix(b"."))
        data = b"".join(lines)
        if "END" not in self.m.replies:     # it is there when the client hears so
            self.m.got.append(types.SimpleNamespace(
                sender=self.sender, recipients=list(self.recipients), data=data, tls=self.tls, user=self.user,
                hello=self.hello, message=email.message_from_bytes(data, policy=email.policy.default)))
        self.say("END", "250 2.0.0 taken")
        self.sender, self.recipients = None, []

    def do_RSET(self, rest):
        self.sender, self.recipients = None, []
        self.say("RSET", "250 2.0.0 fine")

    def do_NOOP(self, rest):
        self.say("NOOP", "250 2.0.0 fine")

    def do_QUIT(self, rest):
        self.say("QUIT", "221 2.0.0 bye")
        return True
