"""Asks DuckDB the queries on standard input and compares its answers with those that come with them, a JSON object a line."""

import datetime
import json
import math
import sys

import duckdb


def number(text):
    try:
        value = float(text)
        return "nan" if math.isnan(value) else float(f"{value:.12g}")
    except ValueError:
        return text


def ours(value):
    if value is None:
        return None
    try:
        return f"{datetime.datetime.fromisoformat(value.removesuffix('Z')):%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return number(value)


def theirs(value):
    if value is None:
        return None
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return number(str(value))


def main():
    connection = duckdb.connect()
    same, with_rows, unlike = 0, 0, []
    for line in sys.stdin:
        told = json.loads(line)
        try:
            expected = connection.execute(told["query"]).fetchall()
        except duckdb.Error as error:
            sys.exit(f"DuckDB refuses {told['query']}: {error}")
        expected = sorted(([theirs(value) for value in row] for row in expected), key=repr)
        found = sorted(([ours(value) for value in row] for row in told["rows"]), key=repr)
        if found == expected:
            same += 1
            with_rows += bool(found)
        else:
            unlike.append((told["session"], told["query"], found, expected))
    print(f"{same} alike, {with_rows} of them with rows, {len(unlike)} unlike")
    for session, query, found, expected in unlike[:5]:
        print(f"{session}: {query}\n  found    {found}\n  expected {expected}")
    sys.exit(bool(unlike))


main()
