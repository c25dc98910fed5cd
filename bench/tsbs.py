#!/usr/bin/env python3
"""Asks tidetable, DuckDB and chdb the fifteen queries of the Time Series Benchmark Suite for "cpu-only".

    tsbs.py TIDETABLE QUERIES PYTHON WORK [--hosts N] [--hours N] [--seed N] [--runs N] [--only PART]

The queries, the shape of the data and the ranges are those of the public suite (github.com/timescale/tsbs, use case cpu-only:
4,000 hosts, ten metrics every ten seconds, each a random walk between 0 and 100); data and SQL are written for this script. The
hosts of an instant come in random order. The suite's ranges of eight and twelve hours are cut to the hours there are. The
engines alternate in processes that stay warm, on two cores; medians count, and answers must be equal. Prints a Markdown table
with the ratios to DuckDB's own table, then one with those to chdb's MergeTree, if PYTHON has it.
"""

import argparse
import datetime
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

from compare import Comparison, text
from measure import THREADS, machine, two_cores
from sql import Session

METRICS = (
    "usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait",
    "usage_irq", "usage_softirq", "usage_steal", "usage_guest", "usage_guest_nice",
)
START, STEP = datetime.datetime(2016, 1, 1), 10
# Instants of a file.
INSTANTS = 180

JOB = """name = "tsbs"
[sources.cpu]
files = ["{files}/*.parquet"]
time = "ts"
[sources.cpu.columns]
hostname = "text"
ts = "timestamp"
{columns}
[tables.T]
row_key = "{{hostname}}#{{ts:%Y%m%d%H}}"
[tables.T.families.CPU]
columns = [{{ each = "*", except = ["hostname", "ts"], qualifier = "{{column}}", value = "{{value}}" }}]
"""


