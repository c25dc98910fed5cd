"""Asks the Python module of its own: `python_module_check.py MODULES COMMAND PROJECT`. Prints nothing; an assertion tells what is wrong."""

import datetime
import decimal
import os
import signal
import subprocess
import sys
import threading

MODULES, os.environ["TIDETABLE_BIN"], PROJECT = sys.argv[1:]
sys.path.insert(0, MODULES)

import tidetable
from tidetable import _ipc
from tidetable._parameters import bound, literal

# Every type of a column, with nulls where there can be.
TYPES = """SELECT meter, ts, kwh, price, note, ok, CAST(ts AS DATE) AS day, CASE WHEN meter = 2 THEN NULL ELSE [meter, 2] END AS list,
{'a': meter, 'b': note} AS struct, map {'k': note} AS map, CAST(note AS BYTEA) AS bytes, INTERVAL '1 day' AS interval,
arrow_cast(note, 'Utf8View') AS view, arrow_cast(repeat(note, 20), 'Utf8View') AS views, arrow_cast(note, 'Dictionary(Int32, Utf8)') AS word,
arrow_cast(kwh, 'Float32') AS narrow, CAST(price AS DECIMAL(38, 2)) AS wide FROM T ORDER BY meter, ts"""
SUMS = "SELECT count(*), sum(kwh), sum(price), epoch_us(max(ts)), max(day), max(note), max(views), sum(list[1]), max(map['k']), max(word) FROM result"


def sql(query, **options):
    return tidetable.sql(query, project=PROJECT, **options)


def fails(code, words, work):
    try:
        work()
    except tidetable.TidetableError as error:
        assert error.code == code and words in str(error), (error.code, str(error))
    else:
        raise AssertionError(f"no error about {words}")


def without_other_packages():
    """DuckDB alone: the stream is the module's own."""
    import duckdb

    assert "pyarrow" not in sys.modules and "polars" not in sys.modules
    result = sql(TYPES)
    found = duckdb.sql(SUMS).fetchall()
    day = datetime.date(2026, 3, 29)
    micros = 1_774_742_400_000_000
    assert found == [(3, -1.9, decimal.Decimal("4.50"), micros, day, "x", "x" * 20, 1, "x", "x")], found

    # Rows that nobody read are given up, and so is what read them.
    result = sql("SELECT value AS v FROM generate_series(1, 3000000)")
    assert duckdb.sql("FROM result LIMIT 1").fetchall()
    result = sql("SELECT 10 / (value - 50000) AS v FROM generate_series(1, 100000)")
    try:
        duckdb.sql("SELECT sum(v) FROM result").fetchall()
    except duckdb.Error as error:
        assert "Divide by zero" in str(error), error
    else:
        raise AssertionError("a query that fails is no answer")
    del result
    assert not _ipc.kept, _ipc.kept


def own_stream_equals_that_of_pyarrow():
    import pyarrow

    class Own:
        def __init__(self, result):
            self.rows = result._take()

        def __arrow_c_stream__(self, requested_schema=None):
            return _ipc.stream_capsule(_ipc.Reader(self.rows), self.rows.close)

    own, theirs = pyarrow.table(Own(sql(TYPES))), sql(TYPES).arrow()
    own.validate(full=True)
    assert own.schema.equals(theirs.schema), (own.schema, theirs.schema)
    for name in own.schema.names:
        # Words of a dictionary have no order.
        one, other = (table[name].cast("string") if name == "word" else table[name] for table in (own, theirs))
        assert one.equals(other), (name, one, other)
    del one, other
    del own
    assert not _ipc.kept, _ipc.kept


def frames():
    import pandas
    import polars
    import pyarrow

    # Polars has no type for it.
    types = TYPES.replace("INTERVAL '1 day' AS interval,", "")
    frame = polars.DataFrame(sql(types))
    assert frame.equals(sql(types).pl()) and frame.height == 3
    assert str(frame.schema["ts"]) == "Datetime(time_unit='us', time_zone='UTC')" and frame.schema["day"] == polars.Date

    frame = sql("SELECT ts, CAST(ts AS DATE) AS day, price, kwh FROM T ORDER BY ts").df()
    assert isinstance(frame, pandas.DataFrame) and str(frame.dtypes["price"]) == "float64", frame.dtypes
    assert "UTC" in str(frame.dtypes["ts"]) and str(frame.dtypes["day"]).startswith("datetime64"), frame.dtypes
    assert isinstance(sql("SELECT price FROM T WHERE price = 3").df(decimals="decimal").price[0], decimal.Decimal)

    # An error may come while a table is let go.
    try:
        assert sql("SELECT 1 AS one").arrow() and sql("SELECT 10 / (value - 50000) FROM generate_series(1, 100000)").arrow()
    except tidetable.TidetableError as error:
        assert "Divide by zero" in str(error), error
    assert pyarrow.table(sql("SELECT meter FROM T")).num_rows == 3


