"""Answers queries with DuckDB and compares its rows with those on standard input, a JSON object a line."""

import datetime
import json
import sys

import duckdb


def plain(value):
    """A value as text: numbers without a fraction of zero, times as ISO has them."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(plain(item) for item in value) + "]"
    return number(str(value))


def number(text):
    try:
        return repr(float(text))
    except ValueError:
        return text


def told(text):
    """The same of a value as this project prints it."""
    if text.startswith("["):
        return "[" + ", ".join(number(item) for item in text[1:-1].split(", ")) + "]"
    return number(text)


connection = duckdb.connect()
connection.execute("SET timezone = 'UTC'")
connection.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")
same, wrong = 0, []
for line in sys.stdin:
    asked = json.loads(line)
    found = connection.execute(sys.argv[1] + asked["query"]).fetchall()
    theirs = [[plain(value) for value in row] for row in found]
    ours = [[told(value) for value in row] for row in asked["rows"]]
    if ours == theirs:
        same += 1
    else:
        wrong.append((asked["query"], ours, theirs))
print(f"{same} alike, {len(wrong)} unlike")
for query, ours, theirs in wrong:
    print(f"{query}\n  ours    {ours}\n  DuckDB  {theirs}")
sys.exit(1 if wrong or same < 30 else 0)
