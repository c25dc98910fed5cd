"""Google's client for Python, connected to a server on this machine."""

import os

from google.auth.credentials import AnonymousCredentials

TABLE = "projects/p/instances/i/tables/T"


def table(address, name="T"):
    """The table and its client."""
    os.environ["BIGTABLE_EMULATOR_HOST"] = address
    from google.cloud.bigtable.data import BigtableDataClient

    client = BigtableDataClient(project="p", credentials=AnonymousCredentials())
    return client, client.get_table("i", name)


def cells(row):
    """The cells of a row as tuples."""
    return [(c.family, c.qualifier, c.timestamp_micros, c.value, tuple(c.labels or ())) for c in row]
