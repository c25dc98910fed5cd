"""Times the commands that read the history of a store: status, plan, an idle run, runs.inputs.

    just bench-history                        1,000 days, a run per day
    just bench-history --days 100 --runs 3

Creates a project below FOLDER, once: a file, a run and an export per day. The files are hourly readings made by the example
`readings` of the crate testkit, from the directory GENERATORS: some of a file's readings are late, of days before. Then
runs each command several times and prints the median time, and, if strace is installed, the number of files opened.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date, timedelta

JOB = """\
name = "meters"

[sources.readings]
files = ["in/{day:%Y-%m-%d}.csv"]
time = "ts"
columns = { meter = "uint64", ts = "timestamp", kwh = "float64" }

[tables.SENSOR]
row_key = "{meter:010}#{ts:%Y%m%d}"
[tables.SENSOR.families.METER]
columns = [{ qualifier = "{ts:%H%M}", value = "{kwh}" }]

[tables.HOURLY]
from = { query = { sql = "select meter, date_trunc('hour', ts) as ts, sum(kwh) as kwh from SENSOR group by 1, 2" } }
row_key = "{meter:010}#{ts:%Y%m%d}"
[tables.HOURLY.families.METER]
columns = [{ qualifier = "{ts:%H}", value = "{kwh}" }]

[exports.DAY]
per = "day"
name = "DAY_{day:%Y%m%d}"
query = { sql = "select meter, sum(kwh) as kwh from SENSOR group by meter order by meter" }
"""

# The generator's first day.
FIRST = date(2017, 7, 26)

COMMANDS = {
    "status": ["status"],
    "plan": ["plan", "meters"],
    "idle run": ["run", "meters"],
    "runs.inputs": ["sql", "-c", "select count(*) from runs.inputs"],
    "runs.runs": ["sql", "-c", "select count(*) from runs.runs"],
    "history": ["history"],
    "lineage of a day": ["lineage", "SENSOR", str(FIRST + timedelta(days=4))],
    "catch-up, dry": ["schedule", "--check"],
}


def make(args, folder):
    """A project that was run every day; continues where it was stopped."""
    binary, days = args.binary, args.days
    (folder / "jobs/meters").mkdir(parents=True, exist_ok=True)
    (folder / "in").mkdir(exist_ok=True)
    (folder / "tidetable.toml").write_text('root = "data"\n')
    (folder / "jobs/meters/job.toml").write_text(JOB)
    # Generated files, which are moved to the inputs one by one, before the run of their day.
    coming = folder / "coming"
    command = [args.generators / "readings", coming, str(args.meters), str(days), "--per-day", "24", "--seed", str(args.seed)]
    subprocess.run(command + ["--ordered"] * args.ordered, check=True, capture_output=True)
    for number in range(days):
        day = FIRST + timedelta(days=number)
        file = folder / f"in/{day}.csv"
        done = folder / f"data/exports/DAY_{day:%Y%m%d}"
        if not file.exists():
            (coming / file.name).rename(file)
        if not done.exists():
            now = f"{day + timedelta(days=1)}T01:15:00Z"
            subprocess.run([binary, "run", "meters", "--now", now, "--if-locked", "wait"], cwd=folder, check=True, capture_output=True)
        if number % 100 == 99:
            print(f"{number + 1} of {days} days", file=sys.stderr)
    shutil.rmtree(coming)


def opened(binary, folder, words):
    """The number of files that a command opens."""
    if not shutil.which("strace"):
        return None
    with tempfile.NamedTemporaryFile() as log:
        command = ["strace", "-f", "-qq", "-e", "trace=openat", "-o", log.name, binary, *words]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return sum(1 for line in open(log.name, errors="replace") if str(folder) in line or "data/" in line)


def measure(binary, folder, words, runs):
    took = []
    for _ in range(runs):
        begun = time.perf_counter()
        subprocess.run([binary, *words], cwd=folder, check=True, capture_output=True)
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("generators", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument("--meters", type=int, default=10)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1, help="seed of the readings")
    parser.add_argument("--ordered", action="store_true", help="readings of ascending ids in order, each once and on time")
    parser.add_argument("--only", help="only commands whose names contain this")
    args = parser.parse_args()
    args.binary, args.generators = args.binary.resolve(), args.generators.resolve()
    binary = args.binary
    folder = args.folder.resolve() / f"{args.meters}-{'ordered' if args.ordered else 'irregular'}-{args.seed}"
    make(args, folder)
    for part in ["runs", "tables", "exports"]:
        sizes = [file.stat().st_size for file in (folder / "data" / part).rglob("*") if file.is_file()]
        print(f"{part}: {len(sizes)} files, {sum(sizes) / 1e6:.2f} MB")
    for name, words in COMMANDS.items():
        if args.only and args.only not in name:
            continue
        result = {"command": name, "ms": round(measure(binary, folder, words, args.runs) * 1e3, 1)}
        result["files_opened"] = opened(binary, folder, words)
        print(json.dumps(result))


if __name__ == "__main__":
    main()
