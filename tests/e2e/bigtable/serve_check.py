"""Reads a served table with Google's client for Python: serve_check.py ADDRESS EXPECTED.

EXPECTED has the rows of table T as `tidetable read --output json` prints them.
"""

import base64
import datetime
import json
import sys

from clients import TABLE, cells, table
from google.api_core import exceptions
from google.cloud.bigtable.data import ReadRowsQuery, RowRange, row_filters
from google.cloud.bigtable.data.execute_query import SqlType
from google.cloud.bigtable.data.mutations import SetCell
from google.cloud.bigtable_admin_v2 import BaseBigtableTableAdminClient
from google.cloud.bigtable_admin_v2.services.bigtable_table_admin.transports import BigtableTableAdminGrpcTransport
from google.cloud.bigtable_v2 import (BigtableClient, ExecuteQueryRequest, ProtoRows, ReadRowsRequest, RowFilter, Type,
                                      Value)
from google.cloud.bigtable_v2.services.bigtable.transports import BigtableGrpcTransport

import grpc

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def of_json(value):
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])


def micros(text):
    return (datetime.datetime.fromisoformat(text) - EPOCH) // datetime.timedelta(microseconds=1)


def expected(path):
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            rows[of_json(row["key"])] = [(c["family"], of_json(c["qualifier"]), micros(c["timestamp"]),
                                          of_json(c["value"]), ()) for c in row["cells"]]
    return rows


def refuses(kind, call, said=""):
    try:
        call()
    except kind as error:
        assert said in str(error), error
        return
    raise AssertionError(f"{kind.__name__} was expected")


