#!/usr/bin/env python3
"""Reads an Iceberg table with whichever of PyIceberg, Polars and DuckDB's extension iceberg this Python has, and says what they see.

    check.py now TABLE         columns, types and rows as the newest version has them
    check.py where TABLE SQL   rows for which a condition holds, and files that are read for it; not of Polars
    check.py snapshot TABLE N  rows of snapshot number N of the newest metadata
    check.py snapshots TABLE   operations, rows and columns of all snapshots (PyIceberg)

TABLE is a directory, or a URL of a bucket with the endpoint and the secret of its key in ENDPOINT and SECRET. Prints one JSON object a line.
"""

import importlib.util
import json
import os
import pathlib
import re
import sys

KEY = "AKIATESTONLY"


def say(engine, **what):
    print(json.dumps({"engine": engine, **what}, default=str, sort_keys=True))


def text(rows):
    rows = [[None if value is None else str(value) for value in row] for row in rows]
    return sorted(rows, key=str)


def opened(table):
    from pyiceberg.table import StaticTable

    properties = {}
    if "ENDPOINT" in os.environ:
        properties = {"s3.endpoint": os.environ["ENDPOINT"], "s3.region": "us-east-1", "s3.access-key-id": KEY,
                      "s3.secret-access-key": os.environ["SECRET"]}
    return StaticTable.from_metadata(table, properties), properties


def in_order(metadata):
    return sorted(metadata.snapshots, key=lambda snapshot: snapshot.sequence_number)


def pyiceberg(table, where=None, number=None):
    from pyiceberg.expressions import AlwaysTrue

    found, _ = opened(table)
    snapshot = None if number is None else in_order(found.metadata)[number].snapshot_id
    scan = found.scan(row_filter=where or AlwaysTrue(), snapshot_id=snapshot)
    rows = scan.to_arrow()
    say("pyiceberg", columns=rows.column_names, types=[str(field.type) for field in rows.schema],
        rows=text(list(row.values()) for row in rows.to_pylist()), files=len(list(scan.plan_files())))


def polars(table, number=None):
    import polars as pl

    found, properties = opened(table)
    snapshot = None if number is None else in_order(found.metadata)[number].snapshot_id
    frame = pl.scan_iceberg(found, snapshot_id=snapshot, storage_options=properties or None)
    rows = frame.collect()
    say("polars", columns=rows.columns, types=[str(kind) for kind in rows.dtypes], rows=text(rows.rows()))


def duck(table, where="true", number=None):
    import duckdb
    import duckdb_extension_avro
    import duckdb_extension_httpfs
    import duckdb_extension_iceberg

    db = duckdb.connect()
    for module in (duckdb_extension_httpfs, duckdb_extension_avro, duckdb_extension_iceberg):
        [extension] = pathlib.Path(module.__file__).parent.rglob("*.duckdb_extension")
        db.execute(f"LOAD '{extension}'")
    db.execute("SET TimeZone = 'UTC'")
    if "ENDPOINT" in os.environ:
        endpoint = os.environ["ENDPOINT"].removeprefix("http://")
        db.execute(f"CREATE SECRET (TYPE s3, KEY_ID '{KEY}', SECRET '{os.environ['SECRET']}', ENDPOINT '{endpoint}', "
                   "URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')")
    options = ""
    if number is not None:
        snapshots = db.sql(f"SELECT snapshot_id FROM iceberg_snapshots('{table}') ORDER BY sequence_number").fetchall()
        options = f", snapshot_from_id => {snapshots[number][0]}"
    found = db.sql(f"SELECT * FROM iceberg_scan('{table}'{options}) WHERE {where}")
    # As texts: times with a zone need a package that this Python may lack.
    rows = db.sql("SELECT COLUMNS(*)::VARCHAR FROM found").fetchall()
    plan = db.sql("EXPLAIN ANALYZE FROM found").fetchall()[0][1]
    files = re.search(r"Total Files Read: (\d+)", plan)
    say("duckdb", columns=found.columns, types=[str(kind) for kind in found.types], rows=text(rows),
        files=files and int(files[1]))


def snapshots(table):
    found, _ = opened(table)
    for snapshot in in_order(found.metadata):
        rows = found.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        say("pyiceberg", operation=snapshot.summary.operation.value, rows=rows.num_rows, columns=rows.column_names)
    columns = [[field.field_id, field.name] for field in found.schema().fields]
    say("pyiceberg", columns=columns, partition=[field.name for field in found.spec().fields])


if __name__ == "__main__":
    what, table, *more = sys.argv[1:]
    engines = [duck] if importlib.util.find_spec("duckdb_extension_iceberg") else [pyiceberg, polars]
    if what == "snapshots":
        if pyiceberg in engines:
            snapshots(table)
    else:
        # Its conditions have other literals of days.
        for engine in engines if what != "where" else [engine for engine in engines if engine != polars]:
            engine(table, **({"where": more[0]} if what == "where" else {"number": int(more[0])} if more else {}))
    sys.stdout.flush()
    # The threads of several engines in one process do not always end in peace.
    os._exit(0)
