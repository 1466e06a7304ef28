"""Without --net there is no way out; localhost is the program's own."""
import os
import socket
import threading

import pytest

from local.person import CANARY, UID

CONNECT = "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5); print(s.recv(64).decode())"


@pytest.fixture
def listener():
    """A server on the host that says the canary to each client."""
    s = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                c = s.accept()[0]
            except OSError:
                return
            with c:
                c.sendall(CANARY.encode())
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield s
    s.shutdown(socket.SHUT_RDWR)
    s.close()
    thread.join()


def test_a_listener_of_the_host(person, listener):
    port = str(listener.getsockname()[1])
    assert CANARY in person.outside("python3", "-c", CONNECT, "127.0.0.1", port).out
    for host in ("127.0.0.1", "localhost", "0.0.0.0", "::1", "::ffff:127.0.0.1"):
        r = person.run("python3", "-c", CONNECT, host, port)
        assert r.status == 1 and CANARY not in r.out, (host, r)


@pytest.mark.parametrize("host", ["192.0.2.1", "169.254.169.254", "10.0.0.1", "2001:db8::1", "8.8.8.8"])
def test_no_address_can_be_reached(person, host):
    r = person.run("python3", "-c", CONNECT, host, "80")
    assert "unreachable" in r.err, r


def test_no_name_resolves(person):
    r = person.python("import socket\ntry: print(socket.getaddrinfo('example.org', 80))\nexcept OSError as e: print(type(e).__name__)")
    assert r.out == "gaierror\n", r


def test_only_the_loopback_device(person):
    r = person.sh("cat /proc/net/dev | tail -n +3 | cut -d: -f1; cat /proc/net/route | tail -n +2")
    assert r.out.split() == ["lo"], r


@pytest.mark.parametrize("family,host", [("AF_INET", "127.0.0.1"), ("AF_INET6", "::1")])
def test_localhost_is_its_own(person, family, host):
    r = person.python(f"""
import socket, threading
s = socket.create_server(({host!r}, 8000), family=socket.{family})
threading.Thread(target=lambda: s.accept()[0].sendall(b'own')).start()
print(socket.create_connection(({host!r}, 8000)).recv(9))
""")
    assert r.out == "b'own'\n", r


def test_abstract_sockets(person):
    name = "\0mcpbox-run-" + str(os.getpid())
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(name)
        s.listen()
        script = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
        assert person.outside("python3", "-c", script).status == 0
        r = person.python(script)
        assert r.status == 1 and "refused" in r.err, r


@pytest.mark.parametrize("name", ["ssh-agent", "bus", "X0", "wayland-0", "gpg-agent"])
def test_sockets_of_the_session(person, name):
    """As agents, D-Bus and X11 have them: in /tmp, in /run, in the home folder."""
    for folder in (person.home / ".run", *(p for p in ("/tmp", "/run") if os.path.isdir(p))):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"mcpbox-run-{os.getpid()}-{name}")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
            try:
                os.chmod(path, 0o777)
                s.listen()
                script = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
                assert person.outside("python3", "-c", script).status == 0
                r = person.python(script, env={"SSH_AUTH_SOCK": path, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={path}"})
                assert r.status == 1 and "No such file" in r.err, r
            finally:
                os.unlink(path)


def test_packets_of_its_own_are_refused(person):
    r = person.python("import socket\nfor a in ((2, 3, 1), (2, 2, 1), (17, 3, 3)):\n"
                      "    try: socket.socket(*a); print('made', a)\n    except OSError: print('refused')")
    assert r.out == "refused\n" * 3, r
    assert person.outside("id", "-u").out == f"{UID}\n"
