#!/usr/bin/env python3
"""Loads the same telemetry with tidetable and the installed peers, alternating; compares time, memory and bytes.

    run.py TIDETABLE GENERATORS PYTHON WORK [--only CASE] [--scale N] [--runs N] [--seed N] [--ordered]

TIDETABLE is the release binary, GENERATORS the directory of the examples `readings` and `metrics` of the crate testkit,
PYTHON a Python with the peers, WORK a directory for data. Every engine has two cores and two threads, syncs its output,
and must then return the correct count and sums: otherwise the run is invalid, and its engine excluded. Duplicate rows count
once in tidetable, where they are the same cells, and twice in the peers, which keep them. The output of a run is removed
before the next; inputs stay in WORK, unless `--discard-inputs`. Prints the medians as a Markdown table;
exit code 1 if a run of tidetable is invalid.
"""

import argparse
import json
import pathlib
import sys

import report
from cases import NAMES, all_cases
from engines import Tools
from measure import Failed


class Result:
    """The runs of one engine in one case."""

    def __init__(self, case, engine, given):
        self.case, self.engine, self.given = case, engine, given
        self.seconds, self.peaks = [], []
        self.bytes = self.compacted = None
        # Of the median run; or the reason why there is none.
        self.stages, self.failed = [], engine.missing

    def run(self, last):
        """One run, from a clean start to a checked answer."""
        engine, given = self.engine, self.given
        try:
            seconds, peak = engine.load(given)
            answer = engine.answer(given)
            given.check(answer, engine.duplicates)
            self.bytes = engine.bytes(given, answer)
            if last:
                self.compacted = engine.compact(given)
            self.seconds.append(seconds)
            self.peaks.append(peak)
            self.stages.append(getattr(engine, "stages", {}))
        except Failed as failed:
            self.failed = str(failed)
        finally:
            engine.clean()


def measure(case, tools, runs, say):
    """The results of a case, with alternating runs; and whether its inputs were in the page cache."""
    results = [Result(case, engine, given) for engine, given in case.entries]
    warm = True
    for given in {id(given): given for _, given in case.entries}.values():
        try:
            given.prepare(tools)
        except Failed as failed:
            for result in results:
                result.failed = str(failed)
    for run in range(runs):
        for result in results:
            if result.failed:
                continue
            warm &= result.given.warm()
            result.run(last=run + 1 == runs)
            took = f"{result.seconds[-1]:.2f} s" if not result.failed else result.failed
            say(f"{case.name}, run {run + 1} of {runs}, {result.engine.name}: {took}")
    return results, warm


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tidetable", "generators", "python", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=NAMES, help="only these cases; `entities` and `day` run only so")
    parser.add_argument("--scale", type=float, default=1, help="multiplies the number of meters or hosts (0.01 to try it out)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each engine, of which the median counts")
    parser.add_argument("--seed", type=int, default=1, help="seed of the inputs")
    parser.add_argument("--ordered", action="store_true", help="inputs with ascending ids in order, each row once and on time")
    parser.add_argument("--discard-inputs", action="store_true", help="remove a case's inputs after it")
    parser.add_argument("--json", type=pathlib.Path, help="write every run to this file, too")
    args = parser.parse_args()
    work = args.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    # Not resolved: the Python of a virtual environment is a link, and works only under that name.
    tools = Tools(args.tidetable.absolute(), args.generators.absolute(), args.python.absolute(), work)
    say = lambda text: print(text, file=sys.stderr, flush=True)
    cases = [case for case in all_cases(tools, args) if (case.name in args.only if args.only else not case.optional)]
    results, cold = [], []
    for at, case in enumerate(cases):
        found, warm = measure(case, tools, args.runs, say)
        results += found
        cold += [] if warm else [case.title]
        if args.discard_inputs:
            later = {given.name for rest in cases[at + 1 :] for _, given in rest.entries}
            for _, given in case.entries:
                if given.name not in later:
                    given.discard()
    print(report.markdown(results, tools, args, cold))
    if args.json:
        args.json.write_text(json.dumps(report.records(results, tools, args), indent=1) + "\n")
    return 1 if any(result.failed and result.engine.ours for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
