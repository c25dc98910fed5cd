#!/usr/bin/env python3
"""Reads a published table with other engines, and says what they see.

    readers_check.py types FILE          types and rows of a Parquet or Arrow file by DuckDB, Polars and pyarrow
    readers_check.py hive FOLDER         rows by the partition column of folders in the manner of Hive
    readers_check.py day FOLDER          columns of folders in the manner of Hive whose files have the column of the folder
    readers_check.py stream COMMAND..    rows that a command writes as an Arrow stream, read from a pipe by pyarrow and Polars
    readers_check.py bigtable FILE       the exact schema of a file for Dataflow's template, and its cells
    readers_check.py delta FOLDER        rows of each version of a Delta table
    readers_check.py delta_now FOLDER    rows of a Delta table
    readers_check.py delete_meter_2 FOLDER   deletes rows of a Delta table
    readers_check.py checkpoint FOLDER   writes a checkpoint of a Delta table and removes the entries before it
    readers_check.py several FOLDER      rows of a folder of several files, and whether they are in order one after the other

Prints one JSON object a line.
"""

import json
import os
import pathlib
import subprocess
import sys

import duckdb
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet


def say(engine, **what):
    print(json.dumps({"engine": engine, **what}, default=str, sort_keys=True))


def rows_of(table):
    return [[str(value) if value is not None else None for value in row.values()] for row in table.to_pylist()]


def types(path):
    if path.suffix == ".arrow":
        table = pyarrow.ipc.open_file(path).read_all()
        say("pyarrow", types=[str(field.type) for field in table.schema], rows=rows_of(table))
        frame = polars.read_ipc(path)
        say("polars", types=[str(kind) for kind in frame.dtypes], rows=frame.height)
        return
    table = pyarrow.parquet.read_table(path)
    say("pyarrow", types=[str(field.type) for field in table.schema], rows=rows_of(table))
    frame = polars.read_parquet(path)
    say("polars", types=[str(kind) for kind in frame.dtypes], rows=frame.height)
    found = duckdb.sql(f"SELECT * FROM read_parquet('{path}')")
    say("duckdb", types=[str(kind) for kind in found.types], rows=found.count('*').fetchall()[0][0])
    file = pyarrow.parquet.ParquetFile(path)
    group = file.metadata.row_group(0)
    say(
        "parquet",
        sorted=[column.column_index for column in group.sorting_columns],
        compression=group.column(0).compression,
        index=group.column(0).has_offset_index and group.column(0).has_column_index,
        bloom=duckdb.sql(f"SELECT bloom_filter_offset FROM parquet_metadata('{path}') LIMIT 1").fetchall()[0][0] is not None,
    )


def hive(path):
    query = f"SELECT CAST(dt AS VARCHAR) AS dt, count(*) FROM read_parquet('{path}/*/*.parquet', hive_partitioning = true) GROUP BY dt ORDER BY dt"
    say("duckdb", days=duckdb.sql(query).fetchall())
    dataset = pyarrow.dataset.dataset(path, format="parquet", partitioning="hive").to_table()
    say("pyarrow", columns=dataset.column_names, rows=dataset.num_rows)


def day(path):
    found = duckdb.sql(f"SELECT * FROM read_parquet('{path}/*/*.parquet', hive_partitioning = true)")
    say("duckdb", columns=found.columns, types=[str(kind) for kind in found.types], rows=len(found.fetchall()))
    frame = polars.scan_parquet(path / "*/*.parquet", hive_partitioning=True).collect()
    say("polars", columns=frame.columns, types=[str(kind) for kind in frame.dtypes], rows=frame.height)
    # It takes values of directories for texts, and finds no common type: the files have the column.
    table = pyarrow.dataset.dataset(path, format="parquet").to_table()
    say("pyarrow", columns=table.column_names, types=[str(field.type) for field in table.schema], rows=table.num_rows)


def stream(command):
    def pipe():
        return subprocess.Popen(command, stdout=subprocess.PIPE)

    child = pipe()
    reader = pyarrow.ipc.open_stream(child.stdout)
    batches = sum(1 for batch in reader)
    child.wait()
    child = pipe()
    table = pyarrow.ipc.open_stream(child.stdout).read_all()
    said = dict(types=[str(field.type) for field in table.schema], columns=table.column_names, rows=table.num_rows)
    say("pyarrow", batches=batches, first=rows_of(table.slice(0, 3)), code=child.wait(), **said)
    child = pipe()
    frame = polars.read_ipc_stream(child.stdout)
    say("polars", types=[str(kind) for kind in frame.dtypes], rows=frame.height, code=child.wait())
    # Rows come while the query runs, and a reader may leave.
    child = pipe()
    reader = pyarrow.ipc.open_stream(child.stdout)
    first = next(iter(reader), None)
    child.stdout.close()
    say("left", rows=0 if first is None else first.num_rows, code=child.wait())


def bigtable(path):
    file = pyarrow.parquet.ParquetFile(path)
    text = str(file.schema).split("\n", 1)[1].rstrip()
    say("parquet", schema=text, compression=file.metadata.row_group(0).column(0).compression)
    rows = file.read().to_pylist()
    cells = [[row["key"].decode(), *cell.values()] for row in rows for cell in row["cells"]]
    cells = [[key, family, qualifier.decode(), timestamp, value.decode()] for key, family, qualifier, timestamp, value in cells]
    say("pyarrow", rows=len(rows), cells=cells)


def several(path):
    query = f"SELECT meter, epoch_us(ts) FROM read_parquet('{path}/*.parquet')"
    duckdb.sql("SET threads = 1")
    rows = duckdb.sql(query).fetchall()
    say("duckdb", rows=len(rows), sorted=rows == sorted(rows))
    say("polars", rows=polars.read_parquet(path / "*.parquet").height)
    say("pyarrow", rows=pyarrow.dataset.dataset(path, format="parquet").to_table().num_rows)


def delta(path):
    import deltalake

    table = deltalake.DeltaTable(path)
    for version in range(table.version() + 1):
        table.load_as_version(version)
        dataset = table.to_pyarrow_table()
        say("deltalake", version=version, rows=dataset.num_rows, types=[str(field.type) for field in dataset.schema], columns=dataset.column_names)


def delta_now(path):
    import deltalake

    say("deltalake", rows=deltalake.DeltaTable(path).to_pyarrow_table().num_rows)


def checkpoint(path):
    import deltalake

    table = deltalake.DeltaTable(path)
    table.create_checkpoint()
    table.cleanup_metadata()
    # Entries go when they are older than the retention of the log.
    for entry in (path / "_delta_log").glob("*.json"):
        entry.unlink()
    say("deltalake", entries=sorted((entry.name for entry in (path / "_delta_log").iterdir()), reverse=True))


def delete_meter_2(path):
    import deltalake

    say("deltalake", deleted=deltalake.DeltaTable(path).delete("meter = 2")["num_deleted_rows"])


if __name__ == "__main__":
    commands = {"delete_meter_2": delete_meter_2, "types": types, "hive": hive, "day": day, "bigtable": bigtable, "delta": delta, "delta_now": delta_now, "checkpoint": checkpoint, "several": several}
    if sys.argv[1] == "stream":
        stream(sys.argv[2:])
    else:
        commands[sys.argv[1]](pathlib.Path(sys.argv[2]))
    sys.stdout.flush()
    # The threads of several engines in one process do not always end in peace.
    os._exit(0)
