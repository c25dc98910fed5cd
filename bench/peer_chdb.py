"""ClickHouse in process: inserts into a MergeTree table ordered by entity and time. JSON in and out, as `peer_duckdb.py`.

The table is sorted within each part, as after an insert; its codec is the default, LZ4.
"""

import json
import os
import sys
import time

import shapes
from chdb import session

TYPES = {"uint64": "UInt64", "float64": "Float64", "text": "String"}
FORMATS = {"csv": "CSVWithNames", "parquet": "Parquet"}
SETTINGS = "max_threads = 2, max_insert_threads = 2, max_parsing_threads = 2, date_time_input_format = 'best_effort'"


def sync_all(root):
    """Syncs the files that the engine has not synced itself."""
    for folder, _, files in os.walk(root):
        for path in [folder, *(os.path.join(folder, name) for name in files)]:
            if os.path.exists(path):
                handle = os.open(path, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)


def load(shape, order):
    start = time.perf_counter()
    time_type = "DateTime64(3, 'UTC')" if shape.millis else "DateTime('UTC')"
    pairs = [(name, TYPES[kind]) for name, kind in [shape.entity, *shape.columns]]
    columns = ", ".join(f"{name} {kind}" for name, kind in [pairs[0], ("ts", time_type), *pairs[1:]])
    here = session.Session(order["out"])
    here.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
    here.query(
        f"CREATE TABLE bench.readings ({columns}) ENGINE = MergeTree ORDER BY ({shape.entity[0]}, ts) "
        "SETTINGS fsync_after_insert = 1, fsync_part_directory = 1"
    )
    form = order["form"]
    quoted = columns.replace("'", "\\'")
    given = f", '{quoted}'" if form == "csv" else ""
    files = f"file('{order['source']}/*.{form}', {FORMATS[form]}{given})"
    here.query(f"INSERT INTO bench.readings SELECT * FROM {files} SETTINGS {SETTINGS}")
    here.close()
    sync_all(order["out"])
    return {"seconds": time.perf_counter() - start}


def answer(shape, order):
    names = [name for name, _ in shape.columns]
    here = session.Session(order["out"])
    sums = ", ".join(f"toFloat64(sum({name}))" for name in names)
    text = here.query(f"SELECT count(), {sums} FROM bench.readings", "TabSeparated").data()
    parts = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'bench'"
    stored = here.query(parts, "TabSeparated").data()
    here.close()
    count, *found = text.split()
    return {"rows": int(count), "sums": dict(zip(names, map(float, found))), "bytes": int(stored)}


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    do = {"load": load, "answer": answer}[order["do"]]
    print(json.dumps(do(shapes.SHAPES[order["shape"]], order)))
