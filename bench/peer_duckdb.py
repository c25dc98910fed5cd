"""DuckDB: sorts into one Parquet file with zstd. Takes an order as JSON in its argument, answers with JSON."""

import glob
import json
import os
import sys
import time

import duckdb
import shapes

TYPES = {"uint64": "UBIGINT", "float64": "DOUBLE", "text": "VARCHAR", "time": "TIMESTAMP"}
THREADS = 2


def rows_of(shape, path, form):
    if form == "parquet":
        return f"SELECT * FROM read_parquet('{path}')"
    pairs = [shape.entity, ("ts", "time"), *shape.columns]
    columns = ", ".join(f"'{name}': '{TYPES[kind]}'" for name, kind in pairs)
    seconds = "%S.%g" if shape.millis else "%S"
    return (
        f"SELECT * FROM read_csv('{path}', auto_detect = false, header = true, delim = ',', "
        f"columns = {{{columns}}}, timestampformat = '%Y-%m-%dT%H:%M:{seconds}Z')"
    )


def sync(path):
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def load(shape, order):
    start = time.perf_counter()
    db = connect(order["temporary"])
    rows, by = rows_of(shape, f"{order['source']}/*.{order['form']}", order["form"]), f"{shape.entity[0]}, ts"
    if order["key"] == "text":
        values = ", ".join(name for name, _ in shape.columns)
        rows, by = f"SELECT {shape.text_key} AS key, ts, {values} FROM ({rows})", "key, ts"
    db.execute(f"COPY ({rows} ORDER BY {by}) TO '{order['out']}' (FORMAT parquet, COMPRESSION zstd)")
    sync(order["out"])
    sync(os.path.dirname(order["out"]))
    return {"seconds": time.perf_counter() - start}


def answer(shape, order):
    names = [name for name, _ in shape.columns]
    sums = ", ".join(f"sum({name})" for name in names)
    query = f"SELECT count(*), {sums} FROM read_parquet('{order['out']}')"
    count, *found = duckdb.connect().execute(query).fetchone()
    return {"rows": count, "sums": dict(zip(names, map(float, found)))}


def convert(shape, order):
    """Converts each CSV file to a Parquet file, keeping the order of rows."""
    db = connect(order["out"])
    for path in sorted(glob.glob(f"{order['source']}/*.csv")):
        out = os.path.join(order["out"], os.path.basename(path)[:-4] + ".parquet")
        db.execute(f"COPY ({rows_of(shape, path, 'csv')}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)")
    return {}


def connect(temporary):
    db = duckdb.connect()
    db.execute(f"SET threads = {THREADS}")
    db.execute("SET enable_progress_bar = false")
    db.execute(f"SET temp_directory = '{temporary}'")
    return db


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    do = {"load": load, "answer": answer, "convert": convert}[order["do"]]
    print(json.dumps(do(shapes.SHAPES[order["shape"]], order)))
