"""Asks a server and the official emulator for the same rows: filters_check.py ADDRESS EMULATOR COUNT.

The emulator holds the cells of the server's table T. Random filters and ranges are sent to both. What is not compared is
listed in TRAPS, by name, with the number of questions that met it.
"""

import collections
import os
import random
import socket
import subprocess
import sys
import time

import grpc
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import BaseBigtableTableAdminClient, ColumnFamily, CreateTableRequest, Table
from google.cloud.bigtable_admin_v2.services.bigtable_table_admin.transports import BigtableTableAdminGrpcTransport
from google.cloud.bigtable_v2 import (BigtableClient, ColumnRange, MutateRowsRequest, Mutation, ReadRowsRequest,
                                      RowFilter, RowRange, RowSet, TimestampRange, ValueRange)
from google.cloud.bigtable_v2.services.bigtable.transports import BigtableGrpcTransport

from clients import TABLE

SEED = 20240101
INSTANCE = "projects/p/instances/i"
OPTIONS = [("grpc.max_receive_message_length", -1)]


def kind(f):
    return RowFilter.pb(f).WhichOneof("filter")


def inside(f):
    """The filters of a filter, itself first."""
    yield f
    name = kind(f)
    if name in ("chain", "interleave"):
        for sub in getattr(f, name).filters:
            yield from inside(sub)
    if name == "condition":
        for part in ("predicate_filter", "true_filter", "false_filter"):
            if part in f.condition:
                yield from inside(getattr(f.condition, part))


def kinds(f):
    return {kind(sub) for sub in inside(f)}


def has_duplicates(f):
    """Whether cells may come out several times: their order is not specified, so neither is what limits keep of them."""
    return any(kind(sub) == "interleave" for sub in inside(f))


def is_of_one_family(f):
    """Whether only cells of one family reach the other filters."""
    return kind(f) == "chain" and kind(f.chain.filters[0]) == "family_name_regex_filter" and f.chain.filters[0] == ONE_FAMILY


ONE_FAMILY = RowFilter(family_name_regex_filter="h")
ROW_LIMITS = {"cells_per_row_offset_filter", "cells_per_row_limit_filter"}
LIMITS = ROW_LIMITS | {"cells_per_column_limit_filter"}

TRAPS = {
    "sink: the emulator lets cells pass": lambda f: "sink" in kinds(f),
    "sample: rows are chosen at random": lambda f: "row_sample_filter" in kinds(f),
    "labels with strip: the emulator loses labels of cells that it strips":
        lambda f: {"apply_label_transformer", "strip_value_transformer"} <= kinds(f),
    "limits of rows with several families: the emulator takes these in a random order":
        lambda f: bool(ROW_LIMITS & kinds(f)) and not is_of_one_family(f),
    "limits after interleave: the order of equal cells is not specified":
        lambda f: has_duplicates(f) and bool(LIMITS & kinds(f)),
}


ALL = RowFilter(pass_all_filter=True)
REFUSED = [
    {"filter": RowFilter(row_key_regex_filter=b"")},
    {"filter": RowFilter(value_regex_filter=b"(")},
    {"filter": RowFilter(cells_per_row_limit_filter=0)},
    {"filter": RowFilter(cells_per_column_limit_filter=0)},
    {"filter": RowFilter(chain=RowFilter.Chain(filters=[ALL]))},
    {"filter": RowFilter(interleave=RowFilter.Interleave(filters=[ALL]))},
    {"filter": RowFilter(pass_all_filter=False)},
    {"filter": RowFilter(block_all_filter=False)},
    {"filter": RowFilter(apply_label_transformer="")},
    {"filter": RowFilter(row_sample_filter=1.0)},
    {"rows": RowSet(row_ranges=[RowRange(start_key_closed=b"c", end_key_open=b"a")])},
]


