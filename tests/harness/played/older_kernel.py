"""older_kernel.py PROGRAM ARGUMENTS...: runs it behind a filter that answers as a kernel
before Linux 6.16: no SO_PASSRIGHTS. For root, so that the program may gain what it may.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

SETSOCKOPT = {"x86_64": 54, "aarch64": 208}[platform.machine()]
SOL_SOCKET, SO_PASSRIGHTS = 1, 83
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
#: Of struct seccomp_data: the call's number, and the lower half of an argument.
NUMBER, LEVEL, OPTION = 0, 24, 32

PROGRAM = [(LOAD, 0, 0, NUMBER), (EQUAL, 0, 5, SETSOCKOPT), (LOAD, 0, 0, LEVEL), (EQUAL, 0, 3, SOL_SOCKET),
           (LOAD, 0, 0, OPTION), (EQUAL, 0, 1, SO_PASSRIGHTS), (RETURN, 0, 0, 0x50000 | errno.ENOPROTOOPT),
           (RETURN, 0, 0, 0x7fff0000)]


def main():
    code = b"".join(struct.pack("=HBBI", *i) for i in PROGRAM)
    room = ctypes.create_string_buffer(code, len(code))

    class Fprog(ctypes.Structure):
        _fields_ = [("n", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    libc = ctypes.CDLL(None, use_errno=True)
    prog = Fprog(len(PROGRAM), ctypes.addressof(room))
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(prog), 0, 0) != 0:
        sys.exit(f"older_kernel.py: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
