"""work_days: working days between two dates, or after one.

Dates arrive as dates and leave as ISO 8601: the signature says so, and nothing
in here reads or writes their text.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Literal, Optional

import mcpbox

DAYS_MAX = 36525            # a hundred years: a loop over days stays short
NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@dataclass
class Answer:
    """Structured content, because it is a dataclass."""
    start: date
    end: date
    work_days: int
    holidays: list[date]    # those that fell on a working day


def _answer(start, end, free, weekend):
    span = [start + timedelta(n) for n in range((end - start).days + 1)]
    week = [day for day in span if NAMES[day.weekday()] not in weekend]
    off = [day for day in week if day in free]
    return Answer(start, end, len(week) - len(off), off)


def _end(start, count, free, weekend):
    """Finds the day on which work of count days ends."""
    for n in range(DAYS_MAX):
        day = start + timedelta(n)
        if NAMES[day.weekday()] not in weekend and day not in free:
            count -= 1
        if count == 0:
            return day
    raise mcpbox.ToolError(f"these are more than {DAYS_MAX} days: give a "
                           "smaller count, or fewer days off")


def main(start: date, end: Optional[date] = None, count: Optional[int] = None,
         holidays: Annotated[Optional[list[date]],
                             "days off besides the weekends"] = None,
         weekend: Annotated[Optional[list[Day]],
                            "days off of each week; sat and sun if left out"]
         = None) -> Answer:
    """Counts the working days from start to end, both included, or finds the
    end of work that takes a number of them. Give either end or count.

    Args:
        start: the first day
        end: the last day
        count: how many working days the work takes; start is the first
    """
    if (end is None) == (count is None):
        raise mcpbox.ToolError("give either end or count")
    free = set(holidays or ())
    off = ("sat", "sun") if weekend is None else weekend
    try:
        if end is None:
            if count < 1:
                raise mcpbox.ToolError("count must be 1 or more")
            end = _end(start, count, free, off)
        if not 0 <= (end - start).days <= DAYS_MAX:
            raise mcpbox.ToolError("end must not be before start, and at "
                                   f"most {DAYS_MAX} days after it")
        return _answer(start, end, free, off)
    except OverflowError:
        raise mcpbox.ToolError("the calendar ends with the year 9999: give "
                               "an earlier start") from None