def generate(hosts, hours, seed, folder):
    """Writes the samples as Parquet files in order of time."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(parents=True)
    numbers = numpy.random.default_rng(seed)
    names = numpy.array([f"host_{host}" for host in range(hosts)])
    walks = numbers.uniform(0, 100, (hosts, len(METRICS)))
    start, waiting = numpy.datetime64(START, "us"), []
    for instant in range(hours * 3600 // STEP):
        walks = numpy.clip(walks + numbers.normal(0, 1, walks.shape), 0, 100)
        places = numbers.permutation(hosts)
        times = numpy.full(hosts, start + numpy.timedelta64(instant * STEP, "s"))
        waiting.append((names[places], times, walks[places].astype("int64")))
        if len(waiting) == INSTANTS:
            hosts_of, times_of, values = (numpy.concatenate(part) for part in zip(*waiting))
            columns = {"hostname": hosts_of, "ts": times_of} | {name: values[:, at] for at, name in enumerate(METRICS)}
            pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{instant:06}.parquet", compression="zstd")
            waiting = []


def queries(hosts, hours, seed):
    """By name, SQL of tidetable and of DuckDB."""
    draw = random.Random(seed)

    def within(length):
        """A range of `length` hours, or all."""
        length = min(length, hours)
        first = START + datetime.timedelta(seconds=draw.randrange(0, (hours - length) * 3600 + 1, STEP))
        return f"ts >= '{first}' AND ts < '{first + datetime.timedelta(hours=length)}'"

    def of(count):
        names = ", ".join(f"'host_{host}'" for host in sorted(draw.sample(range(hosts), count)))
        return f"hostname IN ({names})"

    peaks = lambda count: ", ".join(f"max({name})" for name in METRICS[:count])
    means = lambda count: ", ".join(f"avg({name})" for name in METRICS[:count])
    minutes = lambda metrics, count, length: (
        f"SELECT date_trunc('minute', ts), {peaks(metrics)} FROM T WHERE {of(count)} AND {within(length)} GROUP BY 1"
    )
    hourly = lambda count, length: (
        f"SELECT date_trunc('hour', ts), {peaks(10)} FROM T WHERE {of(count)} AND {within(length)} GROUP BY 1"
    )
    double = lambda metrics: f"SELECT date_trunc('hour', ts), hostname, {means(metrics)} FROM T WHERE {within(12)} GROUP BY 1, 2"
    last = START + datetime.timedelta(hours=hours) - datetime.timedelta(seconds=draw.randrange(600, 3600))
    return {
        "single-groupby-1-1-1": minutes(1, 1, 1),
        "single-groupby-1-1-12": minutes(1, 1, 12),
        "single-groupby-1-8-1": minutes(1, 8, 1),
        "single-groupby-5-1-1": minutes(5, 1, 1),
        "single-groupby-5-1-12": minutes(5, 1, 12),
        "single-groupby-5-8-1": minutes(5, 8, 1),
        "cpu-max-all-1": hourly(1, 8),
        "cpu-max-all-8": hourly(8, 8),
        "double-groupby-1": double(1),
        "double-groupby-5": double(5),
        "double-groupby-all": double(10),
        "high-cpu-1": f"SELECT * FROM T WHERE usage_user > 90 AND {of(1)} AND {within(12)}",
        "high-cpu-all": f"SELECT * FROM T WHERE usage_user > 90 AND {within(12)}",
        "lastpoint": "SELECT DISTINCT ON (hostname) * FROM T ORDER BY hostname, ts DESC",
        "groupby-orderby-limit": "SELECT date_trunc('minute', ts) AS m, max(usage_user) FROM T "
        f"WHERE ts < '{last}' GROUP BY 1 ORDER BY m DESC LIMIT 5",
    }


def of_chdb(name, sql):
    """The same question in the dialect of ClickHouse."""
    sql = sql.replace("date_trunc('minute', ts)", "toStartOfMinute(ts)").replace("date_trunc('hour', ts)", "toStartOfHour(ts)")
    if name == "lastpoint":
        return "SELECT * FROM T ORDER BY hostname, ts DESC LIMIT 1 BY hostname"
    return sql


class Peers:
    """DuckDB's own table, and chdb's MergeTree if there is one, both in order of host and time."""

    def __init__(self, home, inputs):
        import duckdb

        self.db = duckdb.connect(str(home / "peer.duckdb"))
        self.db.execute(f"SET threads = {THREADS}")
        self.db.execute("SET enable_progress_bar = false")
        if not self.db.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'T'").fetchall():
            self.db.execute(f"CREATE TABLE T AS SELECT * FROM '{inputs}/*.parquet' ORDER BY hostname, ts")
            self.db.execute("CHECKPOINT")
        try:
            import chdb.session
        except ImportError:
            self.chdb = None
            return
        is_new = not (home / "chdb").exists()
        self.chdb = chdb.session.Session(str(home / "chdb"))
        self.chdb.query(f"SET max_threads = {THREADS}")
        if is_new:
            columns = ", ".join(f"{name} Int64" for name in METRICS)
            self.chdb.query("CREATE DATABASE bench")
            self.chdb.query(
                f"CREATE TABLE bench.T (hostname LowCardinality(String), ts DateTime64(6, 'UTC'), {columns}) "
                "ENGINE = MergeTree ORDER BY (hostname, ts)"
            )
            self.chdb.query(f"INSERT INTO bench.T SELECT * FROM file('{inputs}/*.parquet', Parquet)")
            self.chdb.query("OPTIMIZE TABLE bench.T FINAL")
        self.chdb.query("USE bench")

    def seconds_of_chdb(self, sql):
        start = time.perf_counter()
        self.chdb.query(f"{sql} SETTINGS max_threads = {THREADS}", "Arrow")
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tidetable", "queries", "python", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--hosts", type=int, default=4_000)
    parser.add_argument("--hours", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1, help="seed of the samples and of hosts and ranges in queries")
    parser.add_argument("--runs", type=int, default=5, help="runs of each engine, of which the median counts")
    parser.add_argument("--only", action="append", help="only queries whose name contains this; may be given more than once")
    args = parser.parse_args()
    if pathlib.Path(sys.prefix) != args.python.absolute().parent.parent:
        os.execv(args.python, [str(args.python), "-B", *sys.argv])
    home = args.work.absolute() / f"tsbs-{args.hosts}x{args.hours}-{args.seed}"
    inputs = home / "inputs"
    if not inputs.exists():
        partial = home / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        generate(args.hosts, args.hours, args.seed, partial)
        partial.rename(inputs)
    two_cores()
    peers = Peers(home, inputs)
    project = home / "project"
    shutil.rmtree(project, ignore_errors=True)
    (project / "jobs/tsbs").mkdir(parents=True)
    (project / "tidetable.toml").write_text('root = "data"\n')
    columns = "\n".join(f'{name} = "int64"' for name in METRICS)
    (project / "jobs/tsbs/job.toml").write_text(JOB.format(files=inputs, columns=columns))
    env = dict(os.environ, RAYON_NUM_THREADS=str(THREADS))
    start = time.perf_counter()
    subprocess.run([args.tidetable.absolute(), "run", "tsbs", "--quiet"], cwd=project, env=env, check=True)
    loaded = time.perf_counter() - start
    session = Session(args.queries.absolute(), project / "data")
    print(f"{machine()}; {args.hosts} hosts, {args.hours} hours, seed {args.seed}; medians of {args.runs} runs in turn; "
          f"loaded in {loaded:.1f} s\n")
    comparison, of_peer = Comparison(args.runs, args.only), []
    for name, sql in queries(args.hosts, args.hours, args.seed).items():
        before = len(comparison.ratios)
        comparison.ask("tsbs", name, sql, sql, session, peers.db, home / "answer.tsv")
        if peers.chdb and len(comparison.ratios) > before:
            theirs = of_chdb(name, sql)
            peers.seconds_of_chdb(theirs)
            pairs = [(session.seconds(sql)[0], peers.seconds_of_chdb(theirs)) for _ in range(args.runs)]
            of_peer.append((name, *(statistics.median(of) for of in zip(*pairs))))
    session.close()
    code = comparison.finish(1.1)
    if of_peer:
        print("\n| query | tidetable | chdb, MergeTree | ratio |\n|---|---|---|---|")
        for name, own, peer in of_peer:
            print(f"| {name} | {text(own)} | {text(peer)} | {own / peer:.2f} x |")
        mean = math.exp(statistics.mean(math.log(own / peer) for _, own, peer in of_peer))
        print(f"\nGeometric mean of {len(of_peer)} ratios to chdb: {mean:.2f} x.")
    return code


if __name__ == "__main__":
    sys.exit(main())
