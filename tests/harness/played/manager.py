"""A service manager for one process of an instance, as systemd is one: hears
what it says at NOTIFY_SOCKET, passes descriptors, waits for its end."""
import contextlib
import os
import shlex
import signal
import socket
import subprocess
import time

from harness.patience import patience

WATCHDOG = 1.0   # seconds; its half is what processes keep


class Manager:
    """Takes `service` of an instance over from runit. close() gives it back.
    The process is started by the command of its run script, whose uid, groups
    and capabilities it has."""

    def __init__(self, instance, service):
        self.instance, self.service = instance, service
        self.directory = os.path.join(instance.state, "service", service)
        with open(os.path.join(self.directory, "run"), encoding="ascii") as f:
            script = f.read().replace("\\\n", " ")
        self.words = shlex.split(next(x for x in script.split("\n") if x.startswith("exec env")))
        assert self.words[:3] == ["exec", "env", "-i"]
        subprocess.run(["sv", "-w", "20", "down", self.directory], check=True,
                       stdout=subprocess.DEVNULL)
        self.path = os.path.join(instance.parent, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        # Before anything is sent: the kernel notes a sender only from then on.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o666)
        self.log = os.path.join(instance.parent, service + ".log")
        self.process, self.stream = None, None

    def start(self, listeners=(), names="http", pid="$$", network=True, journal=None):
        """listeners: sockets to pass from descriptor 3 on; `pid`: LISTEN_PID,
        $$ is its own. network=False: in an empty network namespace. journal: a
        directory that is /run/systemd/journal to it; its standard error is then
        a stream of which self.stream is the other end."""
        env = {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(int(WATCHDOG * 1e6))}
        moves = ""
        if journal:
            self.stream, err = socket.socketpair()
            st = os.fstat(err.fileno())
            env["JOURNAL_STREAM"] = f"{st.st_dev}:{st.st_ino}"
        if listeners:
            env |= {"LISTEN_FDS": str(len(listeners)), "LISTEN_FDNAMES": names}
            for n, s in enumerate(listeners):
                moves += f"exec {n + 3}<&{s.fileno()} {s.fileno()}<&-\n"
        line = ["exec", *([] if network else ["unshare", "-n"]), "env", "-i",
                *(f"{k}={v}" for k, v in env.items())]
        script = moves + shlex.join(line) + f" LISTEN_PID={pid} " + shlex.join(self.words[3:])
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(open(self.log, "ab"))
            if journal:
                stack.enter_context(err)
                # exec keeps the pid through all of them.
                script = "exec unshare -m /bin/bash -c " + shlex.quote(
                    "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && "
                    f"mount --bind {journal} /run/systemd/journal || exit 99\n" + script)
            self.process = subprocess.Popen(["/bin/bash", "-c", script], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=err if journal else log,
                                            pass_fds=[s.fileno() for s in listeners])
        return self

    @property
    def pid(self):
        return self.process.pid

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def next(self, seconds):
        """(assignments of the next message, sender's pid), or (None, None)."""
        self.socket.settimeout(max(seconds, 0.001))
        try:
            data, extra, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(12))
        except (TimeoutError, BlockingIOError):
            return None, None
        sender = next(int.from_bytes(d[:4], "little") for level, kind, d in extra
                      if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS))
        return dict(x.split("=", 1) for x in data.decode().split("\n") if x), sender

    def until(self, what, seconds=20):
        """The first message of which `what` is true; others are passed over."""
        end = time.monotonic() + patience(seconds)
        seen = []
        while True:
            m, _ = self.next(end - time.monotonic())
            assert m is not None, (seen[-5:], self.text()[-3000:])
            if what(m):
                return m
            seen.append(m)

    def ready(self):
        """READY=1 is the first that it says, and it says it itself."""
        m, sender = self.next(patience(30))
        assert m is not None and m.get("READY") == "1", (m, self.text()[-3000:])
        assert sender == self.pid
        return m

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        m = self.until(lambda m: "STOPPING" in m or None)
        assert m["STOPPING"] == "1"
        return self.process.wait(patience(30))

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        while self.next(0.01)[0] is not None:
            pass

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.socket.close()
        if self.stream is not None:
            self.stream.close()
        os.unlink(self.path)
        subprocess.run(["sv", "-w", "20", "up", self.directory], check=False,
                       stdout=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        print(self.text()[-3000:])
        self.close()
