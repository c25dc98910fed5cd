"""The official vectors of ReadRows: vectors_check.py VECTORS.

Google's merger must merge the chunks of each vector as that says: then it can be trusted to merge those of a server.
"""

import base64
import json
import sys
from unittest import mock

from google.cloud.bigtable.data._cross_sync import CrossSync
from google.cloud.bigtable.data._metrics import ActiveOperationMetric
from google.cloud.bigtable.data.exceptions import InvalidChunk
from google.cloud.bigtable_v2 import ReadRowsResponse


def merged(chunks):
    operation = CrossSync._Sync_Impl._ReadRowsOperation(
        mock.Mock(), mock.Mock(), 5, 5, ActiveOperationMetric("READ_ROWS"))
    operation._remaining_count = None
    stream = (ReadRowsResponse(chunks=[chunk]) for chunk in chunks)
    found = []
    try:
        for row in operation.merge_rows(operation.chunk_stream(stream)):
            for c in row:
                found.append((c.row_key, c.family, c.qualifier, c.timestamp_micros, c.value, (c.labels or [""])[0]))
    except InvalidChunk:
        found.append("error")
    return found


def chunk(sent):
    def bytes_of(name):
        return base64.b64decode(sent.get(name, ""))

    out = {"row_key": bytes_of("rowKey"), "value": bytes_of("value"), "labels": sent.get("labels", []),
           "timestamp_micros": int(sent.get("timestampMicros", 0)), "value_size": int(sent.get("valueSize", 0))}
    if "familyName" in sent:
        out["family_name"] = sent["familyName"]
    if "qualifier" in sent:
        out["qualifier"] = bytes_of("qualifier")
    for ours, theirs in (("commit_row", "commitRow"), ("reset_row", "resetRow")):
        if sent.get(theirs):
            out[ours] = True
    return ReadRowsResponse.CellChunk(out)


def expected(result):
    if result.get("error"):
        return "error"
    text = lambda name: result.get(name, "").encode()
    return (text("rowKey"), result.get("familyName", ""), text("qualifier"), int(result.get("timestampMicros", 0)),
            text("value"), result.get("label", ""))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        vectors = json.load(file)["readRowsTests"]
    for vector in vectors:
        found = merged([chunk(c) for c in vector.get("chunks", [])])
        wanted = [expected(r) for r in vector.get("results", [])]
        assert found == wanted, f"{vector['description']}: {found} instead of {wanted}"
    print(len(vectors))


if __name__ == "__main__":
    main()