def merged(responses):
    """Rows as keys with sorted cells, and whether cells came in order."""
    rows, key, family, qualifier, cell = [], None, None, None, None
    for response in responses:
        for chunk in response.chunks:
            if chunk.row_key and key is None:
                key = chunk.row_key
                rows.append((key, []))
            if "family_name" in chunk:
                family = chunk.family_name
            if "qualifier" in chunk:
                qualifier = chunk.qualifier
            if cell is None:
                cell = [family, qualifier, chunk.timestamp_micros, b"", tuple(chunk.labels)]
            cell[3] += chunk.value
            if chunk.value_size == 0:
                rows[-1][1].append(tuple(cell))
                cell = None
            if chunk.commit_row:
                key = None
    return rows


class Made:
    """Random filters over what the table holds."""

    def __init__(self, rng, rows):
        self.rng = rng
        self.keys = [key for key, _ in rows]
        cells = [c for _, found in rows for c in found]
        self.qualifiers = sorted({c[1] for c in cells})
        self.times = sorted({c[2] for c in cells})
        self.values = sorted({c[3] for c in cells})

    def regex(self, texts):
        one = self.rng.choice(texts)
        plain = b"".join(bytes([b]) if chr(b).isalnum() else b"\\x%02x" % b for b in one)
        return self.rng.choice([plain, plain[:1] + b".*", b".*" + plain[-1:], b"\\C*", b"[a-m0-5].*", b"(o|l).*",
                                plain + b"|" + plain, b".", b"[^a]+", b"a.?#.*", b"(?i)OK", b"", b"\\d+(\\.\\d)?"])

    def bounds(self, texts, make, closed, opened):
        out = {}
        for side in ("start", "end"):
            choice = self.rng.randrange(3)
            if choice:
                out[f"{side}_{make}_{closed if choice == 1 else opened}"] = self.rng.choice(texts)
        return out

    def leaf(self, label=True):
        rng = self.rng
        options = [
            lambda: RowFilter(pass_all_filter=True),
            lambda: RowFilter(block_all_filter=True),
            lambda: RowFilter(row_key_regex_filter=self.regex(self.keys) or b"c.*"),
            lambda: RowFilter(family_name_regex_filter=rng.choice(["a", "h|m", ".*", "[am]", "x", ""])),
            lambda: RowFilter(column_qualifier_regex_filter=self.regex(self.qualifiers)),
            lambda: RowFilter(column_range_filter=ColumnRange(
                family_name=rng.choice("ahm"), **self.bounds(self.qualifiers, "qualifier", "closed", "open"))),
            lambda: RowFilter(timestamp_range_filter=TimestampRange(
                start_timestamp_micros=rng.choice([0] + self.times), end_timestamp_micros=rng.choice([0] + self.times))),
            lambda: RowFilter(value_regex_filter=self.regex(self.values)),
            lambda: RowFilter(value_range_filter=ValueRange(**self.bounds(self.values, "value", "closed", "open"))),
            lambda: RowFilter(cells_per_row_offset_filter=rng.randrange(1, 20)),
            lambda: RowFilter(cells_per_row_limit_filter=rng.randrange(1, 20)),
            lambda: RowFilter(cells_per_column_limit_filter=rng.randrange(1, 4)),
            lambda: RowFilter(strip_value_transformer=True),
            lambda: RowFilter(row_sample_filter=0.5),
            lambda: RowFilter(sink=True),
        ]
        if label:
            options.append(lambda: RowFilter(apply_label_transformer=rng.choice(["one", "two-2"])))
        weights = [1] * (len(options) - (3 if label else 2)) + [0.1, 0.1] + ([1] if label else [])
        return rng.choices(options, weights)[0]()

    def tree(self, depth, label=True):
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            return self.leaf(label)
        pick = rng.randrange(3)
        if pick == 0:
            labelled = rng.randrange(3)
            filters = [self.tree(depth - 1, label and at == labelled) for at in range(rng.randrange(2, 4))]
            return RowFilter(chain=RowFilter.Chain(filters=filters))
        if pick == 1:
            filters = [self.tree(depth - 1, label) for _ in range(rng.randrange(2, 4))]
            return RowFilter(interleave=RowFilter.Interleave(filters=filters))
        parts = {"predicate_filter": self.tree(depth - 1, False)}
        for part in ("true_filter", "false_filter"):
            if rng.random() < 0.8:
                parts[part] = self.tree(depth - 1, label)
        return RowFilter(condition=RowFilter.Condition(**parts))

    def rows(self):
        rng = self.rng
        if rng.random() < 0.4:
            return RowSet()
        keys = [rng.choice(self.keys + [b"zz"]) for _ in range(rng.randrange(3))]
        ranges = []
        for _ in range(rng.randrange(3)):
            one, other = sorted(rng.choice(self.keys) + rng.choice([b"", b"\x00"]) for _ in range(2))
            sides = {}
            if rng.random() < 0.8:
                sides["start_key_" + rng.choice(["closed", "open"])] = one
            if rng.random() < 0.8:
                sides["end_key_" + rng.choice(["closed", "open"])] = other
            ranges.append(RowRange(**sides))
        return RowSet(row_keys=keys, row_ranges=ranges)


