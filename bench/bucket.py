#!/usr/bin/env python3
"""Compares a root in a bucket with one in a directory, and with DuckDB's httpfs, without and with a delay of each reply.

    bucket.py TIDETABLE SERVER GENERATORS PYTHON WORK [--scale N] [--runs N] [--delay TIME] [--days N] [--only PART] [--seed N]

TIDETABLE is the release binary, SERVER that of crates/bucket-server, which listens on loopback and has all objects in memory;
GENERATORS and WORK as for run.py; PYTHON a Python with DuckDB and its extension httpfs, in which this script runs itself again.
tidetable runs a process for each load and query, with an empty cache of its own; DuckDB has a new connection for each query, its
extension and secret loaded before, and reads the Parquet exports of tidetable in the same bucket. Server and engines share the
machine: with more than two cores, the server has the others. Answers must be equal, float sums within 1e-9.
Prints a Markdown table of medians; exit code 1 if an answer is wrong.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

from answers import same
from bucket_server import BUCKET, Server
from cases import DAYS, METERS
from engines import Tools
from inputs import Input
from measure import THREADS, Failed, machine, measured
from report import arrival
from shapes import METER

ROOT = f"s3://{BUCKET}/bench"
HEAD = "| what | delay | measured | goal | held |\n|---|---|---|---|---|"

EXPORT = """[exports.DAY]
per = "day"
name = "DAY_{day:%Y%m%d}"
query = { file = "day.sql" }
"""

# Pairs of tidetable's and DuckDB's SQL; DAYS stands for the exports.
QUERIES = {
    "totals per day": (
        "SELECT CAST(ts AS DATE) AS day, count(*) AS n, sum(kwh) AS kwh FROM SENSOR GROUP BY 1",
        "SELECT CAST(ts AS DATE), count(*), sum(kwh) FROM DAYS GROUP BY 1",
    ),
    "count and sum": ("SELECT count(*) AS n, sum(kwh) AS kwh FROM SENSOR", "SELECT count(*), sum(kwh) FROM DAYS"),
    "one meter's ten days": (
        "SELECT ts, kwh FROM SENSOR WHERE meter = {one} ORDER BY ts",
        "SELECT ts::TIMESTAMP, kwh FROM DAYS WHERE meter = {one} ORDER BY ts",
    ),
    "top 10 meters of a day": (
        "SELECT meter, sum(kwh) AS kwh FROM SENSOR WHERE ts >= '2017-07-30' AND ts < '2017-07-31' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
        "SELECT meter, sum(kwh) FROM DAYS WHERE ts >= '2017-07-30' AND ts < '2017-07-31' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
    ),
}


class Project:
    """A project whose root is a directory, or in the bucket of `server`."""

    def __init__(self, tools, given, home, server=None):
        self.tools, self.given, self.home = tools, given, home
        shutil.rmtree(home, ignore_errors=True)
        self.job = home / "jobs" / given.shape.name
        self.job.mkdir(parents=True)
        (self.job / "job.toml").write_text(given.shape.job_file(f"{given.folder}/*.{given.form}"))
        (home / "tidetable.toml").write_text(f'root = "{ROOT if server else "data"}"\n')
        self.env = dict(os.environ, RAYON_NUM_THREADS=str(THREADS), TOKIO_WORKER_THREADS=str(THREADS))
        self.env.pop("TIDETABLE_ROOT", None)
        self.env |= server.environment() if server else {}

    def command(self, *words):
        """Seconds and output of a command with an empty cache."""
        with tempfile.TemporaryDirectory(dir=self.tools.work) as cache:
            seconds, _, text = measured([self.tools.tidetable, *words], self.home, self.env | {"XDG_CACHE_HOME": cache})
        return seconds, text

    def load(self):
        return self.command("run", self.given.shape.name)[0]

    def publish(self):
        """Publishes each day as a Parquet file."""
        (self.job / "day.sql").write_text("SELECT meter, ts, kwh FROM SENSOR ORDER BY meter, ts\n")
        job = self.job / "job.toml"
        job.write_text(job.read_text() + EXPORT)
        self.command("run", self.given.shape.name)

    def ask(self, sql):
        """Seconds and rows of a query."""
        seconds, text = self.command("sql", "--output", "json", "-c", sql)
        return seconds, [list(json.loads(line).values()) for line in text.splitlines()]

    def files(self):
        """Number of SSTs of the newest version."""
        version = json.loads(self.command("describe", self.given.shape.table, "--output", "json")[1])
        return len({sst["id"] for window in version["windows"] for sst in window["ssts"]})

    def clean(self):
        shutil.rmtree(self.home, ignore_errors=True)


class HttpFs:
    """DuckDB with httpfs, a new connection for each query."""

    def __init__(self, server):
        import duckdb

        self.duckdb, self.server, self.version = duckdb, server, duckdb.__version__
        # The extension of a wheel, or the one that this DuckDB finds or fetches.
        found = importlib.util.find_spec("duckdb_extension_httpfs")
        files = pathlib.Path(found.origin).parent.rglob("*.duckdb_extension") if found else []
        self.extension = next((f"LOAD '{file}'" for file in files), "INSTALL httpfs; LOAD httpfs")

    def connect(self):
        db = self.duckdb.connect(config={"threads": THREADS})
        db.execute(self.extension)
        db.execute("SET TimeZone = 'UTC'")
        keys = self.server.environment()
        db.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{keys['AWS_ACCESS_KEY_ID']}', SECRET '{keys['AWS_SECRET_ACCESS_KEY']}', "
            f"REGION '{keys['AWS_REGION']}', ENDPOINT '{self.server.endpoint.removeprefix('http://')}', "
            "URL_STYLE 'path', USE_SSL false)"
        )
        return db

    def ask(self, sql):
        """Seconds and rows of a query."""
        with self.connect() as db:
            start = time.perf_counter()
            rows = db.execute(sql.replace("DAYS", f"read_parquet('{ROOT}/exports/**/*.parquet')")).fetchall()
            return time.perf_counter() - start, rows


class Table:
    """The Markdown table of results, and whether all answers were right."""

    def __init__(self):
        self.right = True
        print(HEAD)

    def line(self, what, delay, measured, goal="", held=None, right=True):
        self.right &= right
        verdict = "wrong answer" if not right else "" if held is None else "yes" if held else "no"
        print(f"| {what} | {delay} | {measured} | {goal} | {verdict} |", flush=True)


def loads(args, tools, given, table):
    """Loads into a directory and into a bucket, in turn."""
    for delay, goal in (("0", 1.3), (args.delay, 2.0)):
        folder, bucket, counts = [], [], {}
        for _ in range(args.runs):
            local = Project(tools, given, tools.work / "bucket-local")
            folder.append(local.load())
            with Server(args.server, "--delay", delay) as server:
                remote = Project(tools, given, tools.work / "bucket-remote", server)
                bucket.append(remote.load())
                counts = server.counts()
                rows = [of.ask(QUERIES["count and sum"][0])[1] for of in (local, remote)]
        ours, theirs = statistics.median(bucket), statistics.median(folder)
        told = f"{ours:.2f} s, {theirs:.2f} s in a directory: {ours / theirs:.2f} x; {counts['total']} requests"
        table.line("load of the reference", delay, told, f"{goal} x", ours / theirs <= goal, same(*rows))
        local.clean()
        remote.clean()


def queries(args, tools, given, table):
    """Requests of a count, and queries of a directory, of a bucket and of httpfs in turn."""
    local = Project(tools, given, tools.work / "bucket-local")
    local.load()
    with Server(args.server) as server:
        remote = Project(tools, given, tools.work / "bucket-remote", server)
        remote.load()
        files = remote.files()
        server.count_anew()
        remote.ask(QUERIES["count and sum"][0])
        counts = server.counts()
        goal = 2 * files + 3
        told = f"{counts['total']} requests, {counts['sequential']} in sequence, {files} files, {counts['sent'] / 2**20:.1f} MiB"
        table.line("count and sum", "0", told, f"2 x {files} + 3", counts["total"] <= goal)
        remote.publish()
        peer = HttpFs(server)
        one = local.ask("SELECT meter FROM SENSOR ORDER BY meter LIMIT 1")[1][0][0]
        latency = float(args.delay.removesuffix("ms")) / 1e3
        for delay in ("0", args.delay):
            server.delay(delay)
            for name, (ours, theirs) in QUERIES.items():
                if args.only and args.only not in name and args.only != "queries":
                    continue
                ours, theirs = ours.format(one=one), theirs.format(one=one)
                taken, rows = {"folder": [], "bucket": [], "peer": []}, {}
                for _ in range(args.runs):
                    for engine, ask, sql in (("folder", local.ask, ours), ("bucket", remote.ask, ours), ("peer", peer.ask, theirs)):
                        seconds, rows[engine] = ask(sql)
                        taken[engine].append(seconds)
                folder, bucket, duck = (statistics.median(taken[engine]) for engine in ("folder", "bucket", "peer"))
                right = same(rows["bucket"], rows["folder"]) and same(rows["bucket"], rows["peer"])
                told = f"{bucket * 1e3:.0f} ms, {folder * 1e3:.0f} ms in a directory"
                if name == "totals per day" and delay != "0":
                    most = 6 * latency + 1.2 * folder
                    table.line(f"{name}, cold", delay, told, f"{most * 1e3:.0f} ms: 6 x {delay} + 1.2 x", bucket <= most, right)
                against = f"{bucket * 1e3:.0f} ms, DuckDB {peer.version} {duck * 1e3:.0f} ms: {bucket / duck:.2f} x"
                table.line(f"{name}, against httpfs", delay, against, "1.0 x", bucket <= duck, right)
    local.clean()
    remote.clean()


def idle(args, tools, table):
    """A run with nothing new over many stored days, each published."""
    given = Input(METER, 5, args.days, per_day=4, seed=args.seed, ordered=True)
    given.prepare(tools)
    with Server(args.server) as server:
        remote = Project(tools, given, tools.work / "bucket-remote", server)
        remote.load()
        remote.publish()
        server.delay(args.delay)
        server.count_anew()
        seconds, _ = remote.command("run", given.shape.name)
        counts = server.counts()
    told = f"{counts['sequential']} round trips in sequence, {counts['total']} requests, {seconds:.2f} s"
    table.line(f"a run with nothing new, {args.days} days", args.delay, told, "12 in sequence", counts["sequential"] <= 12)
    remote.clean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tidetable", "server", "generators", "python", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1, help="multiplies the number of meters (0.01 to try it out)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each engine, of which the median counts")
    parser.add_argument("--delay", default="30ms", help="time added to each reply, in ms")
    parser.add_argument("--days", type=int, default=1000, help="days stored for a run with nothing new")
    parser.add_argument("--only", help="only this part: load, queries, idle, or a query by its name")
    parser.add_argument("--seed", type=int, default=1, help="seed of the readings")
    parser.add_argument("--ordered", action="store_true", help="readings of ascending ids in order, each once and on time")
    args = parser.parse_args()
    if pathlib.Path(sys.prefix) != args.python.absolute().parent.parent:
        os.execv(args.python, [str(args.python), "-B", *sys.argv])
    if not args.delay.endswith("ms"):
        parser.error("give --delay in ms, such as 30ms")
    work = args.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    args.server = args.server.absolute()
    tools = Tools(args.tidetable.absolute(), args.generators.absolute(), args.python.absolute(), work)
    given = Input(METER, METERS * args.scale, DAYS, seed=args.seed, ordered=args.ordered)
    given.prepare(tools)
    wanted = lambda part: args.only in (None, part)
    cores = len(os.sched_getaffinity(0))
    shared = "the server shares them" if cores <= THREADS else "the server has the others"
    print(f"{machine()}; two cores for each engine, {shared}; medians of {args.runs} runs in turn; readings: {arrival(args)}\n")
    table = Table()
    given.warm()
    try:
        if wanted("load"):
            loads(args, tools, given, table)
        if wanted("queries") or args.only in QUERIES:
            queries(args, tools, given, table)
        if wanted("idle"):
            idle(args, tools, table)
    except Failed as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0 if table.right else 1


if __name__ == "__main__":
    sys.exit(main())
