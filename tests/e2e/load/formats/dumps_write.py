#!/usr/bin/env python3
"""Writes dumps of Bigtable in the schemas of Google's templates.

    dumps_write.py avro FILE ROWS       a row of 100,000 cells, then ROWS small ones, by fastavro, or by hand where it is missing
    dumps_write.py parquet FILE ROWS    the same by pyarrow, as a list of three levels
    dumps_write.py odd FILE             rows whose keys, families, qualifiers, timestamps and values are unusual, as Avro
    dumps_write.py CODEC FILE ROWS      as `avro`, by fastavro with null, deflate or snappy
    dumps_write.py cells FILE ROWS      all cells of it as CSV, in the order of Bigtable
    dumps_write.py values FILE ROWS     a row of 100,000 cells, then ROWS with a value of 1 MiB, in one row group of Parquet
    dumps_write.py cut FILE BYTES       removes the last bytes of a file
"""

import io
import json
import pathlib
import random
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


def write_avro(path, rows, codec="deflate"):
    try:
        import fastavro

        with open(path, "wb") as out:
            fastavro.writer(out, fastavro.parse_schema(SCHEMA), rows, codec=codec)
        return
    except ImportError:
        if codec != "deflate":
            raise
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


def write_cells(path, rows):
    cells = [
        (row["key"].hex(), cell["family"], cell["qualifier"].hex(), -cell["timestamp"], cell["value"].hex())
        for row in rows
        for cell in row["cells"]
    ]
    lines = [f"{key},{family},{qualifier},{-time},{value}\n" for key, family, qualifier, time, value in sorted(cells)]
    pathlib.Path(path).write_text("k,family,q,t,v\n" + "".join(lines))


def values(rows):
    """The row of many cells of `large`, then rows of one large value."""
    yield next(large(0))
    draw = random.Random(7)
    for at in range(rows):
        yield {"key": b"value%04d" % at, "cells": [cell("m", b"q", 1_000 * at, draw.randbytes(1 << 19).hex().encode())]}


def write_parquet(path, rows, **options):
    import pyarrow
    import pyarrow.parquet

    fields = [("family", "string"), ("qualifier", "binary"), ("timestamp", "int64"), ("value", "binary")]
    item = pyarrow.struct([pyarrow.field(name, getattr(pyarrow, kind)(), nullable=False) for name, kind in fields])
    cells = pyarrow.field("cells", pyarrow.list_(pyarrow.field("array", item, nullable=False)), nullable=False)
    schema = pyarrow.schema([pyarrow.field("key", pyarrow.binary(), nullable=False), cells])
    table = pyarrow.Table.from_pylist(list(rows), schema=schema)
    pyarrow.parquet.write_table(table, path, use_compliant_nested_type=False, **options)


def main():
    what, path, *rest = sys.argv[1:]
    if what == "cut":
        data = pathlib.Path(path).read_bytes()
        pathlib.Path(path).write_bytes(data[: -int(rest[0])])
    elif what == "odd":
        write_avro(path, odd())
    elif what == "cells":
        write_cells(path, large(int(rest[0])))
    elif what == "values":
        # Pages of a value each, and no dictionary: readers hold either as a whole.
        write_parquet(path, values(int(rest[0])), use_dictionary=False, write_batch_size=1, data_page_size=1 << 16)
    elif what in ("null", "deflate", "snappy"):
        write_avro(path, large(int(rest[0])), what)
    else:
        {"avro": write_avro, "parquet": write_parquet}[what](path, large(int(rest[0])))


main()
