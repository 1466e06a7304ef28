"""Writes ipc_hash.c: the SHA-256 of the IPC table's canonical text."""
import hashlib
import subprocess
import sys

digest = hashlib.sha256(subprocess.check_output([sys.argv[1]])).digest()
with open(sys.argv[2], "w") as out:
    out.write('#include "ipc.h"\n\nconst struct ipc_hash ipc_table_hash = { {\n\t')
    out.write(", ".join(str(b) for b in digest))
    out.write("\n} };\n")
