"""Compares the answers of two engines."""

import datetime
import math
import re


def plain(value):
    """A value of either engine: a number, a text, or None."""
    if value is None or value == "NULL":
        return None
    if isinstance(value, (datetime.datetime, datetime.date)):
        value = value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return float(value)
    except (TypeError, ValueError):
        # A date that one engine has as a time is the same.
        return re.sub(r"(Z|\+00:00)$", "", str(value))


def order(row):
    """Sorts rows of either engine alike: floats by their first digits."""
    return [(0, "") if of is None else (1, f"{of:.7g}") if isinstance(of, float) else (2, of) for of in row]


def same(ours, theirs, tolerance=1e-9):
    """Whether two answers have the same rows, in any order, floats within `tolerance` or a millionth (averages of decimals
    have six digits)."""
    ours, theirs = (sorted(([plain(of) for of in row] for row in rows), key=order) for rows in (ours, theirs))
    numbers = lambda a, b: isinstance(a, float) and isinstance(b, float)
    close = lambda a, b: math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-6) if numbers(a, b) else a == b
    rows = zip(ours, theirs)
    return len(ours) == len(theirs) and all(close(a, b) for row, other in rows for a, b in zip(row, other, strict=True))
