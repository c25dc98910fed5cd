#!/usr/bin/env python3
"""Compares the published tables of the smart-meters job with the same question put to DuckDB over the source files.

    duckdb_check.py SOURCE EXPORTS

SOURCE holds the job's CSV and Parquet files (meter, ts, kwh); EXPORTS holds SENSOR_YYYYMMDD/ and
SENSOR_ROLLUP_YYYYMMDD/ with Parquet files. Days are UTC days. Prints `N days equal` and exits 0, or says for each
table what differs and exits 1. Exits 2 if there is nothing to compare.
"""

import datetime
import pathlib
import re
import sys

import duckdb

DAY_TYPES = [
    ("meter", "UBIGINT"),
    ("ts", "TIMESTAMP WITH TIME ZONE"),
    ("kwh", "DOUBLE"),
]
ROLLUP_COLUMNS = ["meter", "day", "total_kwh", "peak_kwh", "peak_hour", "readings"]
SHOWN = 5


def quoted(path):
    return "'" + str(path).replace("'", "''") + "'"


def load_source(db, folder):
    """Makes table `source`: meter, us (microseconds since the epoch), kwh, day. Returns how many rows it has."""
    parts = []
    if sorted(folder.glob("*.csv")):
        columns = "{'meter': 'UBIGINT', 'ts': 'TIMESTAMP', 'kwh': 'DOUBLE'}"
        parts.append(
            f"SELECT meter, epoch_us(ts) AS us, kwh FROM read_csv({quoted(folder / '*.csv')}, auto_detect = false, "
            f"header = true, delim = ',', columns = {columns}, timestampformat = '%Y-%m-%dT%H:%M:%SZ')"
        )
    if sorted(folder.glob("*.parquet")):
        parts.append(f"SELECT meter, epoch_us(ts) AS us, kwh FROM read_parquet({quoted(folder / '*.parquet')})")
    if not parts:
        return 0
    union = " UNION ALL ".join(parts)
    db.execute(f"CREATE TABLE source AS SELECT *, CAST(make_timestamp(us) AS DATE) AS day FROM ({union})")
    return db.execute("SELECT count(*) FROM source").fetchone()[0]


def published(folder, table):
    """The days for which EXPORTS holds `table`, each with its folder."""
    days = {}
    for path in sorted(folder.iterdir()):
        match = re.fullmatch(rf"{table}_(\d{{4}})(\d\d)(\d\d)", path.name)
        if match:
            days[datetime.date(*map(int, match.groups()))] = path
    return days


def columns_of(db, path):
    files = quoted(path / "*.parquet")
    return [(name, kind) for name, kind, *_ in db.execute(f"DESCRIBE SELECT * FROM read_parquet({files})").fetchall()]


def differences(db, title, query):
    # As text, since the client wants one more package to hand out times with a zone.
    rows = db.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({query}) ORDER BY ALL LIMIT {SHOWN}").fetchall()
    if not rows:
        return []
    count = db.execute(f"SELECT count(*) FROM ({query})").fetchone()[0]
    shown = "; ".join(", ".join(map(str, row)) for row in rows)
    return [f"{count} rows {title}: {shown}{' ..' if count > SHOWN else ''}"]


def check_day(db, day, path):
    columns = columns_of(db, path)
    if columns != DAY_TYPES:
        return [f"columns are {columns}, expected {DAY_TYPES}"]
    files = f"read_parquet({quoted(path / '*.parquet')})"
    ours = f"SELECT meter, epoch_us(ts) AS us, kwh FROM {files}"
    theirs = f"SELECT meter, us, kwh FROM source WHERE day = DATE '{day}'"
    problems = differences(db, "only in the published table", f"({ours}) EXCEPT ALL ({theirs})")
    problems += differences(db, "only in the source", f"({theirs}) EXCEPT ALL ({ours})")
    numbered = f"read_parquet({quoted(path / '*.parquet')}, filename = true, file_row_number = true)"
    before = "lag((meter, ts)) OVER (ORDER BY filename, file_row_number)"
    unsorted = f"SELECT meter, ts FROM (SELECT meter, ts, {before} AS before FROM {numbered}) WHERE (meter, ts) < before"
    return problems + differences(db, "out of the order (meter, ts)", unsorted)


def check_rollup(db, day, path):
    names = [name for name, _ in columns_of(db, path)]
    if names != ROLLUP_COLUMNS:
        return [f"columns are {names}, expected {ROLLUP_COLUMNS}"]
    ours = f"SELECT * FROM read_parquet({quoted(path / '*.parquet')})"
    theirs = (
        "SELECT meter, day, sum(kwh) AS total_kwh, max(kwh) AS peak_kwh, "
        "hour(make_timestamp(arg_min(us, (-kwh, us)))) AS peak_hour, count(*) AS readings "
        f"FROM source WHERE day = DATE '{day}' GROUP BY meter, day"
    )
    equal = (
        "ours.total_kwh IS NOT NULL AND abs(ours.total_kwh - theirs.total_kwh) "
        "<= 1e-9 * greatest(abs(ours.total_kwh), abs(theirs.total_kwh)) "
        "AND ours.peak_kwh IS NOT DISTINCT FROM theirs.peak_kwh "
        "AND ours.peak_hour IS NOT DISTINCT FROM theirs.peak_hour "
        "AND ours.readings IS NOT DISTINCT FROM theirs.readings"
    )
    joined = f"({ours}) ours FULL JOIN ({theirs}) theirs ON ours.meter = theirs.meter AND ours.day = theirs.day"
    differing = (
        f"SELECT ours.meter, ours.day, ours.total_kwh, ours.peak_kwh, ours.peak_hour, ours.readings, theirs.* "
        f"FROM {joined} WHERE ({equal}) IS NOT TRUE"
    )
    doubled = f"SELECT meter, day, count(*) FROM ({ours}) GROUP BY meter, day HAVING count(*) > 1"
    problems = differences(db, "differ (published, then expected)", differing)
    return problems + differences(db, "doubled", doubled)


def check_table(db, source_days, exports, table, check):
    problems = []
    days = published(exports, table)
    for day in sorted(source_days | days.keys()):
        name = f"{table}_{day:%Y%m%d}"
        if day not in days:
            problems.append(f"{name}: not published, though the source has readings of {day}")
        elif day not in source_days:
            problems.append(f"{name}: published, though the source has no reading of {day}")
        elif not sorted(days[day].glob("*.parquet")):
            problems.append(f"{name}: no Parquet file in {days[day]}")
        else:
            problems += [f"{name}: {problem}" for problem in check(db, day, days[day])]
    return problems


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    source, exports = map(pathlib.Path, sys.argv[1:])
    for folder in (source, exports):
        if not folder.is_dir():
            print(f"{folder}: no such folder", file=sys.stderr)
            return 2
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    if not load_source(db, source):
        print(f"{source}: no CSV or Parquet file with a reading", file=sys.stderr)
        return 2
    days = {day for (day,) in db.execute("SELECT DISTINCT day FROM source").fetchall()}
    problems = check_table(db, days, exports, "SENSOR", check_day)
    problems += check_table(db, days, exports, "SENSOR_ROLLUP", check_rollup)
    for problem in problems:
        print(problem)
    if problems:
        return 1
    print(f"{len(days)} days equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