def parameters():
    row = {
        "none": None, "flag": True, "whole": -7, "part": 0.1, "price": decimal.Decimal("-12.340"), "text": "a'b$c; -- \\",
        "bytes": b"\0'\xff", "moment": datetime.datetime(2026, 3, 29, 1, 2, 3, 4, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        "local": datetime.datetime(2026, 3, 29, 1, 2, 3), "day": datetime.date(2026, 3, 29),
    }
    query = "SELECT " + ", ".join(f"${name} AS {name}" for name in row)
    found = sql(query, params=row).arrow().to_pylist()[0]
    assert found == row, found
    times = sql("SELECT TIMESTAMP '2026-03-29' + $1 AS t, 3-$2 AS n", params=[datetime.timedelta(days=-1, hours=1), -2]).arrow().to_pylist()
    assert str(times[0]["t"])[:19] == "2026-03-28 01:00:00" and times[0]["n"] == 5, times
    assert sql("SELECT count(*) AS n FROM T WHERE meter = ANY($1)", params=[[1, 2]]).arrow()["n"][0].as_py() == 3

    # Only parameters are replaced.
    assert bound("SELECT '$1', \"$1\", $1 -- $1\n/* $1 */", [1]) == "SELECT '$1', \"$1\",  1  -- $1\n/* $1 */"
    assert sql("SELECT $1 AS v", params=["x' OR 'a' = 'a"]).arrow()["v"][0].as_py() == "x' OR 'a' = 'a"
    for query, values in (("SELECT $1", []), ("SELECT $b", {"a": 1}), ("SELECT 1", [1]), ("SELECT $1", ["\0"])):
        try:
            bound(query, values)
        except ValueError:
            continue
        raise AssertionError(f"{query} takes {values}")
    for value in (object(), {1}):
        try:
            literal(value)
        except TypeError:
            continue
        raise AssertionError(f"{value} is no parameter")
    # Longer than an argument may be.
    long = "x" * 300_000
    assert sql("SELECT length($1) AS n", params=[long]).arrow()["n"][0].as_py() == 300_000


def commands():
    fails(2, "nope", lambda: sql("SELECT nope FROM T"))
    fails(2, "line 1, column", lambda: sql("SELECT meter FRM T WHERE"))
    fails(2, "nope", lambda: tidetable.run("nope", project=PROJECT))
    result = sql("SELECT 1 AS one")
    result.arrow()
    fails(2, "have been read", result.arrow)
    assert sql("SELECT meter AS a, ts FROM T").columns == ["a", "ts"]

    assert {table["name"] for table in tidetable.tables(project=PROJECT)} >= {"T"}
    assert tidetable.describe("T", project=PROJECT)["inputs"]
    rows = list(tidetable.read("T", project=PROJECT, prefix="002", columns=["M:note"]))
    assert [cell["value"] for row in rows for cell in row["cells"]] == ["n", "x"], rows
    assert len(list(tidetable.read("T", project=PROJECT, limit=1, reverse=True))) == 1
    assert tidetable.run("j", project=PROJECT)["job"] == "j"
    versions = tidetable.tables(project=PROJECT)[0]["version"]
    assert sql("SELECT count(*) AS n FROM T", version=versions).arrow()["n"][0].as_py() == 3


def interrupts():
    """Ctrl-C of a notebook reaches this process alone; the command ends with it."""
    result = sql("SELECT count(*) FROM generate_series(1, 100000000000) AS s (v) WHERE v % 7 = 9")
    ended = threading.Event()

    def press():
        # Again, as people do: a signal just before a blocking read waits for the next one.
        while not ended.wait(1):
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    try:
        result.arrow()
    except KeyboardInterrupt:
        ended.set()
    else:
        raise AssertionError("the query was not interrupted")
    finally:
        ended.set()
        result.close()
    left = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "100000000000"], capture_output=True, text=True, check=False).stdout
    assert not left.strip(), left


without_other_packages()
own_stream_equals_that_of_pyarrow()
frames()
parameters()
commands()
interrupts()
