"""Tag, length, value, as the wire and the pre-images have them (common/base/tlv.h)."""
import struct


def tlv(*fields):
    """(tag, value) in order; a number is eight bytes, a text its UTF-8."""
    out = b""
    for tag, value in fields:
        if isinstance(value, int):
            value = struct.pack(">Q", value)
        elif isinstance(value, str):
            value = value.encode()
        out += struct.pack(">BI", tag, len(value)) + value
    return out


def untlv(data):
    """[(tag, bytes)]; nothing may be left over."""
    out = []
    while data:
        tag, n = struct.unpack_from(">BI", data)
        assert len(data) >= 5 + n, data
        out.append((tag, data[5:5 + n]))
        data = data[5 + n:]
    return out
