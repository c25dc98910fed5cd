#!/usr/bin/env python3
"""Measures `compare`, `heatmap` and `lint` over the reference in five layouts, beside the loads of one and of all five.

    advisor.py TIDETABLE GENERATORS WORK [--scale N] [--runs N] [--seed N] [--ordered]

TIDETABLE is the release binary; GENERATORS and WORK as for run.py. The commands take turns, each on two cores. Prints a Markdown
table of medians.
"""

import argparse
import pathlib
import shutil
import statistics
import sys

from cases import DAYS, METERS
from engines import Tools
from inputs import Input
from measure import Failed, machine, measured
from report import arrival
from shapes import METER

HEAD = "| what | time | memory | goal | held |\n|---|---|---|---|---|"
SOURCE = METER.job[: METER.job.index("[tables.")]
# Keys of rows, and the columns of their families.
LAYOUTS = {
    "DAYS": ("{meter:010}#{ts:%Y%m%d}", 'gc = "maxversions=1"', '{ qualifier = "{ts:%H%M}", value = "{kwh}" }'),
    "CELLS": ("{meter:010}#{ts:%Y%m%d}", "", '{ qualifier = "KWH", value = "{kwh}" }'),
    "EVENTS": ("{meter:010}#{ts:ms}", 'gc = "maxversions=1"', '{ qualifier = "KWH", value = "{kwh}" }'),
    "MESSAGES": ("{meter:010}#{ts:ms}", 'gc = "maxversions=1"', '{ qualifier = "M", message = "Reading" }'),
    "DAY_FIRST": ("{ts:%Y%m%d}#{meter:010}", 'gc = "maxversions=1"', '{ qualifier = "{ts:%H%M}", value = "{kwh}" }'),
}
TABLE = '[tables.{name}]\nrow_key = "{key}"\n[tables.{name}.families.F]\n{gc}\ncolumns = [{column}]\n'
MESSAGE = "[messages.Reading]\nfields = { kwh = 1 }\n"
FIVE, ONE = "five", "one"
MIB = 2**20


def job(name, files, layouts):
    tables = "".join(
        TABLE.format(name=table, key=key, gc=gc, column=column)
        for table, (key, gc, column) in LAYOUTS.items()
        if table in layouts
    )
    source = SOURCE.format(files=f'"{files}"').replace('"meter"', f'"{name}"', 1)
    return source + (MESSAGE if "MESSAGES" in layouts else "") + tables


def project(home, files):
    shutil.rmtree(home, ignore_errors=True)
    for name, layouts in ((FIVE, list(LAYOUTS)), (ONE, ["DAYS"])):
        folder = home / "jobs" / name
        folder.mkdir(parents=True)
        (folder / "job.toml").write_text(job(name, files, layouts))
    (home / "tidetable.toml").write_text('root = "data"\n')


def line(what, seconds, peaks, goal="", held=""):
    time = f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    print(f"| {what} | {time} | {max(peaks) / MIB:.0f} MiB | {goal} | {held} |", flush=True)


def yes(held):
    return "yes" if held else "no"


def measure(args, tools, home):
    def again(*words, fresh=False):
        times, peaks = [], []
        for _ in range(args.runs):
            if fresh:
                shutil.rmtree(home / "data", ignore_errors=True)
            seconds, peak, _ = measured([tools.tidetable, *words], home)
            times.append(seconds)
            peaks.append(peak)
        return statistics.median(times), peaks

    one = again("run", ONE, fresh=True)
    line("`run`, one table", *one)
    five = again("run", FIVE, fresh=True)
    line("`run`, five tables", *five)
    compare = again("compare", FIVE)
    ratio = compare[0] / five[0]
    held = yes(ratio <= 3 and max(compare[1]) <= 2**30)
    line(f"`compare`, five layouts: {ratio:.1f} x their load", *compare, "3 x, 1 GiB", held)
    for table, what in (("DAYS", "a row a day"), ("EVENTS", "a row an event")):
        seconds, peaks = again("heatmap", table)
        goal = ("0.5 s", yes(seconds <= 0.5)) if table == "DAYS" else ("", "")
        line(f"`heatmap`, {what}", seconds, peaks, *goal)
    seconds, peaks = again("lint", FIVE)
    line("`lint` without data", seconds, peaks, "50 ms", yes(seconds <= 0.05))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tidetable", "generators", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1, help="multiplies the number of meters (0.01 to try it out)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each command, of which the median counts")
    parser.add_argument("--seed", type=int, default=1, help="seed of the readings")
    parser.add_argument("--ordered", action="store_true", help="readings of ascending ids in order, each once and on time")
    args = parser.parse_args()
    work = args.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    tools = Tools(args.tidetable.absolute(), args.generators.absolute(), pathlib.Path(sys.executable), work)
    given = Input(METER, METERS * args.scale, DAYS, seed=args.seed, ordered=args.ordered)
    given.prepare(tools)
    given.warm()
    home = work / "advisor"
    project(home, f"{given.folder}/*.csv")
    print(f"{machine()}; two cores; medians of {args.runs}, most memory of any; readings: {arrival(args)}\n\n{HEAD}")
    try:
        measure(args, tools, home)
    except Failed as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
