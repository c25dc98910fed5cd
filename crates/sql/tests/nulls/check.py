"""Asks DuckDB the queries on standard input and compares its answers with those that come with them, a JSON object a line.

A line is a layout with its readings, which the queries after it are about, or a query with the rows of tidetable."""

import datetime
import json
import sys

import duckdb
import pyarrow

KINDS = {"meter": "UBIGINT", "ts": "TIMESTAMPTZ", "kwh": "DOUBLE", "tag": "VARCHAR"}


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def ours(value):
    if value is None:
        return None
    if value.endswith("Z"):
        return f"{datetime.datetime.fromisoformat(value):%Y-%m-%d %H:%M:%S}"
    return number(value)


def theirs(value):
    if value is None:
        return None
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return str(value).lower() if isinstance(value, bool) else number(str(value))


def rows(connection, query):
    table = connection.execute(query).to_arrow_table()
    columns = []
    for column in table.columns:
        # Python's own times with a zone need another module.
        if pyarrow.types.is_timestamp(column.type):
            column = column.cast(pyarrow.timestamp("us"))
        columns.append([theirs(value) for value in column.to_pylist()])
    return [list(row) for row in zip(*columns)]


def in_order(rows, is_ordered):
    return rows if is_ordered else sorted(rows, key=repr)


def main():
    connection = duckdb.connect()
    connection.execute("SET timezone = 'UTC'")
    layout, same, with_rows, unlike = None, 0, 0, []
    for line in sys.stdin:
        told = json.loads(line)
        if "layout" in told:
            layout = told["layout"]
            columns = ", ".join(f"{name} {KINDS[name]}" for name in told["columns"])
            connection.execute(f"CREATE OR REPLACE TABLE T ({columns})")
            if told["rows"]:
                places = ", ".join("?" for _ in told["columns"])
                connection.executemany(f"INSERT INTO T VALUES ({places})", told["rows"])
            continue

        query = told["query"].replace("first_value(", "first(").replace("last_value(", "last(")
        try:
            expected = rows(connection, query)
        except duckdb.Error as error:
            sys.exit(f"DuckDB refuses {query}: {error}")
        expected = in_order(expected, told["ordered"])
        found = in_order([[ours(value) for value in row] for row in told["rows"]], told["ordered"])
        if found == expected:
            same += 1
            with_rows += bool(found)
        else:
            unlike.append((layout, told["session"], query, found, expected))
    print(f"{same} alike, {with_rows} of them with rows, {len(unlike)} unlike")
    for layout, session, query, found, expected in unlike[:20]:
        more = [row for row in found if row not in expected]
        fewer = [row for row in expected if row not in found]
        print(f"{layout}, {session}: {query}\n  only tidetable {more[:5]}\n  only DuckDB    {fewer[:5]}")
        print(f"  {len(found)} and {len(expected)} rows")
    sys.exit(1 if unlike or with_rows * 2 < same else 0)


main()
