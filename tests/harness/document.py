"""Generated sections of documents."""
import re


def replace_section(path, name, body):
    """Puts body between the markers of that name; they must be there."""
    with open(path, encoding="utf-8") as f:
        old = f.read()
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if len(pattern.findall(old)) != 1:
        raise RuntimeError(f"{path} has no section {name}")
    with open(path, "w", encoding="utf-8") as f:
        f.write(pattern.sub(lambda _: f"{begin}\n{body.strip()}\n\n{end}", old))


def table(head, rows):
    """Markdown, padded so that it reads in a terminal too."""
    head, *rows = ([str(c) for c in row] for row in (head, *rows))
    width = [max(len(r[i]) for r in (head, *rows)) for i in range(len(head))]

    def line(row):
        return "| " + " | ".join(c.ljust(w) for c, w in zip(row, width)) + " |"

    return "\n".join([line(head), "|" + "|".join("-" * (w + 2) for w in width) + "|",
                      *map(line, rows)])