def main():
    address, path = sys.argv[1:3]
    rows = expected(path)
    keys = sorted(rows)
    client, t = table(address)
    read = lambda **query: [(r.row_key, cells(r)) for r in t.read_rows(ReadRowsQuery(**query))]

    # Rows: all, in both directions, by key, by range, up to a limit.
    assert read() == [(key, rows[key]) for key in keys]
    assert read(row_keys=[keys[3], b"no such row", keys[1]]) == [(key, rows[key]) for key in (keys[1], keys[3])]
    some = RowRange(keys[2], keys[6], start_is_inclusive=False, end_is_inclusive=True)
    assert [key for key, _ in read(row_ranges=[some])] == keys[3:7]
    assert [key for key, _ in read(limit=2)] == keys[:2]
    assert t.read_row(keys[0]).row_key == keys[0]
    assert t.read_row(b"no such row") is None
    newest = read(row_filter=row_filters.CellsColumnLimitFilter(1))
    assert all(len({c[:2] for c in cells}) == len(cells) for _, cells in newest)

    channel = grpc.insecure_channel(address)
    raw = BigtableClient(transport=BigtableGrpcTransport(channel=channel))
    ask = lambda **request: list(raw.read_rows(ReadRowsRequest(table_name=TABLE, **request)))
    back = [c.row_key for r in ask(reversed=True) for c in r.chunks if c.row_key]
    assert back == keys[::-1], back

    # Statistics come last, and tell of all rows.
    filtered = RowFilter(row_key_regex_filter=b"ab.*")
    last = ask(request_stats_view=ReadRowsRequest.RequestStatsView.REQUEST_STATS_FULL, filter=filtered)[-1]
    counts = last.request_stats.full_read_stats_view.read_iteration_stats
    of_ab = [key for key in keys if key.startswith(b"ab")]
    assert (counts.rows_seen_count, counts.rows_returned_count) == (len(keys), len(of_ab)), counts
    assert counts.cells_seen_count == sum(map(len, rows.values())), counts
    assert counts.cells_returned_count == sum(len(rows[key]) for key in of_ab), counts

    # What is not there, or not allowed.
    refuses(exceptions.InvalidArgument, lambda: ask(rows_limit=-1), "rows_limit")
    refuses(exceptions.InvalidArgument, lambda: ask(filter=RowFilter(value_regex_filter=b"(")), "value_regex_filter")
    refuses(exceptions.NotFound, lambda: list(raw.read_rows(ReadRowsRequest(table_name=TABLE + "X"))), "tables here: T")
    refuses(exceptions.InvalidArgument, lambda: list(raw.read_rows(ReadRowsRequest(table_name="T"))), "projects/PROJECT")
    refuses(exceptions.FailedPrecondition, lambda: t.mutate_row(b"r", [SetCell("m", b"q", b"v")]), "read-only")
    increment = lambda: raw.read_modify_write_row(table_name=TABLE, row_key=b"r", rules=[])
    refuses(exceptions.FailedPrecondition, increment, "read-only")
    raw.ping_and_warm(name="projects/p/instances/i")

    samples = t.sample_row_keys()
    assert samples[-1][0] == b"" and [key for key, _ in samples[:-1]] == sorted(key for key, _ in samples[:-1])

    admin = BaseBigtableTableAdminClient(transport=BigtableTableAdminGrpcTransport(channel=channel))
    assert [found.name for found in admin.list_tables(parent="projects/p/instances/i")] == [TABLE]
    assert sorted(admin.get_table(name=TABLE).column_families) == ["a", "h", "m"]

    refuses(exceptions.FailedPrecondition, lambda: admin.delete_table(name=TABLE), "DeleteTable is refused")
    refuses(exceptions.FailedPrecondition, lambda: admin.drop_row_range({"name": TABLE, "row_key_prefix": b"a"}), "read-only")
    refuses(exceptions.InvalidArgument, lambda: list(raw.read_rows(ReadRowsRequest(
        table_name=TABLE, rows={"row_keys": [b""]}))), "Row keys must be non-empty")

    # SQL over rows.
    def sql(query, **given):
        plain = lambda value: datetime.date(value.year, value.month, value.day) if type(value).__name__ == "Date" else value
        return [[plain(value) for _, value in row.fields] for row in client.execute_query(query, "i", **given)]

    assert sql("SELECT count(*) AS n FROM T") == [[len(keys)]]
    found = sql("SELECT _key, a['device'] FROM T ORDER BY _key")
    assert [row[0] for row in found] == keys, found
    assert found[0][1] == keys[0].split(b"#")[0]
    one = sql("SELECT _key FROM T WHERE _key = @key", parameters={"key": keys[4]})
    assert one == [[keys[4]]], one
    prefixed = sql("SELECT _key FROM T WHERE STARTS_WITH(_key, @prefix)", parameters={"prefix": b"ab#"})
    assert prefixed == [[key] for key in keys if key.startswith(b"ab#")], prefixed
    listed = sql("SELECT _key FROM T WHERE _key IN UNNEST(@keys)", parameters={"keys": [keys[2], b"none"]},
                 parameter_types={"keys": SqlType.Array(SqlType.Bytes())})
    assert listed == [[keys[2]]], listed
    kinds = {"b": (b"\xff", SqlType.Bytes()), "s": ("text", SqlType.String()), "i": (-7, SqlType.Int64()),
             "f": (1.5, SqlType.Float64()), "o": (True, SqlType.Bool()),
             "t": (datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc), SqlType.Timestamp()),
             "d": (datetime.date(2024, 2, 29), SqlType.Date()), "l": ([1, None, 3], SqlType.Array(SqlType.Int64()))}
    text = "SELECT " + ", ".join(f"@{name} AS {name}" for name in kinds)
    row = sql(text, parameters={name: value for name, (value, _) in kinds.items()},
              parameter_types={name: kind for name, (_, kind) in kinds.items()})[0]
    assert row == [value for value, _ in kinds.values()], row
    history = sql("SELECT h FROM T(with_history => TRUE) WHERE _key = @key", parameters={"key": keys[0]})[0][0]
    in_order = {q: [(c[2], c[3]) for c in rows[keys[0]] if c[:2] == ("h", q)] for q in history}
    got = {q: [(micros(s["timestamp"].isoformat()), s["value"]) for s in versions] for q, versions in history.items()}
    assert got == in_order and got, (got, in_order)
    many = sql("SELECT _key, m['temp'], h FROM T")
    assert len(many) == len(keys)
    refuses(exceptions.InvalidArgument, lambda: sql("SELECT nothing FROM T"), "nothing")
    refuses(exceptions.InvalidArgument, lambda: sql("DELETE FROM T"))
    assert sql("SELECT 1/2 AS x, b'\\x01' AS x, \"a\" AS z") == [[0.5, b"\x01", "a"]]
    newest = sql("SELECT h['00'][0].value FROM T(with_history => TRUE) WHERE _key = @key", parameters={"key": keys[0]})
    assert newest == [[history[b"00"][0]["value"]]], newest

    # A result can be resumed at each of its places.
    asked = {"instance_name": "projects/p/instances/i", "query": "SELECT unnest(generate_series(1, @n)) AS n",
             "params": {"n": Value(int_value=100_000, type_=Type(int64_type=Type.Int64()))}}
    responses = list(raw.execute_query(ExecuteQueryRequest(**asked)))
    assert "metadata" in responses[0] and responses[0].metadata.proto_schema.columns[0].name == "n"
    places, batch, whole = [], b"", []
    for response in responses[1:]:
        batch += response.results.proto_rows_batch.batch_data
        if response.results.resume_token:
            whole += [value.int_value for value in ProtoRows.deserialize(batch).values]
            places.append((response.results.resume_token, len(whole)))
            batch = b""
    assert whole == list(range(1, 100_001)) and len(places) > 2, places
    for token, before in (places[0], places[-2], places[-1]):
        again = list(raw.execute_query(ExecuteQueryRequest(resume_token=token, **asked)))
        assert not any("metadata" in response for response in again)
        data = b"".join(response.results.proto_rows_batch.batch_data for response in again)
        assert [value.int_value for value in ProtoRows.deserialize(data).values] == whole[before:]
    other = {**asked, "query": asked["query"] + " LIMIT 5"}
    refuses(exceptions.InvalidArgument, lambda: list(raw.execute_query(ExecuteQueryRequest(resume_token=places[0][0], **other))),
            "another query")

    # A client that goes away in the middle leaves a server that answers.
    stream = raw.read_rows(ReadRowsRequest(table_name=TABLE))
    stream.cancel()
    assert [key for key, _ in read(limit=1)] == keys[:1]
    channel.close()
    client.close()


if __name__ == "__main__":
    main()
