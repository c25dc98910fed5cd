"""Cancels a query of a server: cancel_check.py PORT QUERY."""

import sys
import threading
import time

import psycopg


def main():
    port, query = sys.argv[1:3]
    with psycopg.connect(f"host=127.0.0.1 port={port} user=ada dbname=tidetable", autocommit=True) as conn:
        # A request that comes before a statement cancels none.
        conn.cancel()
        assert conn.execute("SELECT 1").fetchone() == (1,)

        for name in (None, "portal"):
            ended = threading.Event()

            def cancel():
                while not ended.wait(0.05):
                    conn.cancel()

            thread = threading.Thread(target=cancel)
            thread.start()
            begun = time.monotonic()
            try:
                if name is None:
                    conn.execute(query)
                else:
                    conn.execute(query.replace("%", "%%") + " AND x > %s", [0], prepare=True)
                raise AssertionError("the query was not cancelled")
            except psycopg.errors.QueryCanceled as error:
                assert error.sqlstate == "57014", error
            finally:
                ended.set()
                thread.join()
            assert time.monotonic() - begun < 60
            # The connection goes on, also if a late request cancels the statement after it.
            for _ in range(20):
                try:
                    assert conn.execute("SELECT 2").fetchone() == (2,)
                    break
                except psycopg.errors.QueryCanceled:
                    pass
            else:
                raise AssertionError("the connection does not go on")


main()
