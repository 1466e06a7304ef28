"""The wire's tags, lengths and values, as tests write and read them."""
import pytest

from harness.tlv import tlv, untlv


def test_forms():
    assert tlv((1, 1), (2, "é"), (3, b"")) == b"\1\0\0\0\x08" + b"\0" * 7 + b"\1" + b"\2\0\0\0\2\xc3\xa9" + b"\3\0\0\0\0"
    assert untlv(tlv((1, 1), (2, b"x"))) == [(1, b"\0" * 7 + b"\1"), (2, b"x")]
    assert tlv() == b"" and untlv(b"") == []


@pytest.mark.parametrize("cut", [1, 4, 6])
def test_nothing_may_be_left_over(cut):
    with pytest.raises(Exception):
        untlv(tlv((1, b"xyz"))[:cut])
