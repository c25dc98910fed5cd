#!/usr/bin/env python3
"""Reads a Delta table with whichever of deltalake and DuckDB's extension delta this Python has, and says what they see.

    delta_check.py now FOLDER        version, columns, types and rows of the newest version
    delta_check.py where FOLDER SQL  rows for which a condition holds, of which files may be skipped
    delta_check.py version FOLDER N  rows of a version (deltalake)
    delta_check.py stats FOLDER      what the log says of its files (deltalake)

Prints one JSON object a line.
"""

import importlib.util
import json
import os
import pathlib
import sys


def say(engine, **what):
    print(json.dumps({"engine": engine, **what}, default=str, sort_keys=True))


def text(rows):
    rows = [[None if value is None else str(value) for value in row] for row in rows]
    return sorted(rows, key=str)


def duck(folder, where="true"):
    import duckdb
    import duckdb_extension_delta

    db = duckdb.connect()
    [extension] = pathlib.Path(duckdb_extension_delta.__file__).parent.rglob("*.duckdb_extension")
    db.execute(f"LOAD '{extension}'")
    db.execute("SET TimeZone = 'UTC'")
    found = db.sql(f"SELECT * FROM delta_scan('{folder}') WHERE {where}")
    # As texts: times with a zone need a package that this Python may lack.
    rows = db.sql("SELECT COLUMNS(*)::VARCHAR FROM found").fetchall()
    say("duckdb", columns=found.columns, types=[str(kind) for kind in found.types], rows=text(rows))


def lake(folder, where="true", version=None):
    import deltalake
    import pyarrow

    table = deltalake.DeltaTable(folder, version=version)
    found = deltalake.QueryBuilder().register("t", table).execute(f"SELECT * FROM t WHERE {where}")
    found = pyarrow.table(found)
    rows = [list(row.values()) for row in found.to_pylist()]
    types = [str(field.type) for field in found.schema]
    say("deltalake", version=table.version(), columns=found.column_names, types=types, rows=text(rows))


def stats(folder):
    import deltalake
    import pyarrow

    actions = pyarrow.table(deltalake.DeltaTable(folder).get_add_actions(flatten=True))
    say("deltalake", files=actions.sort_by("path").to_pylist())


if __name__ == "__main__":
    what, folder, *more = sys.argv[1:]
    has_lake = importlib.util.find_spec("deltalake")
    if what in ("stats", "version"):
        if has_lake:
            stats(folder) if what == "stats" else lake(folder, version=int(more[0]))
    elif importlib.util.find_spec("duckdb_extension_delta"):
        duck(folder, *more)
    else:
        lake(folder, *more)
    sys.stdout.flush()
    # The threads of several engines in one process do not always end in peace.
    os._exit(0)
