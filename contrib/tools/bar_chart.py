"""bar_chart: a PNG of bars, drawn with the standard library alone.

A library that draws is a module that somebody has to grant. Bars need none:
a picture is lines of bytes, and PNG is those lines, packed.
"""

import struct
import zlib
from dataclasses import dataclass
from typing import Annotated

import mcpbox

BARS_MAX = 50
HEIGHT, STEP, BAR, MARGIN = 240, 24, 16, 20         # pixels
#: The palette: background, axis and digits, positive bars, negative bars.
WHITE, INK, BLUE, RED = range(4)
COLOURS = bytes.fromhex("ffffff 333333 3b6fb6 c0392b")
#: 3 x 5 pixels each, line by line.
DIGITS = ("111101101101111", "010110010010111", "111001111100111",
          "111001111001111", "101101111001001", "111100111001111",
          "111100111101111", "111001001010010", "111101111101111",
          "111101111001111")


@dataclass
class Bar:
    label: str
    value: float


def _png(lines):
    """Makes a PNG of lines of palette indices (chunks: ISO 15948, 5.3)."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    head = struct.pack(">IIBBBBB", len(lines[0]), len(lines), 8, 3, 0, 0, 0)
    packed = zlib.compress(b"".join(b"\0" + line for line in lines))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"PLTE", COLOURS) + chunk(b"IDAT", packed)
            + chunk(b"IEND", b""))


def _fill(lines, x, y, width, height, colour):
    for line in lines[y:y + height]:
        line[x:x + width] = bytes([colour]) * width


def _number(lines, x, y, number):
    for digit in str(number):
        for i, bit in enumerate(DIGITS[int(digit)]):
            if bit == "1":
                _fill(lines, x + i % 3 * 2, y + i // 3 * 2, 2, 2, INK)
        x += 8


def _draw(values):
    low, high = min(0, *values), max(0, *values)
    scale = (HEIGHT - 2 * MARGIN) / ((high - low) or 1)
    width = 2 * MARGIN + STEP * len(values)
    zero = MARGIN + round(high * scale)
    lines = [bytearray(width) for _ in range(HEIGHT)]
    for i, value in enumerate(values):
        x, length = MARGIN + i * STEP, round(abs(value) * scale)
        _fill(lines, x, zero - length if value > 0 else zero, BAR, length,
              BLUE if value > 0 else RED)
        _number(lines, x, HEIGHT - MARGIN + 6, i + 1)
    _fill(lines, MARGIN // 2, zero, width - MARGIN, 1, INK)
    return lines


def main(bars: Annotated[list[Bar], "1 to 50, shown from left to right"],
         title: Annotated[str, "above the list of bars"] = "Chart"):
    """Draws a bar chart as a PNG, and lists what its numbered bars are."""
    if not 1 <= len(bars) <= BARS_MAX:
        raise mcpbox.ToolError(f"give 1 to {BARS_MAX} bars, not {len(bars)}")
    if max(abs(bar.value) for bar in bars) > 1e100:
        raise mcpbox.ToolError("values must be between -1e100 and 1e100")
    names = [f"{i}. {bar.label}: {bar.value:g}"
             for i, bar in enumerate(bars, 1)]
    picture = _png(_draw([bar.value for bar in bars]))
    return [mcpbox.Text("\n".join([title, *names])),
            mcpbox.Image(picture, "image/png")]
