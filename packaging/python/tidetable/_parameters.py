"""Parameters of a query: values that are written into it as literals of SQL."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

# Text, names and comments, in which `$` means nothing; then a parameter.
TOKENS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$(?P<name>[0-9]+|[A-Za-z_][A-Za-z0-9_]*)""",
    re.VERBOSE | re.DOTALL,
)


def bound(query: str, parameters: Mapping[str, Any] | Sequence[Any] | None) -> str:
    """The query with values in place of `$1`, `$2` of a sequence, or of `$name` of a mapping.

    Raises:
        TypeError: for a value that no literal can hold.
        ValueError: if a parameter has no value, or a value no parameter.
    """
    if parameters is None:
        return query
    if isinstance(parameters, (str, bytes)):
        raise TypeError("params is a sequence or a mapping, not text")
    if isinstance(parameters, Mapping):
        values = {str(name): value for name, value in parameters.items()}
    else:
        values = {str(at): value for at, value in enumerate(parameters, start=1)}

    used: set[str] = set()

    def replaced(token: re.Match[str]) -> str:
        name = token["name"]
        if name is None:
            return token[0]
        if name not in values:
            raise ValueError(f"the parameter ${name} has no value")
        used.add(name)
        return literal(values[name])

    text = TOKENS.sub(replaced, query)
    if unused := sorted(set(values) - used):
        raise ValueError("the query has no parameter " + ", ".join(f"${name}" for name in unused))
    return text


def literal(value: Any) -> str:
    """A value as SQL writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            # Blanks, so that a sign joins no operator before it to a comment.
            return f" {int(value)} "
        case float():
            text = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value) or ("NaN" if math.isnan(value) else repr(value))
            return f"CAST('{text}' AS DOUBLE)"
        case decimal.Decimal():
            return decimal_literal(value)
        case str():
            return quoted(value)
        case bytes() | bytearray() | memoryview():
            return f"X'{bytes(value).hex()}'"
        case datetime.datetime():
            if value.tzinfo is None:
                return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
            return f"TIMESTAMPTZ '{value.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat(sep=' ')}Z'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
        case datetime.timedelta():
            micros = value.seconds * 1_000_000 + value.microseconds
            return f"INTERVAL '{value.days} days {micros} microseconds'"
        case list() | tuple():
            return "[" + ", ".join(map(literal, value)) + "]"
    # Scalars of numpy and the like.
    if callable(item := getattr(value, "item", None)):
        return literal(item())
    raise TypeError(f"a parameter cannot be of type {type(value).__name__}")


def decimal_literal(value: decimal.Decimal) -> str:
    if not value.is_finite():
        return f"CAST('{value}' AS DOUBLE)"
    sign, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale, 1)
    if precision > 76:
        raise TypeError(f"a decimal has {precision} digits, and SQL knows up to 76")
    return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"


def quoted(text: str) -> str:
    if "\0" in text:
        raise ValueError("text of a parameter holds a NUL")
    return "'" + text.replace("'", "''") + "'"
