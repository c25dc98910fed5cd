"""Uses a server as programs with psycopg do: drivers_check.py PORT."""

import datetime
import sys
from decimal import Decimal

import psycopg
from psycopg import sql


def refuses(state, call):
    try:
        call()
    except psycopg.Error as error:
        assert error.sqlstate == state, (error.sqlstate, error)
        return str(error)
    raise AssertionError(f"{state} was expected")


def main():
    port = sys.argv[1]
    url = f"postgresql://ada@127.0.0.1:{port}/tidetable"
    with psycopg.connect(url) as conn:
        # Parameters, of types that the driver says and of such that follow from the query.
        count = lambda query, *values: conn.execute(query, values).fetchone()[0]
        assert count("SELECT count(*) FROM T WHERE small > %s", 0) == count("SELECT count(*) FROM T WHERE small > 0")
        assert count("SELECT count(*) FROM T WHERE name = %s", "plain") == 50
        assert count("SELECT count(*) FROM T WHERE price > %s", Decimal("1.255")) == count(
            "SELECT count(*) FROM T WHERE price > 1.255")
        assert count("SELECT count(*) FROM T WHERE ratio < %s", 0.5) == count("SELECT count(*) FROM T WHERE ratio < 0.5")
        assert count("SELECT count(*) FROM T WHERE ok = %s", True) == 100
        day = datetime.date(2024, 2, 3)
        assert count("SELECT count(*) FROM T WHERE day = %s", day) == count("SELECT count(*) FROM T WHERE day = '2024-02-03'")
        moment = datetime.datetime(2024, 3, 2, tzinfo=datetime.timezone.utc)
        assert count("SELECT count(*) FROM T WHERE ts >= %s", moment) == count("SELECT count(*) FROM T WHERE ts >= '2024-03-02'")
        assert count("SELECT count(*) FROM T WHERE ts >= %s", "2024-03-02 00:00:00+00") == count(
            "SELECT count(*) FROM T WHERE ts >= '2024-03-02'")
        assert count("SELECT count(*) FROM T WHERE id = ANY(%s)", [1, 2, 3]) == 3
        assert count("SELECT count(*) FROM T WHERE name = ANY(%s)", ["plain", "x"]) == 50
        assert count("SELECT %s", "text") == "text"
        assert count("SELECT count(*) FROM (SELECT 1 FROM T LIMIT %s)", 5) == 5
        assert count("SELECT %s::text", None) is None
        assert count("SELECT %b::bytea", b"\x00\xff") == b"\x00\xff"
        assert count("SELECT max(id) FROM T") == 2**64 - 1

        # Arrays whose items have quotes, escapes and nulls; intervals in both formats.
        odd = ['a"b', "c\\d", "e,f", "{g}", "NULL", "", " h ", None]
        for value in ("%s", "%t", "%b"):
            assert count(f"SELECT {value}::text[]", odd) == odd, value
            for length in (datetime.timedelta(days=1, hours=2, microseconds=500_000), datetime.timedelta(days=-1, seconds=5)):
                assert count(f"SELECT {value}::interval", length) == length, (value, length)
                later = count(f"SELECT TIMESTAMP '2024-03-02 00:00:00' + {value}", length)
                assert later == datetime.datetime(2024, 3, 2) + length, (value, later)
        assert count("SELECT count(*) FROM T WHERE name = ANY(%s)", ['a, "b"']) == 50

        # The same in binary, and prepared.
        for _ in range(8):
            row = conn.execute("SELECT id, price, ts FROM T WHERE id = %s", [7], binary=True, prepare=True).fetchone()
            assert row[0] == 7 and isinstance(row[1], Decimal) and row[2].tzinfo is not None, row
        refuses("22P02", lambda: conn.execute("SELECT count(*) FROM T WHERE small = %s", ["x"]))
        conn.rollback()
        refuses("42703", lambda: conn.execute("SELECT nothing FROM T WHERE small = %s", [1]))
        refuses("25P02", lambda: conn.execute("SELECT 1"))
        conn.rollback()
        assert "read-only" in refuses("25006", lambda: conn.execute("DELETE FROM T WHERE small = %s", [1]))
        conn.rollback()

        # Columns as they are described.
        cursor = conn.execute("SELECT id, small, price, name, ts, day, ok, ratio FROM T LIMIT 1")
        kinds = [column.type_code for column in cursor.description]
        assert kinds == [1700, 20, 1700, 25, 1184, 1082, 16, 701], kinds
        assert (cursor.description[2].precision, cursor.description[2].scale) == (12, 3)

        # Cursors of the server: pieces of a result.
        with conn.cursor("pieces") as pieces:
            pieces.itersize = 50
            pieces.execute("SELECT id FROM T ORDER BY id")
            assert len(pieces.fetchmany(10)) == 10
            assert len(list(pieces)) == 290
        conn.commit()
        with conn.cursor() as stream:
            assert sum(1 for _ in stream.stream("SELECT x FROM generate_series(1, 2000) AS s (x)")) == 2000
        with conn.cursor() as copied, copied.copy("COPY (SELECT id, name FROM T ORDER BY id LIMIT 3) TO STDOUT") as copy:
            assert len(list(copy.rows())) == 3
        with conn.cursor() as copied, copied.copy("COPY (SELECT 1::int, 'a'::text) TO STDOUT (FORMAT BINARY)") as copy:
            copy.set_types(["int4", "text"])
            assert list(copy.rows()) == [(1, "a")]
        conn.commit()

        # Several statements sent in one go.
        with conn.pipeline():
            cursors = [conn.execute("SELECT %s + 1", [number]) for number in range(5)]
        assert [cursor.fetchone()[0] for cursor in cursors] == [1, 2, 3, 4, 5]
        conn.rollback()
        def ask_in_pipeline():
            with conn.pipeline():
                conn.execute("SELECT nothing")
                conn.execute("SELECT 1")

        refuses("42703", ask_in_pipeline)
        conn.rollback()
        assert count("SELECT 1") == 1

        # More cursors than a session may have are refused.
        conn.commit()
        conn.execute("BEGIN")
        for number in range(16):
            conn.execute(sql.SQL("DECLARE {} CURSOR FOR SELECT 1").format(sql.Identifier(f"c{number}")))
        refuses("53400", lambda: conn.execute("DECLARE more CURSOR FOR SELECT 1"))
        conn.rollback()


main()
