#!/usr/bin/env python3
"""Runs a job on executors of one core each, and in one process held to one core.

    cluster.py TIDETABLE SERVER GENERATORS WORK [--units EXAMPLE] [--meters N] [--days N] [--runs N] [--seed N] [--only PART]

TIDETABLE is the release binary with the feature `cluster`, SERVER that of crates/bucket-server, which has all objects in memory;
GENERATORS and WORK as for run.py; EXAMPLE the program examples/units of crates/cluster. Each executor is pinned to a core of its own,
the driver and the scheduler to all cores, and the plain command to one. The job loads days of readings and publishes each as a Parquet
file, into a root in a directory and into one in the bucket. Published bytes must be the same each time.
Prints a Markdown table of medians; exit code 1 if bytes differ.
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bucket_server import BUCKET, Server
from engines import Tools
from inputs import Input
from measure import Failed, machine
from shapes import METER

HEAD = "| what | root | measured | goal | held |\n|---|---|---|---|---|"
EXPORT = """[exports.DAY]
per = "day"
name = "DAY_{day:%Y%m%d}"
query = { sql = "SELECT meter, ts, kwh FROM SENSOR ORDER BY meter, ts" }
"""
LIMIT_SECONDS = 3600


def pinned(core):
    """Pins the calling process to one core, or leaves it."""
    cores = sorted(os.sched_getaffinity(0))
    return (lambda: os.sched_setaffinity(0, {cores[core % len(cores)]})) if core is not None else None


class Project:
    """A project whose root is a directory, or a prefix of the bucket of `server`."""

    def __init__(self, args, given, server=None):
        self.args, self.given, self.server = args, given, server
        self.home = args.work / ("cluster-bucket" if server else "cluster")
        shutil.rmtree(self.home, ignore_errors=True)
        job = self.home / "jobs" / given.shape.name
        job.mkdir(parents=True)
        (job / "job.toml").write_text(given.shape.job_file(f"{given.folder}/*.{given.form}") + EXPORT)
        (self.home / "tidetable.toml").write_text('root = "data"\n')
        self.roots = 0
        self.cache = tempfile.mkdtemp(dir=self.home)
        # One core has one thread of each kind: more would only take turns.
        self.env = dict(os.environ, RAYON_NUM_THREADS="1", TOKIO_WORKER_THREADS="2", XDG_CACHE_HOME=self.cache)
        self.env.pop("TIDETABLE_ROOT", None)
        self.env |= server.environment() if server else {}

    def root(self):
        """A root that nothing is in."""
        self.roots += 1
        return f"s3://{BUCKET}/bench-{self.roots}" if self.server else str(self.home / f"root-{self.roots}")

    def start(self, core, *words, **options):
        return subprocess.Popen(
            [self.args.tidetable, *words], cwd=self.home, env=self.env, preexec_fn=pinned(core), **options
        )

    def run(self, *roots, core=None, on=None):
        """Seconds of runs at the same time, one in each root: on `core`, or on a core each if there are several."""
        os.sync()
        begun = time.perf_counter()
        processes = []
        for at, root in enumerate(roots):
            words = ["run", self.given.shape.name, "--root", root, "--now", "2026-01-01T00:00:00Z", "--quiet"]
            own = core if len(roots) == 1 else at
            processes.append(self.start(own, *words, *(["--on", on] if on else [])))
        codes = [process.wait(timeout=LIMIT_SECONDS) for process in processes]
        if any(codes):
            raise Failed(f"exit {codes}")
        return time.perf_counter() - begun

    def bytes(self, root):
        """A hash of all published files."""
        sums = hashlib.sha256()
        if self.server:
            # The rows of each published file; DuckDB is not needed here.
            query = "SELECT * FROM exports.\"DAY\" ORDER BY meter, ts"
            words = ["sql", "--root", root, "--output", "csv", "-c", query]
            rows = subprocess.check_output([self.args.tidetable, *words], cwd=self.home, env=self.env)
            sums.update(rows)
        else:
            for file in sorted((pathlib.Path(root) / "exports").rglob("part-*")):
                sums.update(file.read_bytes())
        return sums.hexdigest()


class Cluster:
    """A scheduler, and executors with a core each."""

    def __init__(self, project, root, executors):
        pipe = subprocess.PIPE
        self.processes = [project.start(None, "scheduler", "--bind", "127.0.0.1:0", stdout=pipe, text=True)]
        self.address = self.processes[0].stdout.readline().strip()
        for core in range(executors):
            words = ["executor", "--scheduler", self.address, "--root", root, "--slots", "1", "--quiet"]
            self.processes.append(project.start(core, *words))
        time.sleep(2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


def cases(args, project, where):
    """The lines of one kind of root, and whether all bytes were the same."""
    times = {"plain": [], "both": [], 1: [], 2: [], "nothing": []}
    hashes = set()
    for _ in range(args.runs):
        root = project.root()
        times["plain"].append(project.run(root, core=0))
        hashes.add(project.bytes(root))
        # Two runs with roots of their own: two executors can hardly gain more than they do.
        times["both"].append(project.run(project.root(), project.root()))
        for executors in (1, 2):
            root = project.root()
            with Cluster(project, root, executors) as cluster:
                times[executors].append(project.run(root, on=cluster.address))
                hashes.add(project.bytes(root))
                if executors == 2:
                    times["nothing"].append(project.run(root, on=cluster.address))
    middle = {what: statistics.median(seconds) for what, seconds in times.items()}
    right = len(hashes) == 1

    def line(what, measured, goal, held):
        print(f"| {what} | {where} | {measured} | {goal} | {'yes' if held and right else 'no'} |", flush=True)

    factor, cost = middle[1] / middle[2], middle[1] / middle["plain"]
    line("load and publish, one process on one core", f"{middle['plain']:.2f} s", "", True)
    most = 2 * middle["plain"] / middle["both"]
    line("two such processes at a time, a core each, against one after the other", f"{most:.2f} x", "", True)
    line("load and publish, two executors against one", f"{factor:.2f} x ({middle[2]:.2f} s)", ">= 1.8 x", factor >= 1.8)
    line("one executor against the plain command on one core", f"{cost:.2f} x", "<= 1.15 x", cost <= 1.15)
    line("a job with nothing to do", f"{middle['nothing']:.2f} s", "<= 1 s", middle["nothing"] <= 1)
    return right


def units(args):
    """2,000 units that wait 10 ms."""
    said = subprocess.check_output([args.units, "2000", "10", "2"], text=True, timeout=LIMIT_SECONDS)
    seconds = float(said.split(": ")[1].split(" s")[0])
    print(f"| 2,000 units of 10 ms on two executors | | {seconds:.1f} s | <= 15 s | {'yes' if seconds <= 15 else 'no'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for what in ("tidetable", "server", "generators", "work"):
        parser.add_argument(what, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--units", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--meters", type=int, default=20000)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["directory", "bucket", "units"])
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    given = Input(METER, args.meters, args.days, seed=args.seed)
    given.prepare(Tools(args.tidetable, args.generators, sys.executable, args.work))
    print(f"{given.name}, {machine()}, median of {args.runs} runs\n\n{HEAD}")
    right = True
    if args.only in (None, "directory"):
        right &= cases(args, Project(args, given), "directory")
    if args.only in (None, "bucket"):
        with Server(args.server) as server:
            right &= cases(args, Project(args, given, server), "bucket")
    if args.units and args.only in (None, "units"):
        units(args)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
