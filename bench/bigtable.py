#!/usr/bin/env python3
"""Measures `tidetable serve` over loopback: single rows, and a scan; and `push`, `pull` and `diff`.

    bigtable.py TIDETABLE READ_LOAD GENERATORS WORK [--scale N] [--runs N] [--seconds N] [--streams N] [--seed N] [--only PART]
                [--python PYTHON]

TIDETABLE is the release binary with the feature `bigtable`, READ_LOAD the example of crates/bigtable, beside which `write_sink`
lies; GENERATORS and WORK as for run.py. Server and client share two cores. `push` goes into a sink that counts, and into
cbtemulator where it is installed, beside the plain client of PYTHON, which writes a part of the same rows. Prints a Markdown table
of medians.
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time

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


class Sink(Server):
    """A running `write_sink`."""

    def __init__(self, tools, home):
        self.command, self.home = [str(tools.load.with_name("write_sink")), "0"], home


class Emulator:
    """A running cbtemulator."""

    PROGRAM = shutil.which("cbtemulator") or "/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator"

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [self.PROGRAM, "-host", "127.0.0.1", "-port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=two_cores)
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return f"127.0.0.1:{port}"
            time.sleep(0.05)
        raise Failed("the emulator does not start")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


TARGET = "projects/p/instances/i"
# Rows that the plain client writes, one after the other, in batches of its own.
PLAIN = """
import datetime, json, sys, time
from google.cloud import bigtable
client = bigtable.Client(project="p", admin=True)
table = client.instance("i").table("PLAIN")
table.create(column_families={"METER": None})
rows = [json.loads(line) for line in sys.stdin]
begun = time.perf_counter()
cells = 0
with table.mutations_batcher(flush_count=1000) as batcher:
    for row in rows:
        written = table.direct_row(row["key"])
        for cell in row["cells"]:
            written.set_cell(cell["family"], cell["qualifier"], cell["value"].encode(), timestamp=datetime.datetime.fromisoformat(cell["timestamp"].replace("Z", "+00:00")))
            cells += 1
        batcher.mutate(written)
print(json.dumps({"cells": cells, "seconds": time.perf_counter() - begun}))
"""


def called(tools, home, address, *command):
    """The object that a command prints."""
    env = {name: value for name, value in os.environ.items() if name != "TIDETABLE_ROOT"}
    env["BIGTABLE_EMULATOR_HOST"] = address
    return json.loads(measured([tools.tidetable, *command, "--quiet", "--output", "json"], home, env)[2])


def pushed(tools, home, address, name, *options):
    """Cells a second of a push into a new table."""
    found = called(tools, home, address, "push", METER.table, "--to", f"{TARGET}/tables/{name}", "--create", "--yes", *options)
    return found["cells"] / found["seconds"], found["cells"]


def plain(tools, home, address, python, rows):
    """Cells a second of the plain client, of the first rows of the table."""
    env = {**os.environ, "BIGTABLE_EMULATOR_HOST": address}
    env.pop("TIDETABLE_ROOT", None)
    read = [str(tools.tidetable), "read", METER.table, "--limit", str(rows), "--output", "json"]
    lines = subprocess.run(read, cwd=home, env=env, capture_output=True, text=True, check=True).stdout.splitlines()
    done = subprocess.run([python, "-c", PLAIN], input="\n".join(lines), env=env, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"the plain client: {done.stderr[-400:]}")
    found = json.loads(done.stdout)
    return found["cells"] / found["seconds"]


def transfers(tools, home, args):
    """Push into a sink and into the emulator, pull and diff from `serve`."""
    median = lambda of: statistics.median(of() for _ in range(args.runs))
    with Sink(tools, home) as address:
        rates = [pushed(tools, home, address, f"T{run}") for run in range(args.runs)]
        rate = statistics.median(rate for rate, _ in rates)
        row(f"push of {rates[0][1]:,} cells into a sink", f"{rate / 1e6:.2f} M cells/s", "2 M cells/s", rate >= 2e6)
    with Server(tools, home) as address:
        source = f"{TARGET}/tables/{METER.table}"
        job = home / "jobs" / "pulled"
        job.mkdir(parents=True, exist_ok=True)
        text = (home / "jobs" / args.job / "job.toml").read_text()
        lines = ['files = ["pulled/*.parquet"]' if line.startswith("files = ") else line for line in text.splitlines()]
        lines = ['name = "pulled"' if line.startswith("name = ") else line for line in lines]
        (job / "job.toml").write_text("\n".join(lines) + "\n")

        def pull(*options):
            shutil.rmtree(home / "pulled", ignore_errors=True)
            found = called(tools, home, address, "pull", source, *options)
            return found["cells"] / found["seconds"]

        rate = median(lambda: pull("--into", "pulled"))
        row("pull through a layout, from `serve`", f"{rate / 1e6:.2f} M cells/s", "1 M cells/s", rate >= 1e6)

        def diff():
            begun = time.perf_counter()
            found = called(tools, home, address, "diff", METER.table, source)
            if not found["equal"]:
                raise Failed("the table differs from itself")
            return found["cells_equal"] / (time.perf_counter() - begun)

        rate = median(diff)
        row("diff with `serve`", f"{rate / 1e6:.2f} M cells/s", "", True)
    if not pathlib.Path(Emulator.PROGRAM).exists():
        print("\nThe emulator is not installed: push into it is left out.")
        return
    rates, plains = [], []
    for run in range(args.runs):
        with Emulator() as address:
            rates.append(pushed(tools, home, address, f"T{run}", "--end", args.end)[0])
            plains.append(plain(tools, home, address, args.python, 1000))
    rate, of_plain = statistics.median(rates), statistics.median(plains)
    goal = min(150_000, 0.9 * of_plain)
    row("push into the emulator", f"{rate:,.0f} cells/s; the plain client {of_plain:,.0f}", f"{goal:,.0f} cells/s", rate >= goal)


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
    parser.add_argument("--only", choices=("serve", "transfers"), help="only these")
    parser.add_argument("--python", default=sys.executable, help="a Python with google-cloud-bigtable")
    parser.add_argument("--end", default="0000001000", help="the key before which rows go into the emulator")
    args = parser.parse_args()
    tools = Tools(args)
    tools.work.mkdir(parents=True, exist_ok=True)
    given = Input(METER, METERS * args.scale, DAYS, seed=args.seed, ordered=args.ordered)
    try:
        given.prepare(tools)
        home = prepared(tools, given)
        print(f"{machine()}; server and client share two cores; medians of {args.runs} runs; readings: {arrival(args)}\n")
        print(HEAD)
        args.job = given.shape.name
        if args.only != "serve":
            transfers(tools, home, args)
        if args.only == "transfers":
            return 0
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
