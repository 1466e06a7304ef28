"""What tools do in the guests to be ended by a limit."""
import os

# Processes that spin until the test made /tmp/go; /tmp/spins says that they do.
SPIN = """
import os
def main():
    for _ in range({n} - 1):
        if os.fork() == 0:
            try: os.setsid()
            except OSError: pass
            while True: pass
    os.close(os.open("/tmp/spins", os.O_CREAT | os.O_WRONLY))
    while not os.path.exists("/tmp/go"): pass
    return 1
"""

# A tree that holds much together, each process of it little.
TREE = """
import os, time
def main():
    pids = []
    for _ in range({n}):
        pid = os.fork()
        if pid == 0:
            held = b"x" * ({mib} << 20)
            time.sleep(600 if {stay} else 0)
            os._exit(0)
        pids.append(pid)
    for pid in pids: os.waitpid(pid, 0)
    return len(pids)
"""

# Forks until it may not: how often, and why no more.
FORKS = """
    n = 0
    try:
        while n < 500:
            if os.fork() == 0:
                time.sleep(600)
                os._exit(0)
            n += 1
    except OSError as e:
        return [n, e.errno]
    return [n, 0]
"""


def waiting(condition):
    """Code of a tool that starts once the test made /tmp/go."""
    return ("import os, time\ndef main():\n"
            "    while not os.path.exists('/tmp/go'): time.sleep(0.02)\n" + condition)


def go(pid):
    """Makes the file that the tool waits for. Its /tmp is a file system of the
    pool's user namespace: only an id that is mapped there may create in it."""
    uid = os.stat(f"/proc/{pid}/root/tmp").st_uid
    tmp = os.open(f"/proc/{pid}/root/tmp", os.O_PATH)
    try:
        os.setegid(uid)
        os.seteuid(uid)
        os.close(os.open("go", os.O_CREAT | os.O_WRONLY, dir_fd=tmp))
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.close(tmp)
