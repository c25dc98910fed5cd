#!/usr/bin/env python3
"""Compares what tidetable loads of nasty CSV files with the reference reader: records by key and time, rejects by line and cause.

    compare.py TIDETABLE FOLDER [--files 400] [--seed 1] [--batch 1000] [--show 20]

Files are made in batches, each a project in FOLDER with a job of one source a dialect; sources whose files grow are run once for each
state of their files. Prints each difference with the file's bytes and the job's settings, at the end `N files equal`. Exits with 1 if
something differs, and leaves the projects of batches that differ.
"""

import argparse
import collections
import datetime
import decimal
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

import pyarrow.parquet

import generate
import reference


def toml_columns(columns):
    """The declaration of columns in a job file."""
    lines = []
    for column in columns:
        kind = f"decimal({column.digits[0]},{column.digits[1]})" if column.kind == "decimal" else column.kind
        more = {key: getattr(column, key) for key in ("decimal", "thousands", "format", "timezone") if getattr(column, key)}
        if not more:
            lines.append(f"{column.name} = {json.dumps(kind)}")
        else:
            settings = more if "format" in more else {"type": kind, **more}
            lines.append(f"{column.name} = {{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items()) + " }")
    return "\n".join(lines)


def toml_csv(dialect):
    plain = reference.Dialect()
    found = []
    for key in ("delimiter", "quote", "escape", "comment", "decimal", "header", "skip", "null"):
        value = getattr(dialect, key)
        if value != getattr(plain, key):
            value = (value or b"").decode() if key in ("delimiter", "quote", "escape", "comment") else list(value) if isinstance(value, tuple) else value
            found.append(f"{key} = {json.dumps(value)}")
    return "csv = { " + ", ".join(found) + " }" if found else ""


def toml_source(source):
    """A source and its table. The folder of a file tells its rows from those of others; `at` is there in every record."""
    cells = [f'{{ qualifier = "{c.name}", value = "{{{c.name}}}" }}' for c in source.columns if c.name not in ("id", "ts")]
    cells.append('{ qualifier = "at", value = "{ts:%Y%m%dT%H%M%S}" }')
    return f"""
[sources.{source.name}]
files = ["in/{source.name}/*/*.csv"]
time = "ts"
max_rejected = "100%"
{toml_csv(source.dialect)}
[sources.{source.name}.columns]
file = "text"
{toml_columns(source.columns)}
[tables.{source.name.upper()}]
from = "{source.name}"
row_key = "{{file}}#{{id}}"
window = "{"day" if source.grows else "none"}"
granularity = "micros"
families.M = {{ columns = [{", ".join(cells)}] }}
"""


