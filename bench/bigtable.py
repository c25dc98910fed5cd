#!/usr/bin/env python3
"""Measures `tidetable serve` over loopback: single rows, and a scan.

    bigtable.py TIDETABLE READ_LOAD GENERATORS WORK [--scale N] [--runs N] [--seconds N] [--streams N] [--seed N]

TIDETABLE is the release binary with the feature `bigtable`, READ_LOAD the example of crates/bigtable, GENERATORS and WORK as for
run.py. Server and client share two cores. Prints a Markdown table of medians.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

from cases import DAYS, METERS
from inputs import Input
from measure import Failed, machine, measured, two_cores
from report import arrival
from shapes import METER

HEAD = "| what | measured | goal | held |\n|---|---|---|---|"


class Tools:
    """Paths of programs and data."""

    def __init__(self, args):
        self.tidetable, self.load = args.tidetable.absolute(), args.read_load.absolute()
        self.generators, self.work = args.generators.absolute(), args.work.absolute()


class Server:
    """A running `tidetable serve`, on two cores, until the block ends."""

    def __init__(self, tools, home):
        self.command, self.home = [str(tools.tidetable), "serve", "--bind", "127.0.0.1:0"], home

    def __enter__(self):
        self.process = subprocess.Popen(self.command, cwd=self.home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, preexec_fn=two_cores)
        line = self.process.stdout.readline().strip()
        if not line.startswith("export BIGTABLE_EMULATOR_HOST="):
            self.__exit__()
            raise Failed("the server does not start")
        return line.split("=", 1)[1]

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def prepared(tools, given):
    """A project whose table holds the readings, compacted."""
    home = tools.work / "projects" / "bigtable"
    shutil.rmtree(home, ignore_errors=True)
    job = home / "jobs" / given.shape.name
    job.mkdir(parents=True)
    (job / "job.toml").write_text(given.shape.job_file(f"{given.folder}/*.{given.form}"))
    (home / "tidetable.toml").write_text('root = "data"\n')
    env = {name: value for name, value in os.environ.items() if name != "TIDETABLE_ROOT"}
    measured([tools.tidetable, "run", given.shape.name, "--quiet"], home, env)
    measured([tools.tidetable, "compact", given.shape.table, "--quiet"], home, env)
    return home


def asked(tools, address, mode, *options):
    """What the client of loads has measured."""
    command = [tools.load, address, METER.table, mode, *options]
    return json.loads(measured(command, tools.work)[2])


def row(what, shown, goal, held):
    print(f"| {what} | {shown} | {goal} | {'yes' if held else 'no'} |", flush=True)
    return held


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tidetable", "read_load", "generators", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=0.2, help="multiplies the number of meters")
    parser.add_argument("--runs", type=int, default=3, help="runs, of which the median counts")
    parser.add_argument("--seconds", type=int, default=10, help="seconds of single reads")
    parser.add_argument("--streams", type=int, default=16, help="single reads at a time")
    parser.add_argument("--seed", type=int, default=1, help="seed of the readings")
    parser.add_argument("--ordered", action="store_true", help="readings of ascending ids in order, each once and on time")
    args = parser.parse_args()
    tools = Tools(args)
    tools.work.mkdir(parents=True, exist_ok=True)
    given = Input(METER, METERS * args.scale, DAYS, seed=args.seed, ordered=args.ordered)
    try:
        given.prepare(tools)
        home = prepared(tools, given)
        print(f"{machine()}; server and client share two cores; medians of {args.runs} runs; readings: {arrival(args)}\n")
        print(HEAD)
        with Server(tools, home) as address:
            points, scans = [], []
            for _ in range(args.runs):
                points.append(asked(tools, address, "points", "--seconds", args.seconds, "--streams", args.streams))
                scans.append(asked(tools, address, "scan"))
    except Failed as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    of = lambda runs, what: statistics.median(run[what] for run in runs)
    reads, p99 = of(points, "reads_per_second"), of(points, "p99_ms")
    cells, rate = of(scans, "cells_per_second"), of(scans, "bytes_per_second")
    row(f"single rows, {args.streams} at a time", f"{reads:,.0f}/s, p50 {of(points, 'p50_ms'):.2f} ms, p99 {p99:.2f} ms",
        "10,000/s, p99 5 ms", reads >= 10_000 and p99 <= 5)
    row(f"scan of {scans[0]['cells']:,} cells", f"{cells / 1e6:.2f} M cells/s, {rate / 1e6:.0f} MB/s", "3 M cells/s", cells >= 3e6)
    return 0


if __name__ == "__main__":
    sys.exit(main())
