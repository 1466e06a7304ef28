"""A page of documentation that is a transcript: its commands are run, in order, and must print
what it says. Blocks, by the word after their fence:

    console          "$ command", then what it prints; a command may go on with \\ at the end
    json TOOL        arguments with which a client calls that tool
    text TOOL        what the tool answered to the block before; the beginning of what is long

Ids, digests, times and ports are other ones each time: where the page and a run differ in one
of these, the run's takes the place of the page's in all that follows. Runs of blanks are one,
as columns are as wide as what is in them. `python3 -m harness.clients.transcript` is not how a page is
written: tests/quickstart/test_first_hour.py writes it, with MCPBOX_WRITE=1.
"""
import json
import re
import subprocess

FENCE = re.compile(r"^```(console|json|text) ?([\w]*)\n(.*?)^```$", re.M | re.S)
#: What is another one in each run, and what stands for it.
VARIABLE = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "ADDRESS"),
)
MARK = "7d0e1c-end"
#: Characters of an answer that a page shows.
ANSWER_MAX = 90


def masked(text):
    for pattern, word in VARIABLE:
        text = pattern.sub(word, text)
    return "\n".join(re.sub(r" +", " ", line).strip() for line in text.strip("\n").splitlines())


class Shell:
    """One bash for all commands, so that variables stay. words: name -> what it runs."""

    def __init__(self, folder, words):
        self.p = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, what in words.items():
            self.run(f'{name}() {{ {what} "$@"; }}')

    def run(self, command):
        """What it prints on both outputs."""
        self.p.stdin.write(f"{{ {command}\n}} </dev/null; printf '\\n%s %d\\n' {MARK} $?\n")
        self.p.stdin.flush()
        lines = []
        for line in self.p.stdout:
            if line.startswith(MARK):
                break
            lines.append(line)
        else:
            raise RuntimeError("the shell ended: " + "".join(lines))
        return "".join(lines).removesuffix("\n")

    def close(self):
        self.p.stdin.close()
        self.p.wait()
        self.p.stdout.close()


class Page:
    def __init__(self, text, shell, call):
        """call(tool, arguments) -> text; shell.run(command) -> text."""
        self.text, self.shell, self.call = text, shell, call
        self.now = {}       # a value of the page -> this run's

    def known(self, text):
        """With this run's values in place of the page's."""
        for page, run in self.now.items():
            text = text.replace(page, run)
        return text

    def learn(self, page, run):
        for pattern, _ in VARIABLE:
            old, new = pattern.findall(page), pattern.findall(run)
            if len(old) == len(new):
                self.now.update(zip(old, new))

    def steps(self):
        """(said, printed, now): what is run or asked, what the page says it prints, what it
        does now."""
        answer = None
        for kind, tool, body in FENCE.findall(self.text):
            if kind == "json":
                answer = self.call(tool, json.loads(self.known(body)))
                answer = answer if len(answer) <= ANSWER_MAX else answer[:ANSWER_MAX] + " ..."
            elif kind == "text":
                self.learn(body, answer)
                yield tool, body, answer
            else:
                for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
                    command, printed = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.S).groups()
                    out = self.shell.run(self.known(command.rstrip("\n")))
                    self.learn(printed, out)
                    yield command.rstrip("\n"), printed, out

    def written(self):
        """The page with what its blocks print now."""
        now = iter([(s, o) for s, _, o in self.steps()])

        def block(m):
            if m[1] == "json":
                return m[0]
            if m[1] == "text":
                return f"```text {m[2]}\n{next(now)[1].rstrip()}\n```"
            n = len(re.findall(r"^\$ ", m[3], re.M))
            shown = "".join(f"$ {s}\n" + (o.rstrip() + "\n" if o.strip() else "")
                            for s, o in (next(now) for _ in range(n)))
            return f"```console\n{shown}```"
        return self.known(FENCE.sub(block, self.text))
