"""Draws layouts.svg: bytes a reading by layout, measured by a run of the job weather-balloons on its sample data.

Usage: python3 docs/images/layouts.py TIDETABLE, from the root of the repository.
"""

import base64
import json
import pathlib
import subprocess
import sys
import tempfile

LAYOUTS = {
    "BALLOON_NEW_COLUMNS": "a row a quantity and week, values as qualifiers",
    "BALLOON_EVENTS": "a row a reading, a column a quantity",
    "BALLOON_NEW_CELLS": "a row a week, versions of a column a quantity",
    "BALLOON_EVENTS_SERIALIZED": "a row a reading, one protobuf cell",
    "BALLOON_WEEK_SERIALIZED": "a row a week, one protobuf cell",
}
STYLE = """
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #24292f }
.quiet { fill: #57606a } .cells { fill: #9a6700 } .file { fill: #0969da }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .quiet { fill: #9198a1 } .cells { fill: #d29922 } .file { fill: #4493f8 }
}
"""
TIMESTAMP = 8


def lines(*command):
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def size(value):
    return len(base64.b64decode(value["base64"]) if isinstance(value, dict) else value.encode())


def cell_bytes(rows):
    """What Bigtable is given before it compresses: key, family, qualifier, value and timestamp of each cell."""
    total = 0
    for row in rows:
        for cell in row["cells"]:
            names = [row["key"], cell["family"], cell["qualifier"], cell["value"]]
            total += sum(map(size, names)) + TIMESTAMP
    return total


def measure(command):
    """Bytes a reading as cells and in the file, by table."""
    with tempfile.TemporaryDirectory() as root:
        flags = ["--root", root, "--output", "json"]
        [run] = lines(command, "run", "weather-balloons", *flags)
        readings = run["loads"][0]["rows_read"]
        files = {table["name"]: table["bytes"] for table in lines(command, "tables", *flags)}
        cells = {name: cell_bytes(lines(command, "read", name, *flags)) for name in LAYOUTS}
    return readings, {name: (cells[name] / readings, files[name] / readings) for name in LAYOUTS}


def bar(y, width, kind, value):
    return [
        f'<rect class="{kind}" x="20" y="{y}" width="{width:.0f}" height="12" rx="2"/>',
        f'<text x="{28 + width:.0f}" y="{y + 11}">{value:.0f}</text>',
    ]


def draw(readings, sizes):
    scale = 620 / max(cells for cells, _ in sizes.values())
    height = 84 + 66 * len(sizes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" width="720" height="{height}" role="img">',
        "<title>Bytes a reading by layout</title>",
        f"<style>{STYLE}</style>",
        f'<text x="20" y="24">Bytes a reading: {readings:,} readings of weather balloons in five layouts</text>',
        '<rect class="cells" x="20" y="38" width="12" height="12" rx="2"/>',
        '<text class="quiet" x="38" y="49">as Bigtable cells, uncompressed</text>',
        '<rect class="file" x="320" y="38" width="12" height="12" rx="2"/>',
        '<text class="quiet" x="338" y="49">in the SST of the table</text>',
    ]
    for place, (name, (cells, file)) in enumerate(sizes.items()):
        y = 84 + 66 * place
        parts.append(f'<text x="20" y="{y}">{name}<tspan class="quiet">  {LAYOUTS[name]}</tspan></text>')
        parts += bar(y + 8, cells * scale, "cells", cells)
        parts += bar(y + 24, max(file * scale, 1), "file", file)
    return "\n".join([*parts, "</svg>"]) + "\n"


pathlib.Path(__file__).with_name("layouts.svg").write_text(draw(*measure(sys.argv[1])))
