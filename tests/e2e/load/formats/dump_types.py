#!/usr/bin/env python3
"""Writes the same dump of Bigtable in Parquet, with other types of its columns each time.

    dump_types.py FOLDER    a file CASE.parquet for each of `CASES`: row `k` with the cell METER:q of value `v`
"""

import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

MICROS = 1_500_000_000_000_000
TEXT = ["family"]
OF_LISTS = [0, 1]


def written(folder, name, *, key=None, family=None, qualifier=None, time=None, value=None, item="element", lists=pa.list_, **options):
    fields = [
        ("family", family or pa.array(["METER"])),
        ("qualifier", qualifier or pa.array([b"q"])),
        ("timestamp", time or pa.array([MICROS])),
        ("value", value or pa.array([b"v"])),
    ]
    struct = pa.StructArray.from_arrays([array for _, array in fields], names=[name for name, _ in fields])
    cells = pa.array([], lists(pa.field(item, struct.type, nullable=False))).type
    if pa.types.is_large_list(cells):
        cells = pa.LargeListArray.from_arrays(pa.array(OF_LISTS, pa.int64()), struct, type=cells)
    elif pa.types.is_fixed_size_list(cells):
        cells = pa.FixedSizeListArray.from_arrays(struct, type=cells)
    else:
        cells = pa.ListArray.from_arrays(pa.array(OF_LISTS, pa.int32()), struct, type=cells)
    table = pa.table([key or pa.array([b"k"]), cells], names=["key", "cells"])
    options = {"use_compliant_nested_type": False, "coerce_timestamps": None, **options}
    pq.write_table(table, folder / f"{name}.parquet", **options)


def times(unit, value, zone=None):
    return pa.array([value], pa.int64()).cast(pa.timestamp(unit, zone))


def one(value, kind):
    return pa.array([value], kind)


CASES = {
    "micros": {},
    "micros_typed": {"time": times("us", MICROS)},
    "micros_utc": {"time": times("us", MICROS, "UTC")},
    "nanos": {"time": times("ns", MICROS * 1000)},
    "nanos_utc": {"time": times("ns", MICROS * 1000, "UTC")},
    "millis": {"time": times("ms", MICROS // 1000)},
    "seconds": {"time": times("s", MICROS // 1_000_000)},
    "item": {"item": "item"},
    "array": {"item": "array"},
    "compliant": {"use_compliant_nested_type": True},
    "no_arrow_schema": {"time": times("ns", MICROS * 1000), "store_schema": False},
    "large_list": {"lists": pa.large_list},
    "family_dictionary": {"family": pa.array(["METER"]).dictionary_encode()},
    "qualifier_dictionary": {"qualifier": pa.array([b"q"]).dictionary_encode()},
    "family_binary": {"family": pa.array([b"METER"])},
    "family_large": {"family": one("METER", pa.large_string())},
    "family_view": {"family": one("METER", pa.string_view())},
    "key_text": {"key": pa.array(["k"])},
    "key_large": {"key": one(b"k", pa.large_binary())},
    "key_view": {"key": one(b"k", pa.binary_view())},
    "key_fixed": {"key": one(b"k", pa.binary(1))},
    "key_dictionary": {"key": pa.array(["k"]).dictionary_encode()},
    "value_text": {"value": pa.array(["v"])},
    "value_large": {"value": one(b"v", pa.large_binary())},
    "value_view": {"value": one(b"v", pa.binary_view())},
    # What is refused.
    "nanos_cut": {"time": times("ns", MICROS * 1000 + 1)},
    "millis_far": {"time": times("ms", 2**60)},
    "time_text": {"time": pa.array(["2017-07-14"])},
    "time_uint64": {"time": one(MICROS, pa.uint64())},
    "time_int96": {"time": times("ns", MICROS * 1000), "use_deprecated_int96_timestamps": True},
    "family_int64": {"family": pa.array([7])},
    "key_int64": {"key": pa.array([7])},
    "value_float": {"value": pa.array([1.5])},
    "fixed_list": {"lists": lambda item: pa.list_(item, 1)},
    "value_missing": {"value": one(None, pa.binary())},
}

for case, columns in CASES.items():
    written(pathlib.Path(sys.argv[1]), case, **columns)
