#!/usr/bin/env python3
"""Writes dumps of Bigtable in the schemas of Google's templates.

    dumps_write.py avro FILE ROWS       a row of 100,000 cells, then ROWS small ones, by fastavro, or by hand where it is missing
    dumps_write.py parquet FILE ROWS    the same by pyarrow, as a list of three levels
    dumps_write.py odd FILE             rows whose keys, families, qualifiers, timestamps and values are unusual, as Avro
    dumps_write.py cut FILE BYTES       removes the last bytes of a file
"""

import io
import json
import pathlib
import sys

SCHEMA = {
    "type": "record",
    "name": "BigtableRow",
    "namespace": "com.google.cloud.teleport.bigtable",
    "fields": [
        {"name": "key", "type": "bytes"},
        {
            "name": "cells",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "BigtableCell",
                    "fields": [
                        {"name": "family", "type": "string"},
                        {"name": "qualifier", "type": "bytes"},
                        {"name": "timestamp", "type": "long", "logicalType": "timestamp-micros"},
                        {"name": "value", "type": "bytes"},
                    ],
                },
            },
        },
    ],
}

CELLS = 100_000
LAST = 2**63 - 1


def cell(family, qualifier, timestamp, value):
    return {"family": family, "qualifier": qualifier, "timestamp": timestamp, "value": value}


def large(rows):
    """A row of as many cells as a mutation may have, then small rows."""
    cells = [cell("m", b"%06d" % (at % 50_000), 1_700_000_000_000_001 - at // 50_000, b"v%d" % at) for at in range(CELLS)]
    yield {"key": b"\x00\xff large", "cells": cells}
    for at in range(rows):
        yield {"key": b"row%09d" % at, "cells": [cell("m", b"q", 1_000 * at, b"%d" % at)]}


def odd():
    yield {"key": b"\xff\xfe", "cells": [cell("a-b.c_D", b"\x00\xff", LAST, b""), cell("a-b.c_D", b"", 0, b"\xc3\x28")]}
    yield {"key": b"a", "cells": [cell("sum", b"n", 1, (2**40).to_bytes(8, "big")), cell("sum", b"n", LAST - 1, b"\x80" + b"\x00" * 7)]}


def zigzag(number):
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes(out + bytes([rest]))


def sized(data):
    return zigzag(len(data)) + data


def write_avro(path, rows):
    try:
        import fastavro

        with open(path, "wb") as out:
            fastavro.writer(out, fastavro.parse_schema(SCHEMA), rows, codec="deflate")
        return
    except ImportError:
        pass
    mark = bytes(range(16))
    out = io.BytesIO()
    out.write(b"Obj\x01" + zigzag(1) + sized(b"avro.schema") + sized(json.dumps(SCHEMA).encode()) + zigzag(0) + mark)
    for row in rows:
        cells = b"".join(
            sized(c["family"].encode()) + sized(c["qualifier"]) + zigzag(c["timestamp"]) + sized(c["value"])
            for c in row["cells"]
        )
        record = sized(row["key"]) + (zigzag(len(row["cells"])) + cells if row["cells"] else b"") + zigzag(0)
        out.write(zigzag(1) + sized(record) + mark)
    pathlib.Path(path).write_bytes(out.getvalue())


def write_parquet(path, rows):
    import pyarrow
    import pyarrow.parquet

    fields = [("family", "string"), ("qualifier", "binary"), ("timestamp", "int64"), ("value", "binary")]
    item = pyarrow.struct([pyarrow.field(name, getattr(pyarrow, kind)(), nullable=False) for name, kind in fields])
    cells = pyarrow.field("cells", pyarrow.list_(pyarrow.field("array", item, nullable=False)), nullable=False)
    schema = pyarrow.schema([pyarrow.field("key", pyarrow.binary(), nullable=False), cells])
    table = pyarrow.Table.from_pylist(list(rows), schema=schema)
    pyarrow.parquet.write_table(table, path, use_compliant_nested_type=False)


def main():
    what, path, *rest = sys.argv[1:]
    if what == "cut":
        data = pathlib.Path(path).read_bytes()
        pathlib.Path(path).write_bytes(data[: -int(rest[0])])
    elif what == "odd":
        write_avro(path, odd())
    else:
        {"avro": write_avro, "parquet": write_parquet}[what](path, large(int(rest[0])))


main()
