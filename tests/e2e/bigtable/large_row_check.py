"""Reads a table with a row of 70,000 cells and one of a cell: large_row_check.py ADDRESS whole|refused.

The large row is answered, or refused with RESOURCE_EXHAUSTED and the option that allows it; the small one is answered in both cases.
"""

import sys

import grpc
from google.api_core import exceptions
from google.cloud.bigtable_v2 import BigtableClient, ReadRowsRequest, RowSet
from google.cloud.bigtable_v2.services.bigtable.transports import BigtableGrpcTransport

from clients import TABLE


def main():
    address, wanted = sys.argv[1:]
    client = BigtableClient(transport=BigtableGrpcTransport(channel=grpc.insecure_channel(address)))
    read = lambda *keys: sum(
        len(response.chunks)
        for response in client.read_rows(ReadRowsRequest(table_name=TABLE, rows=RowSet(row_keys=keys)))
    )
    large, small = b"001#20240101", b"002#20240101"
    try:
        found = read(large)
        assert (wanted, found) == ("whole", 70_000), found
    except exceptions.ResourceExhausted as error:
        assert wanted == "refused" and "--request-memory" in str(error), error
    assert read(small) == 1


main()
