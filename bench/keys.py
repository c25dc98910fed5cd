#!/usr/bin/env python3
"""Loads very many entities with few readings each, and asks what is asked of them, in tidetable and DuckDB in turn.

    keys.py TIDETABLE QUERIES PYTHON WORK [--entities N] [--instants N] [--ids KIND] [--memory SIZE] [--seed N] [--runs N] [--only PART]

Each entity has a reading in each of N quarters of an hour of one day; within a quarter they arrive in random order. DuckDB writes the same
CSV, sorted by entity and time, to Parquet (zstd) with the same limit of memory, and has it as a table of its own. Loads are timed in turn,
then queries, as tall.py does. `--ids`: numbers, UUIDs, paths such as `plant-07/veh-0012345`, or `first`, the time before the number.
Prints Markdown; exit code 1 if an answer is wrong.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import sys
import time

from compare import Comparison
from measure import THREADS, machine, measured, size, two_cores
from sql import Session

IDS = {
    "numbers": ("i", "uint64", "{id:010}#{ts:%Y%m%d}"),
    "uuids": ("CAST(md5(CAST(i AS VARCHAR)) AS UUID)", "text", "{id}#{ts:%Y%m%d}"),
    "paths": ("format('plant-{:02}/veh-{:07}', i % 37, i)", "text", "{id}#{ts:%Y%m%d}"),
    "first": ("i", "uint64", "{ts:%Y%m%d%H%M}#{id:010}"),
}

JOB = """name = "keys"
[sources.readings]
files = ["{csv}"]
time = "ts"
[sources.readings.columns]
id = "{kind}"
ts = {{ format = "%Y-%m-%dT%H:%M:%SZ" }}
kwh = "float64"
[tables.T]
row_key = "{key}"
[tables.T.families.METER]
gc = "maxversions=1"
columns = [
  {{ qualifier = "ID", value = "{{id}}" }},
  {{ qualifier = "{{ts:%H%M}}", value = "{{kwh}}" }},
]
"""


def queries(one):
    """Queries by name: of DuckDB, and of tidetable where its words differ."""
    newest = "SELECT {} FROM (SELECT id, max(ts) AS t, {} AS v FROM T GROUP BY 1) AS n"
    return {
        "totals of the day": "SELECT CAST(ts AS DATE), count(*), sum(kwh) FROM T GROUP BY 1",
        "totals of each instant": "SELECT ts, count(*), sum(kwh) FROM T GROUP BY 1",
        "day of one entity": f"SELECT ts, kwh FROM T WHERE id = {one} ORDER BY ts",
        "top ten": "SELECT id, sum(kwh) FROM T GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
        "newest of each": (
            newest.format("count(*), min(t), sum(v)", "arg_max(kwh, ts)"),
            newest.format("count(*), min(t), sum(v)", "last_value(kwh ORDER BY ts)"),
        ),
        "distinct entities": "SELECT count(DISTINCT id) FROM T",
        "sums of entities": "SELECT max(s), min(n) FROM (SELECT id, sum(kwh) AS s, count(*) AS n FROM T GROUP BY 1) AS s",
        "over a bound, 0.1 %": "SELECT count(*), sum(kwh) FROM T WHERE kwh > 1.998",
    }


class Peer:
    """DuckDB with the readings, which it draws."""

    def __init__(self, args, home):
        import duckdb

        self.home, self.csv = home, home / "T.csv"
        kind = {"uint64": "UBIGINT", "text": "VARCHAR"}[IDS[args.ids][1]]
        columns = f"columns = {{'id': '{kind}', 'ts': 'TIMESTAMP', 'kwh': 'DOUBLE'}}"
        form = f"auto_detect = false, header = true, delim = ',', {columns}, timestampformat = '%Y-%m-%dT%H:%M:%SZ'"
        self.rows = f"SELECT * FROM read_csv('{self.csv}', {form}) ORDER BY {'ts, id' if args.ids == 'first' else 'id, ts'}"
        self.db = duckdb.connect(str(home / "peer.duckdb"))
        for setting in (f"threads = {THREADS}", "enable_progress_bar = false", f"memory_limit = '{args.memory}'"):
            self.db.execute("SET " + setting)
        if not self.csv.exists():
            self.draw(args)

    def draw(self, args):
        entity, _, _ = IDS[args.ids]
        kwh = f"CAST(round((hash(i, t, {args.seed}) % 1000003) / 500000.0, 3) AS DECIMAL(9, 3))"
        rows = f"SELECT {entity} AS id, TIMESTAMP '2026-03-01' + INTERVAL (t * 15) MINUTE AS ts, {kwh} AS kwh "
        rows += f"FROM range({args.entities}) AS e(i), range({args.instants}) AS q(t) ORDER BY t, hash(i, t, {args.seed} + 1)"
        self.db.execute(f"COPY (SELECT * REPLACE (strftime(ts, '%Y-%m-%dT%H:%M:%SZ') AS ts) FROM ({rows})) TO '{self.csv}' (HEADER)")
        self.db.execute(f"CREATE OR REPLACE TABLE T AS {self.rows}")
        self.db.execute("CHECKPOINT")

    def load(self):
        """Seconds and bytes of a sorted Parquet file."""
        out = self.home / "peer.parquet"
        start = time.perf_counter()
        self.db.execute(f"COPY ({self.rows}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)")
        with open(out, "rb") as written:
            os.fsync(written.fileno())
        return time.perf_counter() - start, size(out)


class Loaded:
    """The readings in a root of tidetable."""

    def __init__(self, args, peer):
        self.args, self.project = args, peer.home / "project"
        _, kind, key = IDS[args.ids]
        self.job = JOB.format(csv=peer.csv, kind=kind, key=key)

    def load(self):
        """Seconds, peak memory and bytes of a load from nothing."""
        shutil.rmtree(self.project, ignore_errors=True)
        (self.project / "jobs/keys").mkdir(parents=True)
        (self.project / "tidetable.toml").write_text('root = "data"\n')
        (self.project / "jobs/keys/job.toml").write_text(self.job)
        env = dict(os.environ, RAYON_NUM_THREADS=str(THREADS), TOKIO_WORKER_THREADS=str(THREADS))
        command = [self.args.tidetable.absolute(), "run", "keys", "--quiet", "--memory", self.args.memory]
        seconds, peak, _ = measured(command, self.project, env)
        return seconds, peak, size(self.project / "data")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tidetable", "queries", "python", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--entities", type=int, default=4_000_000)
    parser.add_argument("--instants", type=int, default=6, help="readings of an entity")
    parser.add_argument("--ids", choices=IDS, default="numbers")
    parser.add_argument("--memory", default="1GiB", help="limit of both engines while they load")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5, help="runs of each engine, of which the median counts")
    parser.add_argument("--only", action="append", help="only queries whose name contains this; may be given more than once")
    args = parser.parse_args()
    if pathlib.Path(sys.prefix) != args.python.absolute().parent.parent:
        os.execv(args.python, [str(args.python), "-B", *sys.argv])
    two_cores()
    home = args.work.absolute() / f"keys-{args.ids}-{args.entities}-{args.instants}-{args.seed}"
    home.mkdir(parents=True, exist_ok=True)
    peer = Peer(args, home)
    loaded = Loaded(args, peer)
    readings = args.entities * args.instants

    print(f"{machine()}; {args.entities:,} entities x {args.instants}, {args.ids}, {args.memory}; medians of {args.runs} runs in turn\n")
    runs = [(loaded.load(), peer.load()) for _ in range(args.runs)]
    own = statistics.median(ours[0] for ours, _ in runs)
    other = statistics.median(theirs[0] for _, theirs in runs)
    (_, peak, held), (_, parquet) = runs[-1]
    print("| load | tidetable | DuckDB to Parquet | as fast |\n|---|---|---|---|")
    print(f"| seconds | {own:.2f} | {other:.2f} | {other / own:.2f} x |")
    print(f"| bytes a reading | {held / readings:.2f} | {parquet / readings:.2f} | |")
    print(f"| peak memory | {peak / 2**20:.0f} MiB | | |\n", flush=True)

    peer.db.execute("RESET memory_limit")
    (one,) = peer.db.execute(f"SELECT id FROM T LIMIT 1 OFFSET {readings // 2}").fetchone()
    session = Session(args.queries.absolute(), loaded.project / "data")
    comparison = Comparison(args.runs, args.only)
    for name, sql in queries(one if isinstance(one, int) else f"'{one}'").items():
        theirs, ours = sql if isinstance(sql, tuple) else (sql, sql)
        comparison.ask(f"{args.ids}", name, ours, theirs, session, peer.db, home / "answer.tsv")
    session.close()
    return comparison.finish(1)


if __name__ == "__main__":
    sys.exit(main())
