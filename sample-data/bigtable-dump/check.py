#!/usr/bin/env python3
"""Compares the files beside this one with datapackage.json."""

import hashlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    wrong = 0
    resources = json.loads((HERE / "datapackage.json").read_text())["resources"]
    for resource in resources:
        data = (HERE / resource["path"]).read_bytes()
        if (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}") != (resource["bytes"], resource["hash"]):
            print(f"{resource['path']}: not the file that datapackage.json describes", file=sys.stderr)
            wrong += 1
    for path in sorted({str(path.relative_to(HERE)) for path in HERE.glob("*/*.avro")} - {resource["path"] for resource in resources}):
        print(f"{path}: not in datapackage.json", file=sys.stderr)
        wrong += 1
    if wrong:
        sys.exit(1)
    print(f"bigtable-dump: {len(resources)} files as datapackage.json describes them")


if __name__ == "__main__":
    main()
