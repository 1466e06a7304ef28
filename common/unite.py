#!/usr/bin/python3
"""Makes few C files of many, each of which includes some: their headers are then
parsed once a group (the option `united`, for who builds once and waits).

    unite.py FOLDER NAME FILE...    writes FOLDER/NAME/N.c, prints their paths

Files share a group where none defines at file scope what another defines too, and
none defines a macro or a type whose name another has, perhaps of a header. Local
names that hide another file's are harmless; for all else warnings are errors, as
they are anyway. Dependencies stay true, as the compiler lists what it included.
"""
import os
import re
import sys

#: Files a group: so many that headers cost little, so few that the largest group
#: of a program does not keep one processor busy alone.
FILES_MAX = 12

NAMES = re.compile(
    r"^(\w+)\("                                                     # KNF: a function
    r"|^(?:static|typedef)\b[^;={(]*?\b(\w+)\s*(?:\[[^\]]*\]\s*)*[=;(]"
    r"|^\}\s*(\w+)\s*[\[=;]", re.M)                                 # of an unnamed type
ENUM = re.compile(r"^(?:static\s+|const\s+)*enum\s*\w*\s*\{(.*?)\}", re.M | re.S)
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.M)


TYPE = re.compile(r"^(?:static\s+|const\s+|typedef\s+)*((?:struct|union|enum)\s+\w+)\s*\{", re.M)


class Names:
    """What a text defines at file scope; what of it others must not even name, macros
    and types; and all that it names."""

    def __init__(self, text=""):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
        self.alone = set(MACRO.findall(text)) | set(TYPE.findall(text))
        self.defined = {n for found in NAMES.findall(text) for n in found if n} | self.alone
        for body in ENUM.findall(text):
            self.defined |= set(re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)", body))
        self.named = set(re.findall(r"\w+", text)) | set(re.findall(r"(?:struct|union|enum) \w+", text))

    def fits(self, other):
        return not (self.defined & other.defined or self.alone & other.named or self.named & other.alone)

    def add(self, other):
        for mine, more in ((self.alone, other.alone), (self.defined, other.defined), (self.named, other.named)):
            mine |= more


def groups(files):
    """[[path]] of [(path, text)]: each file in the first group that it fits."""
    found = []
    for path, text in files:
        names = Names(text)
        for members, all_names in found:
            if len(members) < FILES_MAX and all_names.fits(names):
                members.append(path)
                all_names.add(names)
                break
        else:
            found.append(([path], names))
    return [members for members, _ in found]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def main(parent, name, *paths):
    folder = os.path.join(parent, name)
    os.makedirs(folder, exist_ok=True)
    for i, members in enumerate(groups([(p, read(p)) for p in paths])):
        out = os.path.join(folder, f"{i}.c")
        text = "".join(f'#include "{os.path.realpath(p)}"\n' for p in members)
        # An edit configures again (meson watches what run_command is given): groups that
        # are what they were keep their time, so they are not compiled again.
        if not os.path.exists(out) or read(out) != text:
            with open(out, "w", encoding="utf-8") as f:
                f.write(text)
        print(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
