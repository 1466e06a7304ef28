"""IPC frames in Python, read from the same table as the C code.

Only what a runner's channel and a zygote's socket carry is needed, but any
message can be made: the field lists come from common/ipc/messages/.
"""

import array
import os
import re
import socket
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
FRAME_MAX = 64 * 1024
HEADER = struct.Struct(">HHIQ")
_INT = {"u8": ">B", "u16": ">H", "u32": ">I", "u64": ">Q"}
_RAW = {"id": 16, "hash": 32}


def _table():
    text = ""
    folder = os.path.join(ROOT, "common", "ipc", "messages")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text += f.read()
    names = {m.group(3): (int(m.group(1)), m.group(2)) for m in re.finditer(
        r"^M\((\d+), (\w+), (\w+),", text, re.M)}
    fields = {}
    text = text.replace("\\\n", " ")
    for m in re.finditer(r"^#define IPC_FIELDS_(\w+)\(F, S\)(.*)$", text,
                         re.M):
        fields[m.group(1)] = re.findall(r"F\(S, (\w+), (\w+),", m.group(2))
    return names, fields


NAMES, FIELDS = _table()
BY_NUMBER = {number: lower for lower, (number, _) in NAMES.items()}


def encode(name, /, **values):
    """(payload, blob kept apart or None, fd or None)"""
    out, apart, fd = [], None, None
    for kind, field in FIELDS[name]:
        value = values.pop(field)
        if kind in _INT:
            out.append(struct.pack(_INT[kind], value))
        elif kind in _RAW:
            out.append(value)
        elif kind == "fd":
            fd = value
        else:
            if isinstance(value, str):
                value = value.encode("utf-8")
            if kind == "blob" and len(value) > FRAME_MAX - 4096:
                apart = value
                out.append(struct.pack(">I", len(value)))
            else:
                out.append(struct.pack(">I", len(value)) + value)
    assert not values, f"{name} has no {values}"
    return b"".join(out), apart, fd


def decode(name, payload, fd=None):
    out, at = {}, 0
    for kind, field in FIELDS[name]:
        if kind in _INT:
            s = struct.Struct(_INT[kind])
            out[field] = s.unpack_from(payload, at)[0]
            at += s.size
        elif kind in _RAW:
            out[field] = payload[at:at + _RAW[kind]]
            at += _RAW[kind]
        elif kind == "fd":
            out[field] = fd
        else:
            n = struct.unpack_from(">I", payload, at)[0]
            at += 4
            value = payload[at:at + n]
            assert len(value) == n
            at += n
            out[field] = value.decode("utf-8") if kind == "str" else value
    assert at == len(payload), f"{name}: {len(payload) - at} bytes left over"
    return out


def _sealed(data):
    import fcntl
    fd = os.memfd_create("blob", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK
                | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd


def send(sock, name, /, **values):
    payload, apart, fd = encode(name, **values)
    fds, flags = [], 0
    memfd = None
    if apart is not None:
        memfd = _sealed(apart)
        fds.append(memfd)
        flags = 1
    if fd is not None:
        fds.append(fd)
    head = HEADER.pack(NAMES[name][0], flags, len(payload), 0)
    anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
    try:
        sock.sendmsg([head + payload], anc if fds else [])
    finally:
        if memfd is not None:
            os.close(memfd)


def receive(sock):
    """(name, fields) or None at the end. Raises socket.timeout."""
    packet, anc, _, _ = sock.recvmsg(FRAME_MAX + 1024, socket.CMSG_SPACE(16),
                                     socket.MSG_CMSG_CLOEXEC)
    if not packet:
        return None
    fds = array.array("i")
    for level, kind, data in anc:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[:len(data) - len(data) % 4])
    number, flags, length, _ = HEADER.unpack_from(packet)
    assert length == len(packet) - HEADER.size
    assert flags == 0, "runners and zygotes send no memfd"
    name = BY_NUMBER[number]
    fd = fds[0] if fds else None
    return name, decode(name, packet[HEADER.size:], fd)
