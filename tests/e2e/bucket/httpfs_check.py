#!/usr/bin/env python3
"""Reads published days in a bucket with DuckDB's httpfs, as somebody does who knows nothing of tidetable.

    httpfs_check.py ENDPOINT BUCKET KEY SECRET query SQL
    httpfs_check.py ENDPOINT BUCKET KEY SECRET loop HOW ROOT STOP

`query` prints the rows of SQL as JSON, an array a line. `loop` reads the export E below ROOT again and again until the file STOP
exists, each time with a new connection: of each day its rows and the least and greatest kwh. HOW says by what it goes:
`glob` by the names of the files, in ranges, between which a file may be replaced: DuckDB 1.5.5 does not notice, and then mostly
fails; `whole` by the names, each file fetched whole (force_download); `list` by the export's list. Prints a JSON object: reads, errors
(by message), and seen, the results.
"""

import importlib.util
import json
import pathlib
import sys

import duckdb


def connect(endpoint, key, secret):
    """A new connection, with httpfs of its wheel or as this DuckDB finds it."""
    found = importlib.util.find_spec("duckdb_extension_httpfs")
    files = pathlib.Path(found.origin).parent.rglob("*.duckdb_extension") if found else []
    db = duckdb.connect()
    db.execute(next((f"LOAD '{file}'" for file in files), "LOAD httpfs"))
    db.execute("SET TimeZone = 'UTC'")
    db.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{key}', SECRET '{secret}', REGION 'us-east-1', "
        f"ENDPOINT '{endpoint.removeprefix('http://')}', URL_STYLE 'path', USE_SSL false)"
    )
    return db


def listed(db, root):
    """The files of the export E by its list. DuckDB notices that a list is replaced while it is read, and says to ask again."""
    for left in reversed(range(10)):
        try:
            [(text,)] = db.execute(f"SELECT content FROM read_text('{root}/exports/E.json')").fetchall()
            break
        except duckdb.HTTPException as error:
            if "ETag" not in str(error) or left == 0:
                raise
    parts = json.loads(text)["parts"].values()
    return [f"{root}/exports/{part['folder']}/{file}" for part in parts for file in names(part)]


def names(part):
    return [part["file"], *(more["file"] for more in part.get("more", []))]


def read(db, how, root):
    """Of each day: its name, rows, least and greatest kwh."""
    if how == "whole":
        db.execute("SET force_download = true")
    files = listed(db, root) if how == "list" else f"{root}/exports/E_*/*.parquet"
    sql = (
        "SELECT regexp_extract(filename, 'E_[0-9]+') AS day, count(*), min(kwh), max(kwh) "
        f"FROM read_parquet({files!r}, filename = true) GROUP BY 1 ORDER BY 1"
    )
    return db.execute(sql).fetchall()


def main():
    endpoint, bucket, key, secret, mode, *rest = sys.argv[1:]
    if mode == "query":
        for row in connect(endpoint, key, secret).execute(rest[0]).fetchall():
            print(json.dumps(row, default=str))
        return
    how, root, stop = rest
    done = {"reads": 0, "errors": {}, "seen": []}
    last = False
    while not last:
        # Once more after the end.
        last = pathlib.Path(stop).exists()
        db = connect(endpoint, key, secret)
        try:
            seen = [list(row) for row in read(db, how, f"s3://{bucket}/{root}")]
            done["reads"] += 1
            if seen not in done["seen"]:
                done["seen"].append(seen)
        # A message may hold bytes of the file.
        except (duckdb.Error, UnicodeDecodeError) as error:
            text = str(error)
            done["errors"][text] = done["errors"].get(text, 0) + 1
        db.close()
    print(json.dumps(done))


if __name__ == "__main__":
    main()
