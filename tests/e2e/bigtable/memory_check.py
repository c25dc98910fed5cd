"""Asks a server for far more cells than it may hold: memory_check.py ADDRESS PID CELLS.

CELLS is the number of cells of table T. Prints the most resident memory of the server before and after, in KiB.
"""

import sys

import grpc
from google.api_core import exceptions
from google.cloud.bigtable_v2 import BigtableClient, ReadRowsRequest, RowFilter, RowSet
from google.cloud.bigtable_v2.services.bigtable.transports import BigtableGrpcTransport

from clients import TABLE

ALL = RowFilter(pass_all_filter=True)
EIGHT = RowFilter(interleave=RowFilter.Interleave(filters=[ALL] * 8))


def chain(count):
    return RowFilter(chain=RowFilter.Chain(filters=[EIGHT] * count))


def resident(pid):
    """The most that was resident."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def main():
    address, pid, cells = sys.argv[1], sys.argv[2], int(sys.argv[3])
    channel = grpc.insecure_channel(address)
    client = BigtableClient(transport=BigtableGrpcTransport(channel=channel))
    read = lambda **request: client.read_rows(ReadRowsRequest(table_name=TABLE, **request))
    count = lambda **request: sum(len(response.chunks) for response in read(**request))
    assert count() == cells
    before = resident(pid)

    # All copies come where they can be waited for.
    assert count(filter=chain(3)) == 512 * cells
    assert count(filter=chain(2), reversed=True) == 64 * cells
    # 262,144 copies of each cell, and more than anyone can count.
    for filters in (6, 400):
        stream = read(filter=chain(filters))
        for _ in range(60):
            assert next(stream).chunks
        stream.cancel()

    for request, said in [
        ({"filter": RowFilter(value_regex_filter=b"a" * 20_480)}, "20480"),
        ({"rows": RowSet(row_keys=[b"%030d" % at for at in range(40_000)])}, "several requests"),
    ]:
        try:
            count(**request)
            raise AssertionError("it was answered")
        except exceptions.InvalidArgument as error:
            assert said in str(error), error
    print(before, resident(pid))


main()
