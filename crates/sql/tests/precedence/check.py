"""Evaluates expressions with DuckDB and compares them with the answers on standard input, a JSON object a line.

An expression that either engine refuses is counted; one that both take must give the same rows."""

import json
import sys

import duckdb

rows = sys.argv[1]
connection = duckdb.connect()
connection.execute("SET timezone = 'UTC'")
same, refused, wrong = 0, [], []
for line in sys.stdin:
    told = json.loads(line)
    query = f"SELECT CAST(({told['expr']}) AS VARCHAR) FROM {rows} ORDER BY n"
    try:
        found = ["NULL" if row[0] is None else row[0] for row in connection.execute(query).fetchall()]
    except duckdb.Error as error:
        continue
    if "error" in told:
        refused.append((told["expr"], told["error"]))
    elif found == told["rows"]:
        same += 1
    else:
        wrong.append((told["expr"], told["rows"], found))
print(f"{same} alike, {len(refused)} that only DuckDB takes, {len(wrong)} unlike")
for expr, ours, theirs in wrong[:20]:
    print(f"{expr}\n  ours    {ours}\n  DuckDB  {theirs}")
# What binds otherwise shows as a refusal, too, where types no longer fit.
if len(refused) > same / 3:
    for expr, error in refused[:40]:
        print(f"{expr}\n  {error}")
    sys.exit("too many are refused")
sys.exit(1 if wrong or same < 200 else 0)
