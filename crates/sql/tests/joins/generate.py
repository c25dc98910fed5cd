"""Random joins over small tables with nulls, and what DuckDB answers: joins of every kind by equality and by
IS NOT DISTINCT FROM, over set operations, aggregates and joins, with subqueries and laterals that refer to outer tables.

    generate.py SEED QUERIES

Prints a JSON object: the rows of each table by name, and a list of queries with their rows as text.
"""

import json
import random
import sys

import duckdb

TABLES = {"t1": "kab", "t2": "kac", "t3": "abc", "t4": "kb", "t5": "ak"}
VALUES = [None, None, 0, 1, 2]
EQUALITIES = ["=", "=", "=", "IS NOT DISTINCT FROM", "IS NOT DISTINCT FROM"]
# Where the tables are, in both engines.
SCHEMA = "joins.small"
# A query with more rows tells no more.
MOST_ROWS = 3000


class Generator:
    """Queries over TABLES. A column is a pair of an alias and a name."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.aliases = 0

    def one(self, choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def alias(self):
        self.aliases += 1
        return f"x{self.aliases}"

    def rows(self, columns):
        """The rows of a table: few, so that many queries have some."""
        return [[self.one(VALUES) for _ in columns] for _ in range(self.one([4, 6, 8]))]

    def relation(self, depth):
        """A table or a derived table, and its columns."""
        alias, table, other = self.alias(), self.one(list(TABLES)), self.one(list(TABLES))
        kind = self.random.random()
        if depth == 0 or kind < 0.6:
            return f"{SCHEMA}.{table} AS {alias}", [(alias, name) for name in TABLES[table]]
        mine, its = self.random.sample(TABLES[table], 2), self.random.sample(TABLES[other], 2)
        columns = [(alias, name) for name in mine]
        if kind < 0.7:
            query = f"SELECT DISTINCT {', '.join(mine)} FROM {SCHEMA}.{table}"
        elif kind < 0.85:
            where = f" WHERE {mine[0]} >= 1" if self.chance(0.2) else ""
            both = self.one(["INTERSECT", "INTERSECT", "EXCEPT", "UNION", "UNION ALL"])
            query = f"SELECT {', '.join(mine)} FROM {SCHEMA}.{table}{where} {both} SELECT {', '.join(its)} FROM {SCHEMA}.{other}"
        elif kind < 0.92:
            total = self.one(["count(*)", f"max({mine[1]})", f"min({mine[1]})"])
            query = f"SELECT {mine[0]}, {total} AS {mine[1]} FROM {SCHEMA}.{table} GROUP BY {mine[0]}"
        else:
            joined, inner = self.joined(depth - 1, 2)
            names = self.random.sample("abck", 2)
            taken = self.random.sample(inner, 2)
            where = f" WHERE {self.condition(inner, 0)}" if self.chance(0.5) else ""
            listed = ", ".join(f"{text(column)} AS {name}" for column, name in zip(taken, names))
            query, columns = f"SELECT {listed} FROM {joined}{where}", [(alias, name) for name in names]
        return f"({query}) AS {alias}", columns

    def joined(self, depth, tables):
        """Joined relations, and their columns."""
        joined, columns = self.relation(depth)
        for _ in range(tables - 1):
            relation, added = self.relation(depth)
            kind = self.random.random()
            if kind < 0.5:
                joined += f" JOIN {relation} ON {self.keys(columns, added)}"
            elif kind < 0.66:
                side = self.one(["LEFT", "RIGHT", "FULL"])
                joined += f" {side} JOIN {relation} ON {self.keys(columns, added)}"
            elif kind < 0.74 and (shared := self.shared(columns, added)):
                joined += f" {self.one(['', 'LEFT '])}JOIN {relation} USING ({', '.join(shared)})"
            else:
                joined += f" CROSS JOIN {relation}"
            columns = columns + added
        return joined, columns

    def shared(self, columns, added):
        """Names that are one column on either side."""
        names = [name for _, name in columns]
        shared = [name for _, name in added if names.count(name) == 1]
        return self.random.sample(shared, self.one([1, len(shared)])) if shared else []

    def keys(self, columns, added):
        """The condition of a join."""
        terms = [self.comparison(columns, added) for _ in range(self.one([1, 1, 2, 2, 3]))]
        if len(terms) > 1 and self.chance(0.08):
            return f"({' OR '.join(terms)})"
        if self.chance(0.1):
            terms.append(f"{text(self.one(added))} {self.one(['> 0', 'IS NULL', 'IS NOT NULL'])}")
        return " AND ".join(terms)

    def comparison(self, columns, others):
        """A comparison of a column of each."""
        one, other = text(self.one(columns)), text(self.one(others))
        kind = self.random.random()
        if kind < 0.08:
            return f"{one} + 1 = {other}"
        if kind < 0.13:
            return f"{one} <= {other}"
        if kind < 0.18:
            return f"coalesce({one}, 0) {self.one(EQUALITIES)} coalesce({other}, 0)"
        if self.chance(0.5):
            one, other = other, one
        return f"{one} {self.one(EQUALITIES)} {other}"

    def subquery(self, outer, depth):
        """FROM and WHERE of a subquery below `outer`, and its columns."""
        joined, columns = self.joined(depth, self.one([1, 1, 2, 2, 3]))
        terms = [self.comparison(columns, outer) for _ in range(self.one([0, 1, 1, 2]))]
        if self.chance(0.5):
            terms.append(self.condition(columns, 0))
        return joined + (f" WHERE {' AND '.join(terms)}" if terms else ""), columns

    def condition(self, columns, depth):
        """A condition on `columns`, with subqueries as deep as `depth`."""
        kind, column, other = self.random.random(), text(self.one(columns)), text(self.one(columns))
        if depth > 0 and kind < 0.35:
            return self.condition_by_subquery(columns, depth)
        if kind < 0.75:
            alias = self.one(columns)[0]
            others = [pair for pair in columns if pair[0] != alias]
            if others:
                return self.comparison([pair for pair in columns if pair[0] == alias], others)
        if kind < 0.85:
            tests = ["IS NULL", "IS NOT NULL", "= 1", "> 0", "IS NOT DISTINCT FROM NULL", "IS DISTINCT FROM 1"]
            return f"{column} {self.one(tests)}"
        if kind < 0.93:
            return f"{column} {self.one(EQUALITIES)} {other}"
        return f"({column} {self.one(EQUALITIES)} {other} OR {other} {self.one(EQUALITIES)} {text(self.one(columns))})"

    def condition_by_subquery(self, columns, depth):
        inner, inner_columns = self.subquery(columns, depth - 1)
        column, value = text(self.one(columns)), text(self.one(inner_columns))
        kind = self.random.random()
        if kind < 0.4:
            return f"{self.one(['', 'NOT '])}EXISTS (SELECT {self.one(['1', value])} FROM {inner})"
        if kind < 0.7:
            return f"{column} {self.one(['', 'NOT '])}IN (SELECT {value} FROM {inner})"
        total, by = self.one(["count", "max", "min", "sum"]), self.one(EQUALITIES + ["<", ">"])
        return f"(SELECT {total}({value}) FROM {inner}) {by} {column}"

    def query(self):
        self.aliases = 0
        joined, columns = self.joined(1, self.one([2, 2, 3, 3, 4]))
        if self.chance(0.15):
            inner, inner_columns = self.subquery(columns, 1)
            value, alias = text(self.one(inner_columns)), self.alias()
            value = self.one([value, f"max({value})", f"count({value})"])
            join, on = self.one([("CROSS JOIN", ""), ("LEFT JOIN", " ON true")])
            joined += f" {join} LATERAL (SELECT {value} AS v FROM {inner}) AS {alias}{on}"
            columns = columns + [(alias, "v")]
        terms = [self.condition(columns, 2) for _ in range(self.one([0, 1, 1, 2, 3]))]
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        if self.chance(0.15):
            return f"SELECT {text(self.one(columns))} AS g, count(*) AS n FROM {joined}{where} GROUP BY 1"
        listed = [text(column) for column in self.random.sample(columns, self.one([1, 2, 3]))]
        if self.chance(0.15):
            inner, inner_columns = self.subquery(columns, 1)
            total = self.one(["count", "max", "min", "sum"])
            listed.append(f"(SELECT {total}({text(self.one(inner_columns))}) FROM {inner})")
        listed = ", ".join(f"{value} AS o{at}" for at, value in enumerate(listed))
        query = f"SELECT {self.one(['', '', 'DISTINCT '])}{listed} FROM {joined}{where}"
        if self.chance(0.1):
            equal = f"p.o0 {self.one(EQUALITIES)} q.o0"
            return f"WITH w AS ({query}) SELECT p.o0, q.o0 AS z FROM w AS p JOIN w AS q ON {equal}"
        return query


def text(column):
    return f"{column[0]}.{column[1]}"


def main():
    generator = Generator(int(sys.argv[1]))
    tables = {name: generator.rows(columns) for name, columns in TABLES.items()}
    connection = duckdb.connect()
    connection.execute("ATTACH ':memory:' AS joins")
    connection.execute(f"CREATE SCHEMA {SCHEMA}")
    for name, rows in tables.items():
        connection.execute(f"CREATE TABLE {SCHEMA}.{name} ({', '.join(f'{column} INT' for column in TABLES[name])})")
        connection.executemany(f"INSERT INTO {SCHEMA}.{name} VALUES ({', '.join('?' for _ in TABLES[name])})", rows)

    queries = []
    while len(queries) < int(sys.argv[2]):
        query = generator.query()
        try:
            rows = connection.execute(query).fetchmany(MOST_ROWS + 1)
        except duckdb.Error:
            # Columns that USING joins are ambiguous, and DuckDB has no FULL JOIN of some correlations.
            continue
        # Most wrong answers have rows, or lack them.
        if len(rows) <= MOST_ROWS and (rows or generator.chance(0.3)):
            queries.append({"sql": query, "rows": [[None if v is None else str(v) for v in row] for row in rows]})
    tables = {name: {"columns": list(TABLES[name]), "rows": rows} for name, rows in tables.items()}
    json.dump({"tables": tables, "queries": queries}, sys.stdout)


main()
