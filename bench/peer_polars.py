"""Polars: sorts into one Parquet file with zstd with its streaming engine. JSON in and out, as `peer_duckdb.py`."""

import json
import os
import sys
import time

os.environ["POLARS_MAX_THREADS"] = "2"

import polars
import shapes

TYPES = {"uint64": polars.UInt64, "float64": polars.Float64, "text": polars.String, "time": polars.String}


def rows_of(shape, source, form):
    if form == "parquet":
        return polars.scan_parquet(f"{source}/*.parquet")
    pairs = [shape.entity, ("ts", "time"), *shape.columns]
    rows = polars.scan_csv(f"{source}/*.csv", schema={name: TYPES[kind] for name, kind in pairs})
    seconds = "%S%.3f" if shape.millis else "%S"
    return rows.with_columns(polars.col("ts").str.to_datetime(f"%Y-%m-%dT%H:%M:{seconds}Z", time_unit="us"))


def sync(path):
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def load(shape, order):
    start = time.perf_counter()
    rows = rows_of(shape, order["source"], order["form"])
    rows.sort(shape.entity[0], "ts").sink_parquet(order["out"], compression="zstd", engine="streaming")
    sync(order["out"])
    sync(os.path.dirname(order["out"]))
    return {"seconds": time.perf_counter() - start}


def answer(shape, order):
    names = [name for name, _ in shape.columns]
    sums = (polars.col(name).sum() for name in names)
    found = polars.scan_parquet(order["out"]).select(polars.len().alias("rows"), *sums)
    row = found.collect(engine="streaming").row(0, named=True)
    return {"rows": row["rows"], "sums": {name: float(row[name]) for name in names}}


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    do = {"load": load, "answer": answer}[order["do"]]
    print(json.dumps(do(shapes.SHAPES[order["shape"]], order)))
