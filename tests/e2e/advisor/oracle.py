"""Layouts measured a second time, from their definitions alone: `oracle.py make DIR SEED` writes a random job and its data,
`oracle.py check DIR FILE` reads what `tidetable compare j --output json` printed into a file, and exits with 1 at the first
number that differs. Needs the standard library of Python 3.11 only.
"""

import csv
import json
import math
import random
import sys
import tomllib
from bisect import bisect_right
from datetime import datetime, timezone
from pathlib import Path

LAYOUTS = 8
WIDTHS = [1, 5, 15, 60, 300, 900, 3600, 21600, 86400, 604800]


def micros(text):
    day = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round((day - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() * 1e6)


# A random job.

def random_layout(draw):
    """The tables section of one layout, as text, without its name."""
    entity = draw.choice(["{meter:08}", "{meter}", "{site}", "{site}#{meter:06}", "{meter:reversed}", "{site:<6}"])
    time = draw.choice(["{ts:%Y%m%d}", "{ts:%Y%m%d%H}", "{ts:ms}", "{ts:s}", "{ts:%Y%m%d%H%M%S}", ""])
    parts = [part for part in draw.choice([[entity, time], [time, entity]]) if part]
    unpivots = draw.random() < 0.3
    if unpivots and draw.random() < 0.5:
        parts.insert(draw.randrange(len(parts) + 1), "{metric}")
    lines = [f'row_key = "{"#".join(parts)}"', f'window = "{draw.choice(["day", "hour", "none"])}"']
    columns = []
    if unpivots:
        lines.append('unpivot = ["a", "b"]')
        columns.append(draw.choice([
            '{ qualifier = "{metric}", value = "{value}" }',
            '{ qualifier = "{value}", value = "" }',
            '{ qualifier = "{metric}#{ts:%H%M}", value = "{value}" }',
        ]))
    else:
        kind = draw.randrange(5)
        if kind == 0:
            columns.append('{ each = "*", except = ["meter", "site", "ts"], qualifier = "{column}", value = "{value}" }')
        elif kind == 1:
            columns.append('{ qualifier = "{ts:%H%M}", value = "{a}" }')
        elif kind == 2:
            columns += ['{ qualifier = "a", value = "{a}" }', '{ qualifier = "b", value = "{b}", encoding = "int64" }']
        elif kind == 3:
            columns.append('{ qualifier = "m", message = "Reading" }')
        else:
            columns.append('{ qualifier = "m", repeated = "Reading" }')
        if "{meter}" in parts or "{meter:08}" in parts:
            columns.append('{ qualifier = "ID", value = "{meter}" }')
    family = draw.choice(["f", "readings"])
    lines.append(f"[tables.NAME.families.{family}]")
    if draw.random() < 0.3:
        lines.append(f'gc = "maxversions={draw.randrange(1, 4)}"')
    lines.append(f"columns = [{', '.join(columns)}]")
    return "\n".join(lines)


def make(folder, seed):
    draw = random.Random(seed)
    job = ['name = "j"', "[sources.readings]", 'files = ["in/*.csv"]', 'time = "ts"', "[sources.readings.columns]", 'meter = "uint64"',
           'site = "text"', 'ts = "timestamp"', 'a = "decimal(8,2)"', 'b = "int64"', 'c = "text"', "[messages.Reading]",
           "fields = { a = 1, b = 2, c = 5 }"]
    for number in range(LAYOUTS):
        job.append(f"[tables.L{number}]")
        job.append(random_layout(draw).replace("NAME", f"L{number}"))
    (folder / "jobs/j").mkdir(parents=True, exist_ok=True)
    (folder / "in").mkdir(exist_ok=True)
    (folder / "jobs/j/job.toml").write_text("\n".join(job) + "\n")
    start = 1_614_902_400 + draw.randrange(-10, 10) * 86_400
    hours = draw.choice([2, 26, 60])
    meters = [draw.randrange(1, 10 ** 6) for _ in range(draw.choice([3, 17, 60]))]
    rows = []
    for _ in range(draw.randrange(200, 900)):
        meter = draw.choice(meters)
        second = start + draw.randrange(hours * 3600) // 60 * draw.choice([1, 60])
        milli = draw.choice([0, 0, draw.randrange(1000)])
        time = datetime.fromtimestamp(second, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{milli:03}Z"
        a = f"{draw.randrange(-5, 90)}.{draw.randrange(100):02}" if draw.random() < 0.9 else ""
        b = str(draw.randrange(-1000, 10 ** draw.randrange(1, 12))) if draw.random() < 0.8 else ""
        c = draw.choice(["on", "off", "déjà"]) if a == b == "" or draw.random() < 0.5 else ""
        rows.append([str(meter), f"s{meter % 7}", time, a.replace("-0.", "0."), b, c])
    for at in range(draw.choice([1, 2])):
        with open(folder / f"in/{at}.csv", "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(["meter", "site", "ts", "a", "b", "c"])
            out.writerows(rows[at::2] if at else rows[:len(rows) // 2 * 2])


# A layout, from its declaration to cells.

def printed(template, event):
    out, rest = "", template
    while rest:
        before, _, rest = rest.partition("{")
        out += before
        if not rest:
            break
        field, _, rest = rest.partition("}")
        name, _, form = field.partition(":")
        value = event[name]
        if value is None:
            return None
        if form.startswith("%"):
            value = datetime.fromtimestamp(value // 10 ** 6, timezone.utc).strftime(form)
        elif form in ("ms", "s"):
            value = str(value // {"ms": 1000, "s": 10 ** 6}[form]).zfill({"ms": 13, "s": 10}[form])
        elif form == "reversed":
            value = value[::-1]
        elif form.startswith("0"):
            value = value.zfill(int(form))
        elif form.startswith("<"):
            value = value.ljust(int(form[1:]))
        out += value
    return out.encode()


def varint(number):
    number &= 2 ** 64 - 1
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def delimited(number, content):
    return varint(number * 8 + 2) + varint(len(content)) + content


def message(event):
    out = b""
    if event["a"] is not None:
        out += delimited(1, event["a"].encode())
    if event["b"] is not None:
        out += varint(2 * 8) + varint(int(event["b"]))
    if event["c"] is not None:
        out += delimited(5, event["c"].encode())
    return out


def encode(table, rows):
    """Cells by row key, and column: timestamp to value; source rows by row key and second; source rows of which a cell was
    replaced, and these cells."""
    (family, declared), = table["families"].items()
    cells, writes, replaced, lists, owners, losers = {}, {}, 0, {}, {}, set()
    for number, row in enumerate(rows):
        events = [row]
        if "unpivot" in table:
            events = [{**row, "metric": name, "value": row[name]} for name in table["unpivot"] if row[name] is not None]
        for event in events:
            key = printed(table["row_key"], event)
            at = event["ts"] // 1000 * 1000
            made = []
            for column in declared["columns"]:
                if "each" in column:
                    names = [name for name in ("a", "b", "c") if event[name] is not None]
                    made += [(name.encode(), at, event[name].encode()) for name in names]
                elif "message" in column:
                    if any(event[name] is not None for name in "abc"):
                        made.append((column["qualifier"].encode(), at, message(event)))
                elif "repeated" in column:
                    if any(event[name] is not None for name in "abc"):
                        lists.setdefault((key, column["qualifier"].encode()), []).append((event["ts"] // 1000 * 1000, message(event)))
                        made.append(None)
                elif column["qualifier"] == "ID":
                    made.append((b"ID", 0, event["meter"].encode()))
                else:
                    value = printed(column["value"], event) if column["value"] else b""
                    if value is not None and column.get("encoding") == "int64":
                        value = int(value).to_bytes(8, "big", signed=True)
                    if value is not None:
                        made.append((printed(column["qualifier"], event), at, value))
            writes.setdefault(key, {})
            writes[key][event["ts"] // 10 ** 6] = writes[key].get(event["ts"] // 10 ** 6, 0) + 1
            for cell in filter(None, made):
                qualifier, time, value = cell
                versions = cells.setdefault(key, {}).setdefault((family.encode(), qualifier), {})
                # An ID, or a qualifier that is the value, is the same for every row that writes it.
                if time in versions and qualifier != b"ID" and value != b"":
                    replaced += 1
                    losers.add(owners[key, qualifier, time])
                versions[time] = value
                owners[key, qualifier, time] = number
    for (key, qualifier), events in lists.items():
        seen, joined = set(), b""
        for time, content in sorted(events, key=lambda event: event[0]):
            if (time, content) not in seen:
                seen.add((time, content))
                joined += delimited(1, content)
        cells.setdefault(key, {})[(family.encode(), qualifier)] = {0: joined}
    if "gc" in declared:
        most = int(declared["gc"].partition("=")[2])
        for columns in cells.values():
            for versions in columns.values():
                for time in sorted(versions, reverse=True)[most:]:
                    del versions[time]
    return cells, writes, len(losers), replaced


# Numbers.

def rank(values, per_mille):
    values = sorted(values)
    return values[max(math.ceil(len(values) * per_mille / 1000), 1) - 1] if values else 0


def quantiles(values):
    return {"p50": rank(values, 500), "p99": rank(values, 990), "max": max(values, default=0)}


def shares(values):
    mean = sum(values) / len(values) if values else 0
    return {"p50": rank(values, 500), "p95": rank(values, 950), "max": max(values, default=0), "mean": mean}


def best_cut(rows, ranges):
    low, high = max(max(rows), -(-sum(rows) // ranges)), sum(rows)
    while low < high:
        middle = (low + high) // 2
        used, here = 1, 0
        for count in rows:
            if here + count > middle:
                used, here = used + 1, 0
            here += count
        low, high = (low, middle) if used <= ranges else (middle + 1, high)
    return low


def spread(writes, first, last):
    width = next(width for width in WIDTHS if last // width - first // width + 1 <= 720)
    slices = [{} for _ in range(last // width - first // width + 1)]
    for key, seconds in writes.items():
        for second, count in seconds.items():
            own = slices[second // width - first // width]
            own[key] = own.get(key, 0) + count
    everything = sorted(writes)
    place = {key: (at + 0.5) / len(everything) for at, key in enumerate(everything)}
    known, few, many, best, row, places = [], [], [], [], [], []
    for own in slices:
        total = sum(own.values())
        if not total:
            continue
        if known:
            for ranges, out in ((10, few), (100, many)):
                cuts = [known[at * len(known) // ranges] for at in range(1, ranges)]
                counts = {}
                for key, count in own.items():
                    counts[bisect_right(cuts, key)] = counts.get(bisect_right(cuts, key), 0) + count
                out.append(max(counts.values()) / total)
        best.append(best_cut([own[key] for key in sorted(own)], 10) / total)
        row.append(max(own.values()) / total)
        places.append((sum(place[key] * count for key, count in own.items()), total))
        known = sorted(set(known) | set(own))
    tenth = max(len(places) // 10, 1)
    mean = lambda part: sum(at for at, _ in part) / sum(total for _, total in part)
    return {
        "slice_seconds": width,
        "top_share_10": shares(few),
        "top_share_100": shares(many),
        "hindsight_share_10": shares(best),
        "hottest_row_share": shares(row),
        "travel": mean(places[-tenth:]) - mean(places[:tenth]),
    }


def measured(table, rows, first, last):
    cells, writes, losers, replaced = encode(table, rows)
    parts = {"key": 0, "family": 0, "qualifier": 0, "value": 0, "timestamp": 0}
    by_row, bytes_of, versions = [], {}, []
    for key, columns in cells.items():
        count = size = 0
        for (family, qualifier), held in columns.items():
            versions.append(len(held))
            for value in held.values():
                count += 1
                for part, content in (("key", key), ("family", family), ("qualifier", qualifier), ("value", value), ("timestamp", b"8" * 8)):
                    parts[part] += len(content)
                    size += len(content)
        by_row.append(count)
        bytes_of[key] = size
    largest = min(key for key, size in bytes_of.items() if size == max(bytes_of.values()))
    return {
        "rows": len(cells),
        "cells": sum(by_row),
        "bytes_as_cells": sum(parts.values()),
        "bytes": parts,
        "cells_a_row": quantiles(by_row),
        "bytes_a_row": quantiles(list(bytes_of.values())),
        "largest_row": {"key": largest.decode(), "cells": by_row[list(cells).index(largest)], "bytes": bytes_of[largest]},
        "versions_a_column": quantiles(versions),
        "overwritten_rows": losers,
        "overwritten_cells": replaced,
        **spread(writes, first, last),
    }


def differs(path, expected, found):
    if isinstance(expected, dict):
        return next(filter(None, (differs(f"{path}.{name}", own, found.get(name)) for name, own in expected.items())), None)
    same = abs(expected - found) < 1e-6 if isinstance(expected, float) or isinstance(found, float) else expected == found
    return None if same else f"{path}: {found}, and by the definition {expected}"


def read_rows(folder, job):
    source, = job["sources"].values()
    rows = []
    for pattern in source["files"]:
        for path in sorted(folder.glob(pattern)):
            with open(path, newline="") as file:
                for row in csv.DictReader(file):
                    row = {name: value if value != "" else None for name, value in row.items()}
                    rows.append({**row, "ts": micros(row["ts"])})
    return rows


def check(folder, file):
    job = tomllib.loads((folder / "jobs/j/job.toml").read_text())
    rows = read_rows(folder, job)
    seconds = [row["ts"] // 10 ** 6 for row in rows]
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert [layout["layout"] for layout in found] == list(job["tables"]), [layout["layout"] for layout in found]
    expected = {name: measured(table, rows, min(seconds), max(seconds)) for name, table in job["tables"].items()}
    least = min(layout["bytes_as_cells"] for layout in expected.values())
    for layout in found:
        table, own = job["tables"][layout["layout"]], expected[layout["layout"]]
        own["duplication"] = own["bytes_as_cells"] / least
        # Files have every row and value in some form: less than a hundredth of the cells would be too little.
        assert own["bytes_as_cells"] / 100 < layout["own_bytes"] < own["bytes_as_cells"] * 2 + 65536, layout["own_bytes"]
        wrong = differs(layout["layout"], own, layout)
        if wrong:
            sys.exit(f"{wrong}\n{table}")
    print(len(found), "layouts")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        check(Path(sys.argv[2]), Path(sys.argv[3]))
