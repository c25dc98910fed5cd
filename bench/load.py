#!/usr/bin/env python3
"""Loads the same readings with tidetable and with DuckDB, in turn, and compares time, memory and bytes.

    load.py TIDETABLE READINGS WORK [--scale N] [--runs N]

TIDETABLE is the release binary, READINGS the generator (example `readings` of the crate testkit), WORK a folder for
data. Scale 1 is 20,000 meters x 96 readings x 10 days in ten CSV files in time order. Each engine is held to two
threads, sorts by meter and time, syncs what it wrote, and must then answer the right count and sum: a run that does not
is no run. Prints the median of the runs as a Markdown table, with ratios to the faster DuckDB.
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

JOB = """name = "meters"
[sources.readings]
files = ["{input}/*.csv"]
time = "ts"
[sources.readings.columns]
meter = "uint64"
ts = {{ format = "%Y-%m-%dT%H:%M:%SZ" }}
kwh = "float64"
[tables.SENSOR]
row_key = "{{meter:010}}#{{ts:%Y%m%d}}"
[tables.SENSOR.families.METER]
gc = "maxversions=1"
columns = [
  {{ qualifier = "ID", value = "{{meter}}" }},
  {{ qualifier = "{{ts:%H%M}}", value = "{{kwh}}" }},
]
"""

DUCKDB = """
import duckdb, os, sys
source, out, key = sys.argv[1:]
db = duckdb.connect()
db.execute("SET threads = 2")
columns = "{'meter': 'UBIGINT', 'ts': 'TIMESTAMP', 'kwh': 'DOUBLE'}"
read = f"SELECT * FROM read_csv('{source}/*.csv', auto_detect = false, header = true, delim = ',', columns = {columns}, timestampformat = '%Y-%m-%dT%H:%M:%SZ')"
order = "meter, ts" if key == "columns" else "key, ts"
if key == "text":
    read = f"SELECT lpad(meter::VARCHAR, 10, '0') || '#' || strftime(ts, '%Y%m%d') AS key, ts, kwh FROM ({read})"
db.execute(f"COPY ({read} ORDER BY {order}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)")
handle = os.open(out, os.O_RDONLY)
os.fsync(handle)
"""

DUCKDB_CHECK = """
import duckdb, sys
db = duckdb.connect()
db.execute("SET enable_progress_bar = false")
print(*db.execute(f"SELECT count(*), sum(kwh) FROM '{sys.argv[1]}'").fetchone())
"""


def measured(command, cwd, env=None):
    """Seconds and peak resident bytes of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        sys.exit(f"{command} failed: {message.decode()}")
    return seconds, usage.ru_maxrss * 1024


def size(path):
    path = pathlib.Path(path)
    return path.stat().st_size if path.is_file() else sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


class Tidetable:
    name = "tidetable"

    def __init__(self, binary, work, source):
        self.binary, self.work = binary, work
        folder = work / "jobs/meters"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "job.toml").write_text(JOB.format(input=source))
        (work / "tidetable.toml").write_text('root = "data"\n')
        self.env = dict(os.environ, RAYON_NUM_THREADS="2", TOKIO_WORKER_THREADS="2")

    def load(self):
        shutil.rmtree(self.work / "data", ignore_errors=True)
        return measured([self.binary, "run", "meters"], self.work, self.env)

    def bytes(self):
        return size(self.work / "data/tables")

    def answer(self):
        query = "SELECT count(*) AS n, sum(kwh) AS total FROM SENSOR"
        command = [self.binary, "sql", "--output", "json", "-c", query]
        answer = json.loads(subprocess.check_output(command, cwd=self.work))
        return answer["n"], answer["total"]


class DuckDb:
    def __init__(self, key, work, source):
        self.name = f"DuckDB, Parquet zstd, sorted by {'meter, ts' if key == 'columns' else 'key as text, ts'}"
        self.key, self.source, self.out = key, source, work / f"duckdb-{key}.parquet"

    def load(self):
        self.out.unlink(missing_ok=True)
        return measured([sys.executable, "-c", DUCKDB, str(self.source), str(self.out), self.key], self.source)

    def bytes(self):
        return size(self.out)

    def answer(self):
        words = subprocess.check_output([sys.executable, "-c", DUCKDB_CHECK, str(self.out)], text=True).split()
        return int(words[0]), float(words[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tidetable", type=pathlib.Path)
    parser.add_argument("readings", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    work = args.work.resolve()
    source = work / f"readings-{args.scale}"
    if not source.is_dir():
        making = work / "making"
        shutil.rmtree(making, ignore_errors=True)
        subprocess.check_call([args.readings.resolve(), making, "20000", str(10 * args.scale)])
        making.rename(source)
    engines = [Tidetable(args.tidetable.resolve(), work, source), DuckDb("columns", work, source), DuckDb("text", work, source)]
    runs = {engine.name: [] for engine in engines}
    answers = {}
    for _ in range(args.runs):
        for engine in engines:
            runs[engine.name].append(engine.load())
            answers[engine.name] = engine.answer()
    count, total = next(iter(answers.values()))
    expected = 20_000 * 96 * 10 * args.scale
    for name, (rows, kwh) in answers.items():
        if rows != expected or abs(kwh - total) > abs(total) * 1e-9:
            sys.exit(f"{name} answers {rows} rows and {kwh} kWh, expected {expected} and {total}")
    seconds = {name: statistics.median(run[0] for run in all_runs) for name, all_runs in runs.items()}
    best = min(value for name, value in seconds.items() if name != "tidetable")
    print(f"{count:,} readings, {size(source) / 1e6:.0f} MB of CSV, median of {args.runs}, 2 threads\n")
    print("| | seconds | readings/s | faster than the better DuckDB | bytes a reading | peak memory |")
    print("|---|---|---|---|---|---|")
    for engine in engines:
        peak = max(run[1] for run in runs[engine.name]) / 2**20
        took = seconds[engine.name]
        print(
            f"| {engine.name} | {took:.2f} | {count / took / 1e6:.2f} M | {best / took:.2f} x "
            f"| {engine.bytes() / count:.3f} | {peak:.0f} MiB |"
        )


if __name__ == "__main__":
    main()