class Project:
    """A folder with a job `nasty`, in which the command runs."""

    def __init__(self, command, folder, sources):
        self.command, self.folder = command, folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "jobs/nasty").mkdir(parents=True)
        (folder / "tidetable.toml").write_text('root = "data"\n')
        (folder / "jobs/nasty/job.toml").write_text('name = "nasty"\n' + "".join(map(toml_source, sources)))

    def tidetable(self, *args, codes=(0,)):
        done = subprocess.run([self.command, "-C", self.folder, *args], capture_output=True, text=True)
        if done.returncode not in codes:
            raise SystemExit(f"{self.folder}: tidetable {' '.join(map(str, args))} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def rows(self, query):
        """The rows of a query, as dictionaries."""
        target = self.folder / "rows.parquet"
        self.tidetable("sql", "-c", query, "-O", target)
        found = pyarrow.parquet.read_table(target).to_pylist()
        target.unlink()
        return found


def select(source):
    """The records of a source's table, each value as text."""
    found = []
    for name in ["a", "b", "x", "n", "u", "d", "o", "y", "w"]:
        kind = next((column.kind for column in source.columns if column.name == name), None)
        if kind is None:
            found.append(f"CAST(NULL AS VARCHAR) AS {name}")
        elif kind == "timestamp":
            found.append(f"CAST(arrow_cast(arrow_cast({name}, 'Timestamp(Microsecond, Some(\"UTC\"))'), 'Int64') AS VARCHAR) AS {name}")
        else:
            found.append(f"CAST({name} AS VARCHAR) AS {name}")
    at = "arrow_cast(arrow_cast(ts, 'Timestamp(Microsecond, Some(\"UTC\"))'), 'Int64')"
    return f"SELECT '{source.name}' AS source, file, CAST(id AS VARCHAR) AS id, {at} AS ts, {', '.join(found)} FROM {source.name.upper()}"


def from_text(text, kind):
    """A value as the query printed it."""
    if text is None or kind in ("text", "date"):
        return text
    if kind == "bool":
        return text == "true"
    if kind in ("int64", "uint64", "timestamp"):
        return int(text)
    return float(text) if kind == "float64" else decimal.Decimal(text)


def stored(reading, source):
    """The records that a table holds of a reading, by identity and time, and all rejects as line -> causes.

    Of two records with the same key and time the later one wins where it has a value.
    """
    records, rejects = {}, {reject.line: set(reject.causes) for reject in reading.rejects}
    for line, values in reading.records:
        # Times before 1970 cannot be a timestamp of a cell; years end with 9999.
        if values["id"] is None or values["ts"] is None or not 0 <= values["ts"] < 253402300800 * 10**6:
            rejects[line] = {"key"}
            continue
        record = records.setdefault((str(values["id"]), values["ts"]), {})
        for name, value in values.items():
            if name not in ("id", "ts") and value is not None:
                record[name] = value.isoformat() if isinstance(value, datetime.date) else value
    return records, rejects


def cause(row):
    """The class of a reject of tidetable."""
    reason = row["reason"]
    if "quote opened" in reason:
        return "quote"
    if reason.startswith("expected ") and " columns, found " in reason:
        return "columns"
    if reason.startswith("not UTF-8"):
        return "utf8"
    if "a field of the key or a timestamp is null" in reason or "a timestamp before 1970" in reason or "outside the years" in reason and row["column_name"] is None:
        return "key"
    return "value:" + row["column_name"] if row["column_name"] else reason


class Batch:
    """Some sources with their files, in one project."""

    def __init__(self, command, folder, seed, files):
        self.sources, self.files = generate.Generator(random.Random(seed)).batch(files)
        self.project = Project(command, folder, self.sources)
        self.loaded, self.rejects, self.differences = {}, collections.defaultdict(dict), []

    def run(self):
        for step in range(max(len(file.states) for file in self.files)):
            self.write(step)
            self.project.tidetable("run", "nasty", "--quiet")
            self.compare(step)
            if self.differences:
                break
        return self.differences

    def write(self, step):
        for file in self.files:
            if step < len(file.states):
                folder = self.project.folder / "in" / file.source.name / f"file={file.folder}"
                folder.mkdir(parents=True, exist_ok=True)
                name, content = file.states[step]
                if step and file.states[step - 1][0] != name:
                    (folder / file.states[step - 1][0]).rename(folder / name)
                (folder / name).write_bytes(content)
                self.loaded[file.folder] = reference.load(content, file.source.dialect, file.source.columns, self.loaded.get(file.folder))

    def compare(self, step):
        records = collections.defaultdict(dict)
        for row in self.project.rows(" UNION ALL ".join(map(select, self.sources))):
            source = next(source for source in self.sources if source.name == row["source"])
            kinds = {column.name: column.kind for column in source.columns}
            values = {name: from_text(row[name], kind) for name, kind in kinds.items() if name not in ("id", "ts") and row[name] is not None}
            records[row["file"]][row["id"], row["ts"]] = values
        self.read_rejects()

        for file in self.files:
            if step >= len(file.states):
                continue
            right_records, right_rejects = stored(self.loaded[file.folder].reading, file.source)
            seen = self.rejects[file.folder]
            said = differing_records(right_records, records[file.folder])
            said += differing_rejects(right_rejects, {line: cause(row) for line, row in seen.items()})
            said += differing_texts(self.loaded[file.folder].reading, seen)
            if said:
                self.differences.append((file, step, said))

    def read_rejects(self):
        """Rejects by folder and line: an input that grew adds to those before, one that is read as a whole replaces them."""
        run = self.project.rows("SELECT max(run) AS run FROM runs.loads")[0]["run"]
        for row in self.project.rows(f"SELECT path, state FROM runs.inputs WHERE run = '{run}'"):
            if row["state"] in ("new", "changed"):
                self.rejects[folder_of(row["path"])] = {}
        for row in self.project.rows(f"SELECT file, line, column_name, reason, raw FROM runs.rejects WHERE run = '{run}'"):
            self.rejects[folder_of(row["file"])][row["line"]] = row


def folder_of(path):
    return pathlib.PurePath(path).parent.name.removeprefix("file=")


def differing_records(right, seen):
    said = [f"record {key}: missing" for key in right if key not in seen]
    said += [f"record {key}: not expected, {seen[key]}" for key in seen if key not in right]
    for key in right:
        if key in seen and right[key] != seen[key]:
            said.append(f"record {key}: expected {right[key]}, found {seen[key]}")
    return said


def differing_rejects(right, seen):
    said = [f"line {line}: expected a reject for {sorted(right[line])}" for line in right if line not in seen]
    said += [f"line {line}: rejected for {seen[line]}, not expected" for line in seen if line not in right]
    for line in right:
        if line in seen and seen[line] not in right[line]:
            said.append(f"line {line}: rejected for {seen[line]}, expected {sorted(right[line])}")
    return said


def differing_texts(reading, seen):
    """Rejects must be kept as they stand in the file."""
    right = {reject.line: reject.raw.rstrip(b"\r\n").decode(errors="replace") for reject in reading.rejects}
    return [f"line {line}: rejected as {seen[line]['raw']!r}, in the file it is {text!r}" for line, text in right.items()
            if line in seen and seen[line]["raw"].rstrip("\r\n") != text]


def show(batch, file, step, said):
    print(f"--- {batch.project.folder.name} source {file.source.name} folder {file.folder}, run {step + 1}")
    print(toml_csv(file.source.dialect), toml_columns(file.source.columns).replace("\n", "; "))
    for name, content in file.states[: step + 1]:
        print(f"{name}: {content if len(content) < 3000 else content[:200] + b' .. ' + str(len(content)).encode()!r}")
    for line in said[:12]:
        print("  " + line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidetable", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--show", type=int, default=20, help="differences to show")
    given = parser.parse_args()

    done, different, began = 0, 0, time.monotonic()
    for number in range(-(-given.files // given.batch)):
        files = min(given.batch, given.files - done)
        folder = given.folder / f"batch-{given.seed + number}"
        batch = Batch(given.tidetable.absolute(), folder, given.seed + number, files)
        for difference in batch.run():
            if different < given.show:
                show(batch, *difference)
            different += 1
        done += files
        if not batch.differences:
            shutil.rmtree(folder)
        print(f"{done} files, {different} differ, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    if different:
        sys.exit(f"{different} of {done} files differ")
    print(f"{done} files equal")


if __name__ == "__main__":
    main()
