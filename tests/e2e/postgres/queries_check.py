"""Asks queries of a server, in text and in binary, and compares with `tidetable sql`: queries_check.py PORT COMMAND FOLDER SLT..

COMMAND is the path of the command, which works in FOLDER. SLT are files of queries; those that fail in `tidetable sql`
are left out, for they ask of other tables. Random queries of table T follow.
"""

import base64
import datetime
import json
import math
import random
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psycopg
from psycopg.types.json import set_json_loads

RANDOM = 220
UTC = datetime.timezone.utc
COLUMNS = ["id", "ts", "small", "big", "price", "ratio", "ok", "day", "name"]


def loads(text):
    return json.loads(text, parse_float=Decimal)


def suites(paths):
    """The queries of files of sqllogictest."""
    for path in paths:
        lines = open(path, encoding="utf-8").read().split("\n")
        at = 0
        while at < len(lines):
            if lines[at].startswith("query "):
                end = at + 1
                while lines[end] != "----" and lines[end]:
                    end += 1
                yield "\n".join(lines[at + 1:end])
                at = end
            at += 1


def random_query(rng):
    numbers = ["small", "big", "price", "ratio", "id"]
    texts = ["name", "upper(name)", "substr(name, 1, 3)", "concat(name, '-', small)"]
    times = ["ts", "date_trunc('hour', ts)", "ts + INTERVAL '1 day'", "day", "CAST(ts AS DATE)"]
    others = ["ok", "NOT ok", "[small, small + 1]", "make_array(name, NULL)", "CAST(name AS BYTEA)", "{a: small, b: name}",
              "CAST(small AS SMALLINT)", "CAST(ratio AS REAL)", "price * 3", "price / 7", "big % 7", "CAST(id AS DECIMAL(25,0))",
              "CASE WHEN ok THEN price END", "CAST(ts AS TIME)", "NULL", "row_key", "small / 3.0",
              "INTERVAL '1 month 2 days 03:04:05'", "ts - date_trunc('day', ts)"]
    where = ["", "", " WHERE small > 0", " WHERE ok", " WHERE name IS NULL", " WHERE ts >= '2024-03-02'", " WHERE id < 50",
             " WHERE price BETWEEN -50 AND 99.5", " WHERE name LIKE '%a%' OR big IS NULL"]
    others.remove("row_key")
    if rng.random() < 0.35:
        key = rng.choice(["ok", "day", "small % 3", "date_trunc('day', ts)", "name"])
        aggregates = ["count(*)", "count(big)", "sum(small)", "sum(price)", "avg(ratio)", "min(ts)", "max(name)", "avg(price)",
                      "array_agg(small ORDER BY id)", "bool_and(ok)", "stddev(ratio)", "count(DISTINCT name)", "max(id)"]
        chosen = ", ".join(f"{a} AS c{i}" for i, a in enumerate(rng.sample(aggregates, rng.randint(1, 4))))
        return f"SELECT {key} AS k, {chosen} FROM T{rng.choice(where)} GROUP BY {key} ORDER BY k"
    pool = numbers + texts + times + others
    chosen = ", ".join(f"{e} AS c{i}" for i, e in enumerate(rng.sample(pool, rng.randint(1, 6))))
    limit = rng.choice(["", " LIMIT 7", " LIMIT 40 OFFSET 5"])
    return f"SELECT {chosen} FROM T{rng.choice(where)} ORDER BY id{limit}"


def expected(command, folder, query):
    """The rows of `tidetable sql` on one core, as the server has them; `None` if it refuses the query."""
    ran = subprocess.run([command, "sql", "--memory", "64MiB", "--output", "json", "-c", query], cwd=folder, capture_output=True, check=False)
    if ran.returncode != 0:
        return None
    return [row_of(line) for line in ran.stdout.decode().splitlines()]


class Pairs(list):
    """An object of JSON, whose names may be equal."""


def row_of(line):
    """The values of a row, in their order."""
    return [plain(value) for _, value in json.loads(line, parse_float=Decimal, object_pairs_hook=Pairs)]


