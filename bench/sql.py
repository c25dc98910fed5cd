#!/usr/bin/env python3
"""Runs the same queries in tidetable and DuckDB, alternating, over the same readings; compares answers and times.

    sql.py TIDETABLE QUERIES GENERATORS PYTHON WORK [--scale N] [--runs N] [--only QUERY] [--general] [--seed N] [--ordered]

TIDETABLE is the release binary, which loads and compacts; QUERIES the release binary of crates/bench with a warm session;
GENERATORS and WORK as for run.py; PYTHON a Python with DuckDB, in which this script runs itself again. DuckDB reads its own
tables and a Parquet file (zstd), both sorted by meter and time and without duplicate rows; the better time counts. After a warm-up, the engines
alternate; a round is a run of each. Queries of few milliseconds, which cold caches and sleeping threads would distort, run
twenty times in a row in each engine, and once per round in a line of their own. The answers of tidetable must equal
DuckDB's, float sums within 1e-9. Prints the medians as a Markdown table; exit code 1 if an answer is wrong.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import general
from answers import same
from cases import DAYS, METERS
from compare import Comparison, text
from engines import Tidetable, Tools
from inputs import Input
from measure import THREADS, machine, two_cores
from report import arrival
from shapes import METER

TABLES = "SENSOR", "PARQUET"


class Query:
    """`ours` if it differs from DuckDB's SQL; `limit` as a multiple of DuckDB's seconds, or in seconds; `times` in a row."""

    def __init__(self, name, sql, limit, ours=None, times=1):
        self.name, self.sql, self.ours, self.limit, self.times = name, sql, ours or sql, limit, times


class Picks:
    """Meters and bounds that the readings have, whatever their seed."""

    def __init__(self, peer, scale):
        ids = [id for (id,) in peer.rows("SELECT DISTINCT meter FROM SENSOR ORDER BY 1")]
        ranked = lambda rank: ids[min(max(1, rank), len(ids)) - 1]
        self.one = ranked(int(12_345 * scale))
        self.five = sorted({ranked(rank) for rank in (1, 15, 50, 150, 500)})
        (bounds,) = peer.rows("SELECT quantile_disc(kwh, 0.999), quantile_disc(kwh, 0.991) FROM SENSOR")
        self.rare, self.seldom = bounds


def queries(picks):
    one, day = picks.one, "2017-07-30"
    five = ", ".join(str(id) for id in picks.five)
    of_one = f"SELECT ts, kwh FROM SENSOR WHERE meter = {one} ORDER BY ts"
    return [
        Query("totals per day", "SELECT CAST(ts AS DATE), count(*), sum(kwh) FROM SENSOR GROUP BY 1", 1.0),
        Query("sum per meter and day", "SELECT meter, CAST(ts AS DATE), sum(kwh) FROM SENSOR GROUP BY 1, 2", 0.5),
        Query("totals per hour of day", "SELECT extract(hour FROM ts), sum(kwh) FROM SENSOR GROUP BY 1", 1.5),
        Query("one meter's ten days, in a row", of_one, "2 ms", times=20),
        Query("one meter's ten days, once in a while", of_one, None),
        Query(
            "newest reading of each meter",
            "SELECT meter, max(ts), arg_max(kwh, ts) FROM SENSOR GROUP BY 1",
            0.5,
            "SELECT meter, max(ts), last_value(kwh ORDER BY ts) FROM SENSOR GROUP BY 1",
        ),
        Query(
            "top 10 meters of a day",
            f"SELECT meter, sum(kwh) FROM SENSOR WHERE ts >= '{day}' AND ts < '2017-07-31' "
            "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
            0.5,
        ),
        Query("kwh over a bound, 0.1 %", f"SELECT meter, ts, kwh FROM SENSOR WHERE kwh > {picks.rare}", 0.7),
        Query("kwh over a bound, 0.9 %", f"SELECT meter, ts, kwh FROM SENSOR WHERE kwh > {picks.seldom}", None),
        Query(
            "join with 20,000 meters",
            "SELECT zone, count(*), sum(kwh) FROM SENSOR JOIN METERS ON SENSOR.meter = METERS.meter GROUP BY 1",
            1.2,
        ),
        Query("count, first and last time", "SELECT count(*), min(ts), max(ts) FROM SENSOR", None),
        Query("first ten in order", "SELECT meter, ts, kwh FROM SENSOR ORDER BY meter, ts LIMIT 10", None),
        Query(
            "readings of five meters",
            f"SELECT meter, count(*), max(kwh) FROM SENSOR WHERE meter IN ({five}) GROUP BY 1",
            None,
        ),
    ]


class DuckDb:
    """DuckDB with two threads, on its own table and on a Parquet file."""

    def __init__(self, home):
        import duckdb

        self.version, self.home = duckdb.__version__, home
        self.db = duckdb.connect(str(home / "readings.duckdb"))
        self.db.execute(f"SET threads = {THREADS}")
        self.db.execute("SET enable_progress_bar = false")

    def load(self, source):
        """Creates what is missing."""
        parquet = self.home / "readings.parquet"
        if not self.db.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'METERS'").fetchall():
            columns = "columns = {'meter': 'UBIGINT', 'ts': 'TIMESTAMP', 'kwh': 'DOUBLE'}"
            rows = f"read_csv('{source}/*.csv', auto_detect = false, header = true, delim = ',', {columns}, "
            rows += "timestampformat = '%Y-%m-%dT%H:%M:%SZ')"
            # Duplicate readings are the same cells in tidetable.
            self.db.execute(f"CREATE OR REPLACE TABLE SENSOR AS SELECT DISTINCT * FROM {rows} ORDER BY meter, ts")
            self.db.execute(f"COPY SENSOR TO '{parquet}' (FORMAT parquet, COMPRESSION zstd)")
            zones = "SELECT DISTINCT meter, 'zone ' || (meter % 50) AS zone FROM SENSOR"
            self.db.execute(f"COPY ({zones}) TO '{self.meters()}' (FORMAT parquet)")
            self.db.execute(f"CREATE TABLE METERS AS SELECT * FROM '{self.meters()}'")
            self.db.execute("CHECKPOINT")
        self.db.execute(f"CREATE OR REPLACE VIEW PARQUET AS SELECT * FROM read_parquet('{parquet}')")

    def meters(self):
        return self.home / "meters.parquet"

    def seconds(self, sql, table):
        start = time.perf_counter()
        self.db.sql(sql.replace("SENSOR", table)).to_arrow_table()
        return time.perf_counter() - start

    def rows(self, sql):
        return self.db.execute(sql).fetchall()

    def publish(self, out):
        """Seconds to write each day's readings to a file of its own, in order."""
        start = time.perf_counter()
        rows = "SELECT *, CAST(ts AS DATE) AS day FROM SENSOR ORDER BY meter, ts"
        self.db.execute(f"COPY ({rows}) TO '{out}' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day))")
        return time.perf_counter() - start


