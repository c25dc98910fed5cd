"""Decodes protobuf and JSON cells that tidetable printed, and compares them with the source.

packed_groups_check.py FOLDER CSV: the folder has event.proto, week.proto, EVENT.jsonl and WEEK.jsonl.
"""

import base64
import csv
import datetime
import decimal
import importlib
import json
import pathlib
import sys
import urllib.parse

import grpc_tools
from grpc_tools import protoc

FOLDER, SOURCE = pathlib.Path(sys.argv[1]), sys.argv[2]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def module(name):
    """The Python module of a .proto."""
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    code = protoc.main(["protoc", f"-I{FOLDER}", f"-I{well_known}", f"--python_out={FOLDER}", f"{name}.proto"])
    if code:
        sys.exit(f"{name}.proto does not compile")
    sys.path.insert(0, str(FOLDER))
    return importlib.import_module(f"{name}_pb2")


def cells(table):
    """(row key, qualifier, bytes) of every cell."""
    for line in (FOLDER / f"{table}.jsonl").read_text().splitlines():
        row = json.loads(line)
        for cell in row["cells"]:
            value = cell["value"]
            value = base64.b64decode(value["base64"]) if isinstance(value, dict) else value.encode()
            yield row["key"], cell["qualifier"], value


def micros(text):
    time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (time - EPOCH) // datetime.timedelta(microseconds=1)


def same(what, found, expected):
    if found != expected or type(found) is not type(expected):
        sys.exit(f"{what}: {found!r} instead of {expected!r}")


def compare(message, row, kinds):
    """Each field of `kinds` is present if the source has a value, and equal to it."""
    for name, kind in kinds.items():
        if row[name] == "":
            same(f"presence of {name} in {row}", message.HasField(name), False)
            continue
        same(f"presence of {name} in {row}", message.HasField(name), True)
        same(f"{name} in {row}", getattr(message, name), kind(row[name]))


def main():
    with open(SOURCE, newline="") as source:
        rows = list(csv.DictReader(source))
    by_key = {(row["host"], micros(row["ts"]) // 1000): row for row in rows}
    event, week = module("event"), module("week")

    messages, objects = 0, 0
    kinds = {
        "ts": micros, "seq": int, "count": int, "load": float, "price": str, "ok": lambda text: text == "true",
        "day": str, "note": str,
    }
    for key, qualifier, value in cells("EVENT"):
        host, time = key.split("#")
        row = by_key[urllib.parse.unquote(host), int(time)]
        if qualifier == "blob":
            compare(event.Reading.FromString(value), row, kinds)
            messages += 1
        else:
            found = json.loads(value, parse_float=decimal.Decimal)
            objects += 1
            values = {
                **kinds, "ts": lambda text: text.replace(".000Z", "Z"), "load": decimal.Decimal,
                "price": decimal.Decimal,
            }
            present = [name for name in values if row[name] != ""]
            same(f"names of {row}", list(found), present)
            for name in present:
                same(f"{name} in {row}", found[name], values[name](row[name]))
                if name == "price":
                    same(f"scale of {row}", str(found[name]), row[name])

    of_weeks, weeks = 0, 0
    for key, qualifier, value in cells("WEEK"):
        if qualifier != "all":
            continue
        weeks += 1
        host, name = key.split("#")
        days = {micros(row["ts"]): row for row in rows if row["host"] == urllib.parse.unquote(host)}
        own = [days[time] for time in sorted(days)]
        own = [row for row in own if datetime.datetime.fromisoformat(row["ts"][:10]).strftime("%G-W%V") == name]
        samples = week.Batch.FromString(value).samples
        same(f"samples of {key}", len(samples), len(own))
        for message, row in zip(samples, own):
            time = message.ts.seconds * 1_000_000 + message.ts.nanos // 1000
            same(f"time of {row}", time, micros(row["ts"]))
            compare(message, row, {"seq": int, "count": int, "load": float, "note": str.encode})
            of_weeks += 1
    print(f"{messages} messages, {objects} objects and {of_weeks} messages of {weeks} cells are as the source has them")


main()