def plain(value):
    if isinstance(value, Pairs):
        return {name: plain(inside) for name, inside in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


def are_equal_singles(here, there):
    """Whether two floats are one of single precision, which has nine digits at most."""
    has_few_digits = float(f"{here:.9g}") == here or struct.unpack("f", struct.pack("f", here))[0] == here
    return has_few_digits and struct.pack("f", here) == struct.pack("f", there)


UNITS = {"year": 365 * 86_400, "mon": 30 * 86_400, "month": 30 * 86_400, "day": 86_400}


def interval(text):
    """An interval as Python has it, where a month has 30 days and a year 365: `1 year 2 months 3 days 04:05:06.5`."""
    words, seconds = text.split(), Decimal(0)
    while words:
        word = words.pop(0)
        if ":" in word:
            hours, minutes, rest = word.lstrip("-").split(":")
            length = Decimal(hours) * 3_600 + Decimal(minutes) * 60 + Decimal(rest)
            seconds += -length if word.startswith("-") else length
        else:
            seconds += Decimal(word) * UNITS[words.pop(0).rstrip("s")]
    return datetime.timedelta(microseconds=int(seconds * 1_000_000))


def are_equal(there, here):
    """Whether a value of JSON is that of the driver."""
    if here is None or there is None:
        return here is None and there is None
    if isinstance(here, bool):
        return there is here
    if isinstance(here, (int, Decimal)) and not isinstance(there, str):
        return Decimal(there) == Decimal(here)
    if isinstance(here, float):
        wide = float(there)
        return here == wide or (math.isnan(here) and math.isnan(wide)) or are_equal_singles(here, wide)
    if isinstance(here, datetime.datetime):
        text = there[:-1] if there.endswith("Z") else there
        head, _, fraction = text.partition(".")
        moment = datetime.datetime.fromisoformat(head).replace(microsecond=int(fraction[:6].ljust(6, "0")) if fraction else 0)
        return there.endswith("Z") == (here.tzinfo is not None) and moment == here.replace(tzinfo=None)
    if isinstance(here, datetime.time):
        return datetime.time.fromisoformat(there) == here
    if isinstance(here, datetime.date):
        return str(there) == here.isoformat()
    if isinstance(here, datetime.timedelta):
        return interval(there) == here
    if isinstance(here, bytes):
        return (there.encode() if isinstance(there, str) else base64.b64decode(there["base64"])) == here
    if isinstance(here, list):
        return len(there) == len(here) and all(map(are_equal, there, here))
    return there == here


def main():
    port, command, folder, *paths = sys.argv[1:]
    set_json_loads(loads)
    rng = random.Random(7)
    queries = list(dict.fromkeys(suites(paths))) + [random_query(rng) for _ in range(RANDOM)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda query: expected(command, folder, query), queries))

    asked, failures = 0, []
    conn = psycopg.connect(f"host=127.0.0.1 port={port} user=ada dbname=tidetable", autocommit=True)
    for query, rows in zip(queries, answers):
        if rows is None:
            continue
        asked += 1
        for binary in (False, True):
            form = "binary" if binary else "text"
            try:
                found = conn.cursor(binary=binary).execute(query).fetchall()
            except (psycopg.Error, ValueError) as error:
                # Python has no times so far away, and no timetz.
                if "timestamp too" not in str(error) and "date too" not in str(error):
                    failures.append(f"{form}: {query}\n    {error}")
                continue
            is_right = len(found) == len(rows) and all(
                len(there) == len(here) and all(map(are_equal, there, here)) for there, here in zip(rows, found))
            if not is_right:
                shown = next(((t, h) for t, h in zip(rows, found) if not all(map(are_equal, t, h))), (len(rows), len(found)))
                failures.append(f"{form}: {query}\n    sql {shown[0]}\n    postgres {shown[1]}")
    print(f"{asked} queries, {len(failures)} failures")
    for failure in failures[:20]:
        print(failure)
    assert asked >= 250 and not failures, (asked, len(failures))


main()
