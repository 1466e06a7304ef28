"""Controls: a probe's code as root, outside of everything, in a process of its own.

They are forked from one process that has Python's modules loaded and no thread:
to start Python for each takes an emulated guest a second, of a hundred of them.
"""
import json
import os
import select
import signal
import subprocess
import sys

#: What a control is, with its code and its arguments as argv.
OUTSIDE = '''
import asyncio, inspect, json, sys
exec(compile(sys.argv[1], "probe", "exec"), globals())
result = main(**json.loads(sys.argv[2]))
if inspect.isawaitable(result):
    result = asyncio.run(result)
print("\\n@@" + json.dumps(result))
'''

#: A line with the three texts in; a line with what the child and what it forked
#: wrote, and its status, out.
FORKS = '''
import asyncio, ctypes, inspect, json, os, select, socket, sys
for line in sys.stdin:
    pipes = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for fd, place in ((null, 0), (pipes[0][1], 1), (pipes[1][1], 2)):
            os.dup2(fd, place)
        for fd in (null, *pipes[0], *pipes[1]):
            os.close(fd)
        code, *sys.argv[1:] = json.loads(line)
        exec(code, {"__name__": "__main__"})
        sys.exit()
    said = {}
    for r, w in pipes:
        os.close(w)
        said[r] = b""
    more = list(said)
    while more:
        for r in select.select(more, [], [])[0]:
            data = os.read(r, 65536)
            said[r] += data
            if not data:
                more.remove(r)
                os.close(r)
    status = os.waitpid(pid, 0)[1]
    print(json.dumps([*(t.decode(errors="replace") for t in said.values()), status]), flush=True)
'''

SECONDS = 60	# an emulated processor's


class Controls:
    def __init__(self):
        self.proc = None

    def run(self, code, arguments):
        """What main returned. What the code may do to its parent or to its group ends
        this process, not the tests: the next control gets a new one."""
        if self.proc is None:
            self.proc = subprocess.Popen([sys.executable, "-I", "-c", FORKS], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, start_new_session=True,
                                         env={"PATH": os.environ["PATH"]})
        line = ""
        try:
            self.proc.stdin.write(json.dumps([OUTSIDE, code, json.dumps(arguments)]) + "\n")
            self.proc.stdin.flush()
            if select.select([self.proc.stdout], [], [], SECONDS)[0]:
                line = self.proc.stdout.readline()
        finally:
            if not line:
                self.close()
        assert line, f"no control within {SECONDS} s"
        out, err, status = json.loads(line)
        assert "\n@@" in out, (status, err)
        return json.loads(out.rsplit("\n@@", 1)[1])

    def close(self):
        if self.proc is not None:
            os.killpg(self.proc.pid, signal.SIGKILL)
            self.proc.wait()
            self.proc.stdin.close()
            self.proc.stdout.close()
            self.proc = None
