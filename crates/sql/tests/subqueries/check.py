"""Compares answers with those of DuckDB. Standard input has a JSON object a line: a query and its rows, each a list of texts,
sorted. A line may instead have statements that set up tables."""

import json
import sys

import duckdb


def text(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


connection = duckdb.connect()
connection.execute("ATTACH ':memory:' AS subqueries")
same, refused, wrong = 0, [], []
for line in sys.stdin:
    told = json.loads(line)
    if "setup" in told:
        for statement in told["setup"]:
            connection.execute(statement)
        continue
    try:
        found = sorted(" | ".join(text(value) for value in row) for row in connection.execute(told["query"]).fetchall())
    except duckdb.Error as error:
        refused.append((told["query"], str(error)))
        continue
    if found == told["rows"]:
        same += 1
    else:
        wrong.append((told["query"], told["rows"], found))
print(f"{same} alike, {len(refused)} that DuckDB refuses, {len(wrong)} unlike")
for query, ours, theirs in wrong[:5]:
    print(f"{query}\n  ours    {ours}\n  DuckDB  {theirs}")
for query, error in refused[:3]:
    print(f"{query}\n  DuckDB: {error}")
sys.exit(1 if wrong or same == 0 else 0)
