"""Asks Google's emulator of Bigtable what queries see: `emulator.py EMULATOR DIR TABLE` writes the cells of DIR/cells.jsonl into a
table, reads the key ranges of each query with `cbt read include-stats=full`, and compares rows and cells seen with those of
DIR/asked.json, which `tidetable compare` printed. Which ranges they are is written down here once more, by hand.
"""

import csv
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

METERS = ["000003#", "000007#", "000009#"]
RANGES = {
    "DAYS": {
        "point": [["start=000007#20210302", "end=000007#20210302!"]],
        "range": [["prefix=000007#"]],
        "ranges": [[f"prefix={meter}"] for meter in METERS],
        "all": [[]],
    },
    # Keys begin with the day, so a meter alone bounds nothing.
    "EVENTS": {"point": [["prefix=20210302#000007#"]], "range": [[]], "ranges": [[]], "all": [[]]},
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port, server):
    while server.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit("the emulator ended")


def write(cbt, folder, table):
    rows, columns = {}, []
    for line in (folder / "cells.jsonl").read_text().splitlines():
        cell = json.loads(line)
        if cell["qualifier"] not in columns:
            columns.append(cell["qualifier"])
        rows.setdefault(cell["key"], {})[cell["qualifier"]] = f"{cell['value']}@{cell['at']}"
    with open(folder / "cells.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["", "M"] + [""] * (len(columns) - 1))
        out.writerow(["", *columns])
        out.writerows([key, *(cells.get(column, "") for column in columns)] for key, cells in rows.items())
    cbt("createtable", table, "families=M")
    cbt("import", table, str(folder / "cells.csv"), "timestamp=value-encoded")


def main(emulator, folder, table):
    port = free_port()
    server = subprocess.Popen([emulator, "-host", "127.0.0.1", "-port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    environment = {**os.environ, "BIGTABLE_EMULATOR_HOST": f"127.0.0.1:{port}"}

    def cbt(*words):
        ran = subprocess.run(["cbt", "-project", "p", "-instance", "i", *words], env=environment, capture_output=True, text=True)
        if ran.returncode:
            sys.exit(f"cbt {words}: {ran.stderr}")
        return ran.stdout

    try:
        wait_for(port, server)
        write(cbt, folder, table)
        asked = json.loads((folder / "asked.json").read_text())
        for query in asked:
            seen = {"rows": 0, "cells": 0}
            ranges = RANGES[table][query["query"]]
            for words in ranges:
                said = cbt("read", table, *words, "include-stats=full")
                for name in seen:
                    seen[name] += int(re.search(rf"^{name}_seen_count: (\d+)$", said, re.M).group(1))
            ours = {name: query[f"{name}_seen"]["p50"] for name in seen}
            if ours != seen or query["ranges"]["p50"] != len(ranges):
                sys.exit(f"{table} {query['query']}: the emulator sees {seen} in {len(ranges)} ranges, and we say {ours}: {query}")
        print(len(asked), "queries")
    finally:
        server.kill()
        server.wait()


main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