class Session:
    """A warm session of tidetable."""

    def __init__(self, binary, root, meters=None):
        env = dict(os.environ, RAYON_NUM_THREADS=str(THREADS), TOKIO_WORKER_THREADS=str(THREADS))
        command = [binary, root, *([meters] if meters else [])]
        self.process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "the session ended"}')
        if "error" in answer:
            raise SystemExit(f"{request}: {answer['error']}")
        return answer

    def seconds(self, sql, runs=1):
        return self.ask(sql=sql.replace("METERS", "side.public.meters"), runs=runs)["seconds"]

    def rows(self, sql, path):
        self.ask(sql=sql.replace("METERS", "side.public.meters"), answer=str(path))
        return [line.split("\t") for line in path.read_text().splitlines()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(query, session, peer, runs, work, state):
    """A line of the table, and whether the answer was correct."""
    right = same(session.rows(query.ours, work / "answer.tsv"), peer.rows(query.sql))
    for table in TABLES:
        peer.seconds(query.sql, table)
    ours, theirs = [], {table: [] for table in TABLES}
    for _ in range(runs):
        ours += session.seconds(query.ours, query.times)
        for table in TABLES:
            theirs[table] += [peer.seconds(query.sql, table) for _ in range(query.times)]
    ours, native, parquet = statistics.median(ours), *(statistics.median(theirs[table]) for table in TABLES)
    ratio = ours / min(native, parquet)
    wanted = f"{query.limit} x" if isinstance(query.limit, float) else query.limit or ""
    held = ratio <= query.limit if isinstance(query.limit, float) else ours <= 2e-3 if query.limit else None
    verdict = "wrong answer" if not right else {None: "", True: "yes", False: "no"}[held]
    cells = [query.name, state, text(ours), text(native), text(parquet), f"{ratio:.2f} x", wanted, verdict]
    return "| " + " | ".join(cells) + " |", right


EXPORT = """[exports.DAY]
per = "day"
name = "DAY_{day:%Y%m%d}"
query = { file = "day.sql" }
"""


def publish(loaded, given, peer, runs):
    """A line of the table: publishing every day as a Parquet file of its own, and whether the row count is correct."""
    folder = loaded.home / "jobs" / given.shape.name
    (folder / "day.sql").write_text("SELECT meter, ts, kwh FROM SENSOR ORDER BY meter, ts\n")
    job = folder / "job.toml"
    job.write_text(job.read_text() + EXPORT)
    ours, theirs, out = [], [], peer.home / "days"
    for _ in range(runs):
        record = json.loads(loaded.command("run", given.shape.name, "--force", "--output", "json")[2].splitlines()[-1])
        ours.append(record["seconds"]["publish"])
        shutil.rmtree(out, ignore_errors=True)
        theirs.append(peer.publish(out))
    published = f"'{loaded.home}/data/exports/**/*.parquet'"
    (rows,), (expected,) = peer.rows(f"SELECT count(*) FROM {published}"), peer.rows("SELECT count(*) FROM SENSOR")
    shutil.rmtree(out)
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    verdict = "wrong answer" if rows != expected else "yes" if ours <= 1.0 else "no"
    cells = ["ten days published", "as loaded", text(ours), text(theirs), "", f"{ours / theirs:.2f} x", "1.0 s", verdict]
    return "| " + " | ".join(cells) + " |", rows == expected


def ask_general(args, loaded, given, peer):
    """Asks the general queries; returns the exit code."""
    comparison = Comparison(args.runs, args.only)
    questions = general.queries(general.Bounds(peer.rows))
    for state in ("as loaded", "compacted"):
        if state == "compacted":
            loaded.compact(given)
        session = Session(args.queries.absolute(), loaded.home / "data", peer.meters())
        for name, sql in questions.items():
            ours, theirs = sql if isinstance(sql, tuple) else (sql, sql)
            # Quantiles of both are estimates.
            tolerance = 0.02 if "quantile" in name else 1e-9
            comparison.ask(state, name, ours, theirs, session, peer.db, peer.home / "answer.tsv", tolerance)
        session.close()
    loaded.clean()
    return comparison.finish(1.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tidetable", "queries", "generators", "python", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1, help="multiplies the number of meters (0.01 to try it out)")
    parser.add_argument("--runs", type=int, default=7, help="runs of each engine, of which the median counts")
    parser.add_argument("--only", action="append", help="only queries whose name contains this; may be given more than once")
    parser.add_argument("--general", action="store_true", help="the general queries of general.py instead, in their own table alone")
    parser.add_argument("--seed", type=int, default=1, help="seed of the readings")
    parser.add_argument("--ordered", action="store_true", help="readings of ascending ids in order, each once and on time")
    args = parser.parse_args()
    if pathlib.Path(sys.prefix) != args.python.absolute().parent.parent:
        os.execv(args.python, [str(args.python), "-B", *sys.argv])
    work = args.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    tools = Tools(args.tidetable.absolute(), args.generators.absolute(), args.python.absolute(), work)
    given = Input(METER, METERS * args.scale, DAYS, seed=args.seed, ordered=args.ordered)
    given.prepare(tools)
    two_cores()
    home = work / f"sql-{given.name}"
    home.mkdir(exist_ok=True)
    peer = DuckDb(home)
    peer.load(given.folder)
    picks = Picks(peer, args.scale)
    loaded = Tidetable(tools)
    loaded.load(given)
    root = loaded.home / "data"
    print(f"{machine()}; DuckDB {peer.version}; medians of {args.runs} runs in turn; readings: {arrival(args)}\n")
    if args.general:
        return ask_general(args, loaded, given, peer)
    print("| query | store | tidetable | DuckDB, own table | DuckDB, Parquet | against the better | wanted | held |")
    print("|---|---|---|---|---|---|---|---|")
    right = True
    if not args.only or "published" in args.only:
        line, right = publish(loaded, given, peer, min(args.runs, 5))
        print(line, flush=True)
    for state in ("as loaded", "compacted"):
        if state == "compacted":
            loaded.compact(given)
        session = Session(args.queries.absolute(), root, peer.meters())
        for query in queries(picks):
            if not args.only or any(part in query.name for part in args.only):
                line, good = measure(query, session, peer, args.runs, home, state)
                print(line, flush=True)
                right &= good
        row = f"{picks.one:010}#20170730"
        seconds = statistics.median(session.ask(table="SENSOR", row=row, runs=2000)["seconds"])
        held = "yes" if seconds <= 50e-6 else "no"
        print(f"| a meter's day through the store | {state} | {text(seconds)} | | | | 50 µs | {held} |", flush=True)
        session.close()
    loaded.clean()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