def answer(client, request):
    try:
        return merged(client.read_rows(request, timeout=20, retry=None))
    except exceptions.GoogleAPICallError as error:
        return type(error).__name__


def comparable(found):
    return found if isinstance(found, str) else [(key, sorted(cells)) for key, cells in found]


def is_ordered(found):
    order = lambda c: (c[0], c[1], -c[2])
    return isinstance(found, str) or all(cells == sorted(cells, key=order) for _, cells in found)


def main():
    address, emulator, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([emulator, "-host", "127.0.0.1", "-port", str(port)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return compare(address, f"127.0.0.1:{port}", count)
    finally:
        process.kill()
        process.wait()


def connected(address):
    channel = grpc.insecure_channel(address, options=OPTIONS)
    grpc.channel_ready_future(channel).result(timeout=30)
    return channel, BigtableClient(transport=BigtableGrpcTransport(channel=channel))


def compare(address, emulator, count):
    _, ours = connected(address)
    channel, theirs = connected(emulator)
    rows = merged(ours.read_rows(ReadRowsRequest(table_name=TABLE)))
    admin = BaseBigtableTableAdminClient(transport=BigtableTableAdminGrpcTransport(channel=channel))
    families = {name: ColumnFamily() for name in ("a", "h", "m")}
    admin.create_table(CreateTableRequest(parent=INSTANCE, table_id="T", table=Table(column_families=families)))
    entries = [MutateRowsRequest.Entry(row_key=key, mutations=[
        Mutation(set_cell=Mutation.SetCell(family_name=f, column_qualifier=q, timestamp_micros=t, value=v))
        for f, q, t, v, _ in cells]) for key, cells in rows]
    for response in theirs.mutate_rows(MutateRowsRequest(table_name=TABLE, entries=entries)):
        assert all(entry.status.code == 0 for entry in response.entries), response
    everything = ReadRowsRequest(table_name=TABLE)
    assert comparable(answer(theirs, everything)) == comparable(rows), "the emulator does not hold the same cells"

    for request in REFUSED:
        found = [answer(client, ReadRowsRequest(table_name=TABLE, **request)) for client in (ours, theirs)]
        assert found == ["InvalidArgument"] * 2, (request, found)

    rng = random.Random(int(os.environ.get("FILTERS_SEED", SEED)))
    made = Made(rng, rows)
    met, compared, empty, failed = collections.Counter(), 0, 0, 0
    while compared < count:
        f = made.tree(rng.randrange(4))
        if rng.random() < 0.4:
            f = RowFilter(chain=RowFilter.Chain(filters=[ONE_FAMILY, f]))
        request = ReadRowsRequest(table_name=TABLE, rows=made.rows(), filter=f, rows_limit=rng.choice([0, 0, 3]))
        found = answer(ours, request)
        assert is_ordered(found), (request, found)
        trap = next((name for name, holds in TRAPS.items() if holds(f)), None)
        if trap:
            met[trap] += 1
            continue
        wanted = answer(theirs, request)
        assert comparable(found) == comparable(wanted), f"{request}\nserve: {found}\nemulator: {wanted}"
        compared += 1
        empty += found == []
        failed += isinstance(found, str)
    print(f"{compared} answers are equal, {empty} of them empty, {failed} of them errors; not compared: {dict(met)}")


if __name__ == "__main__":
    main()
