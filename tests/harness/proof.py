"""Makes the proof of a login old (SESSIONS_PROOF_MS), without waiting: in the vault's
memory. Tests are root; nobody else can do this to the vault."""
import hashlib
import os
import re
import struct
import time

from harness.place import SRC


def proof_ms():
    """SESSIONS_PROOF_MS, as the vault has it."""
    with open(os.path.join(SRC, "admind/vault/people/session.h"), encoding="ascii") as f:
        factors = re.search(r"SESSIONS_PROOF_MS = ([0-9* ]+)", f.read()).group(1)
    ms = 1
    for factor in factors.split("*"):
        ms *= int(factor)
    return ms


def boot_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


#: Bytes of a login's row at most: its proof comes after its token's hash.
ROW = 1024


def age(pid, token, since, ms=None):
    """Makes the proof of this login `ms` older (as much as makes it stale). The login was proven
    by a request that began at `since` (boot_ms()). Its row begins with the token's hash, and the
    first number after that which is a CLOCK_BOOTTIME of the meantime is the time of the proof."""
    digest, now, changed = hashlib.sha256(token.encode()).digest(), boot_ms(), 0
    ms = proof_ms() + 1 if ms is None else ms
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "r+b", buffering=0) as mem:
        for line in maps:
            span, flags = line.split()[:2]
            if not flags.startswith("rw") or "[vv" in line:
                continue
            start, end = (int(x, 16) for x in span.split("-"))
            mem.seek(start)
            data = mem.read(end - start)
            at = data.find(digest)
            while at != -1:
                for place in range(at + (-at % 8), min(at + ROW, len(data) - 8), 8):
                    value, = struct.unpack_from("=Q", data, place)
                    if since <= value <= now:
                        mem.seek(start + place)
                        mem.write(struct.pack("=Q", (value - ms) % 2**64))
                        changed += 1
                        break
                at = data.find(digest, at + 1)
    assert changed == 1, f"{changed} proofs of this login were found"
