"""dice_odds: the exact distribution of a sum of dice.

It counts ways, and integers of Python do not round. Long work tells how far it
is (mcpbox.progress), and its version has `task: optional`: a client that can
fetches the result later.
"""

import re
from fractions import Fraction
from itertools import accumulate
from typing import Annotated, Optional

import mcpbox

DICE_MAX, SIDES_MAX = 200, 200
SHOWN_MAX = 200             # totals in the answer
TERM = re.compile(r"([+-]?)(?:(\d{0,6})d(\d{1,6})|(\d{1,9}))", re.ASCII)


def _parse(text):
    """Reads text like 3d6+1d4-2 as (sides of each die, what is added)."""
    text = text.replace(" ", "").lower()
    dice, plus, at = [], 0, 0
    while at < len(text):
        term = TERM.match(text, at)
        if term is None or (at > 0 and not term[1]):
            break
        if term[4]:
            plus += int(term[1] + term[4])
        elif term[1] == "-":
            break
        else:
            count, sides = int(term[2] or 1), int(term[3])
            if not 1 <= sides <= SIDES_MAX or len(dice) + count > DICE_MAX:
                raise mcpbox.ToolError(f"at most {DICE_MAX} dice of 1 to "
                                       f"{SIDES_MAX} sides")
            dice += [sides] * count
        at = term.end()
    if at < len(text) or not dice:
        raise mcpbox.ToolError("dice are written like 2d6, d20+5 or "
                               "3d6+1d4-2")
    return dice, plus


def _ways(dice):
    """Counts the ways to show each total, from len(dice) upwards."""
    ways = [1]
    for n, sides in enumerate(dice, 1):
        sums = [0, *accumulate(ways + [0] * (sides - 1))]
        ways = [sums[i + 1] - sums[max(0, i + 1 - sides)]
                for i in range(len(sums) - 1)]
        mcpbox.progress(n, total=len(dice), message=f"{n} dice")
    return ways


def _percent(part):
    return round(float(part * 100), 6)


def main(dice: Annotated[str, "like 2d6, d20+5 or 3d6+1d4-2"],
         at_least: Annotated[Optional[int],
                             "also the chance of this total or more"] = None):
    """Computes the exact distribution of the sum of dice: lowest, highest and
    mean total, and the percentage of each total if there are at most 200."""
    sides, plus = _parse(dice)
    ways = _ways(sides)
    low, every = len(sides) + plus, sum(ways)
    answer = {"lowest": low, "highest": sum(sides) + plus,
              "mean": sum(s + 1 for s in sides) / 2 + plus}
    if len(ways) <= SHOWN_MAX:
        answer["percent"] = {str(low + i): _percent(Fraction(n, every))
                             for i, n in enumerate(ways)}
    if at_least is not None:
        chance = Fraction(sum(ways[max(0, at_least - low):]), every)
        answer["at_least"] = {"total": at_least, "percent": _percent(chance)}
        if chance.denominator < 10 ** 15:
            answer["at_least"]["exact"] = str(chance)
    return answer
