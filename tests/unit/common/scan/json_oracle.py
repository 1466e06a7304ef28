"""Compares json_scan with python's json over generated and mutated texts.

python's parser is laxer in known ways; each is made strict by a hook, so that
the two must agree on every text. Seeded: a failure repeats.
"""
import json
import math
import random
import subprocess
import sys

DEPTH_MAX, MEMBERS_MAX = 64, 65536


class No(Exception):
    pass


def strict_float(text):
    v = float(text)
    if math.isinf(v):
        raise No("infinite")
    return v


def strict_int(text):
    strict_float(text)
    return 0


def no_constant(text):
    raise No(text)


def check_str(s):
    if any(0xD800 <= ord(c) <= 0xDFFF for c in s):
        raise No("surrogate")


def pairs(items):
    names = [k for k, _ in items]
    if len(set(names)) != len(names):
        raise No("duplicate")
    for k in names:
        check_str(k)
        if "\0" in k:
            raise No("NUL in name")
    return dict(items)


def walk(v, depth, count):
    if isinstance(v, str):
        check_str(v)
    elif isinstance(v, (dict, list)):
        if depth == DEPTH_MAX:
            raise No("depth")
        count[0] += len(v)
        for x in v.values() if isinstance(v, dict) else v:
            walk(x, depth + 1, count)


def oracle(data):
    try:
        if data.startswith(b"\xef\xbb\xbf"):
            raise No("BOM")
        v = json.loads(data.decode("utf-8"), object_pairs_hook=pairs,
                       parse_constant=no_constant, parse_float=strict_float,
                       parse_int=strict_int)
        count = [0]
        walk(v, 0, count)
        return count[0] <= MEMBERS_MAX
    except (No, ValueError, RecursionError):
        return False


NUMBERS = ["0", "-0", "1", "-1.5", "1e5", "1E-5", "1e308", "1e309", "1.7976931348623157e308",
           "1.7976931348623158e308", "1.7976931348623159e308", str(2**1024 - 2**970),
           str(2**1024 - 2**970 - 1), "-" + str(2**1024), "0.00001e313", "0.00001e314", "1e-999999",
           "123456789012345678901234567890", "0e400", "00", "-", "1.", ".1", "1e", "+1", "0.1e+1",
           "17976931348623157" + "9" * 292, "17976931348623158079372897140530341507993413271003e259",
           "0x10", "1_000", "NaN", "Infinity", "-Infinity", "\u0661"]
STRINGS = ['""', '"a"', '"\\u0061"', '"b"', '"\\n"', '"\\u000A"', '"\\ud83d\\ude00"', '"\U0001f600"',
           '"\\ud800"', '"\\udfff"', '"\\ud800\\u0041"', '"\\x"', '"\\/"', '"/"', '"\u00e9"', '"\\u00E9"',
           '"\\u0000"', '"a\\u0000"', '"\x7f"', '"\t"', '"\\', "'a'", '"\\uD83D\\uDE00"', '"\\u12G4"']


def text(rnd, depth):
    r = rnd.random()
    if depth > 5 or r < 0.3:
        return rnd.choice(NUMBERS) if rnd.random() < 0.15 else str(rnd.randint(-99, 99))
    if r < 0.5:
        return rnd.choice(STRINGS) if rnd.random() < 0.3 else json.dumps("s%d" % rnd.randint(0, 9))
    if r < 0.6:
        return rnd.choice(["true", "false", "null"])
    space = rnd.choice(["", "", " ", "\n\t", "\r"])
    if r < 0.8:
        return "[" + ("," + space).join(text(rnd, depth + 1) for _ in range(rnd.randint(0, 4))) + space + "]"
    names = [rnd.choice(STRINGS[:8]) if rnd.random() < 0.3 else '"k%d"' % rnd.randint(0, 30)
             for _ in range(rnd.randint(0, 4))]
    return "{" + ",".join(space + k + space + ":" + text(rnd, depth + 1) for k in names) + "}"


def mutate(rnd, b):
    b = bytearray(b)
    for _ in range(rnd.randint(1, 3)):
        k, at = rnd.random(), rnd.randint(0, len(b))
        if k < 0.3 and b:
            del b[min(at, len(b) - 1)]
        elif k < 0.6:
            b[at:at] = rnd.choice([b'"', b",", b"{", b"}", b"[", b"]", b"\\", b"0", b" ", b"\0", b"\xff",
                                   b"\xc3", b"\xed\xa0\x80", b":", b"-", b"e", b"\x0c", b"\xc2\xa0"])
        elif b:
            b[min(at, len(b) - 1)] = rnd.randint(0, 255)
    return bytes(b)


def main():
    rnd = random.Random(20260728)
    cases = [b"[" * n + b"]" * n for n in (63, 64, 65, 66)]
    cases += [n.encode() for n in NUMBERS] + [s.encode() for s in STRINGS]
    for _ in range(6000):
        t = text(rnd, 0).encode()
        cases.append(t)
        cases.append(mutate(rnd, t))
    out = subprocess.run([sys.argv[1]], input="".join(c.hex() + "\n" for c in cases), text=True,
                         capture_output=True, check=True).stdout.split("\n")
    assert len(out) == len(cases) + 1, (len(out), len(cases))
    bad = accepted = 0
    for c, got in zip(cases, out):
        want = oracle(c)
        accepted += want
        if want != (got == "ok"):
            bad += 1
            print("differ: %r: json_scan says %s, python %s" % (c[:200], got, want))
    print("%d cases, %d accepted, %d differ" % (len(cases), accepted, bad))
    # A generator that makes only refused (or only accepted) texts proves nothing.
    return 1 if bad or not len(cases) // 5 < accepted < len(cases) * 4 // 5 else 0


sys.exit(main())
