"""Scans of many rows, and of rows larger than a response, by Google's clients for Python.

Usage: python3 scan_check.py ADDRESS ROWS CELLS
"""

import sys

from clients import table
from google.auth.credentials import AnonymousCredentials
from google.cloud.bigtable import Client
from google.cloud.bigtable.data import ReadRowsQuery


def main():
    address, rows, cells = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    client, scanned = table(address)
    read = scanned.read_rows(ReadRowsQuery())
    assert [row.row_key for row in read] == sorted(row.row_key for row in read)
    assert (len(read), sum(len(row.cells) for row in read)) == (rows, cells), len(read)
    client.close()

    before = Client(project="p", credentials=AnonymousCredentials()).instance("i").table("T")
    counted = {row.row_key: sum(len(of) for family in row.cells.values() for of in family.values()) for row in before.read_rows()}
    assert (len(counted), sum(counted.values())) == (rows, cells), len(counted)


if __name__ == "__main__":
    main()
