#!/usr/bin/env python3
"""Compares the reference reader with Python's csv and DuckDB, on those nasty files that these two read alike.

    agree.py FOLDER [--files 400] [--seed 1]

All columns are text. Files in dialects that one of the two does not have are left out, and so are files that DuckDB refuses. Prints
`N of M files are read alike by all three`; exits with 1 if the reference differs, or if fewer than a tenth could be compared.
"""

import argparse
import csv
import io
import pathlib
import random
import sys

import duckdb

import generate
import reference


def python_rows(content, dialect):
    """The records as Python's csv reads them, blank lines left out; None if it refuses the file."""
    try:
        text = content.decode()
        return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=dialect.delimiter.decode(), quotechar=dialect.quote.decode()) if row]
    except (UnicodeDecodeError, csv.Error):
        return None


def duckdb_rows(db, path, dialect, width):
    """The records as DuckDB reads them; None if it refuses the file."""
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(width))
    options = {"delim": dialect.delimiter.decode(), "quote": dialect.quote.decode(), "escape": dialect.quote.decode(), "nullstr": "no null"}
    told = ", ".join("{} = '{}'".format(key, value.replace("'", "''")) for key, value in options.items())
    try:
        found = db.execute(f"SELECT * FROM read_csv('{path}', auto_detect = false, header = false, columns = {{{columns}}}, {told})").fetchall()
    except duckdb.Error:
        return None
    return [["" if value is None else value for value in row] for row in found]


def reference_rows(content, dialect, names):
    """The records of the reference, the header first; None if it rejects one."""
    plain = reference.Dialect(delimiter=dialect.delimiter, quote=dialect.quote, null=())
    reading = reference.read(content, plain, [reference.Column(name, "text") for name in names])
    if reading.rejects:
        return None
    return [names] + [list(values.values()) for _line, values in reading.records]


def is_shared(dialect):
    """Whether all three readers have a dialect."""
    return dialect.header and dialect.quote and dialect.escape is None and dialect.comment is None and not dialect.skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    given.folder.mkdir(parents=True, exist_ok=True)
    path, db = given.folder / "a.csv", duckdb.connect()
    generator = generate.Generator(random.Random(given.seed))
    alike, different, made = 0, 0, 0
    while made < given.files:
        source = generator.source("s", grows=False)
        if not is_shared(source.dialect):
            continue
        made += 1
        # A byte order mark within a file, before a header repeated there, is text to the other two.
        content = generator.file(source, made).states[-1][1].replace(reference.BOM, b"")
        rows = python_rows(content, source.dialect)
        if not rows:
            continue
        path.write_bytes(content)
        if duckdb_rows(db, path, source.dialect, len(rows[0])) != rows:
            continue

        # Lines equal to the header are skipped, wherever they stand.
        right = rows[:1] + [row for row in rows[1:] if row != rows[0]]
        found = reference_rows(content, source.dialect, rows[0])
        alike += found == right
        if found != right:
            different += 1
            print(f"{source.dialect} {content}\n  expected {right}\n  found    {found}")

    print(f"{alike} of {made} files are read alike by all three")
    if different or alike * 10 < made:
        sys.exit(f"{different} files differ")


if __name__ == "__main__":
    main()
