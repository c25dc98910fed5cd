"""Asks tidetable and DuckDB the same questions in turn, in processes that stay warm."""

import math
import statistics
import time

from answers import same

HEAD = "| data | query | tidetable | DuckDB, own table | ratio |\n|---|---|---|---|---|"
# Queries for which both take less do not count among those that are far behind.
SHORT = 5e-3


def text(seconds):
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


class Comparison:
    """Prints a line of a Markdown table for each query, and collects the ratios."""

    def __init__(self, runs, only=None):
        self.runs, self.only, self.ratios, self.right = runs, only, [], True
        print(HEAD)

    def ask(self, data, name, ours, theirs, session, db, path, tolerance=1e-9):
        """`session` of tidetable, `db` of DuckDB; `path` for an answer."""
        if self.only and not any(part in name for part in self.only):
            return
        equal = same(session.rows(ours, path), db.execute(theirs).fetchall(), tolerance)
        seconds_of(db, theirs)
        pairs = [(session.seconds(ours)[0], seconds_of(db, theirs)) for _ in range(self.runs)]
        own, peer = (statistics.median(of) for of in zip(*pairs))
        self.ratios.append((own / peer, own, peer))
        verdict = f"{own / peer:.2f} x" if equal else "wrong answer"
        print(f"| {data} | {name} | {text(own)} | {text(peer)} | {verdict} |", flush=True)
        self.right &= equal

    def finish(self, far):
        """Prints the geometric mean, and how many are above `far`. Returns the exit code."""
        if self.ratios:
            mean = math.exp(statistics.mean(math.log(ratio) for ratio, _, _ in self.ratios))
            above = sum(ratio > far and (own > SHORT or peer > SHORT) for ratio, own, peer in self.ratios)
            summary = f"Geometric mean of {len(self.ratios)} ratios: {mean:.2f} x"
            print(f"\n{summary}; {above} above {far:g} x where one takes more than 5 ms.")
        return 0 if self.right else 1


def seconds_of(db, sql):
    start = time.perf_counter()
    db.sql(sql).to_arrow_table()
    return time.perf_counter() - start
