"""Benchmark cases: for each, the engines, their inputs, and the baseline of their times."""

from engines import Tidetable, peers
from inputs import Input
from shapes import METER, METRIC

METERS, DAYS = 20_000, 10
HOSTS, INSTANTS = 1_000, 200


class Case:
    """`entries` are pairs of engine and input. Times are relative to tidetable's (`among`: "engines"), or per item to the
    first entry's ("sizes")."""

    def __init__(self, name, title, entries, among="engines"):
        self.name, self.title, self.entries, self.among = name, title, entries, among


def against_peers(name, title, tools, given, text_key=False):
    return Case(name, title, [(engine, given) for engine in [Tidetable(tools), *peers(tools, text_key)]])


def all_cases(tools, scale):
    """All cases; `scale` multiplies the number of meters or hosts."""
    meters = METERS * scale
    reference = Input(METER, meters, DAYS)
    growth = [("a tenth", 0.1), ("once", 1), ("five times", 5)]
    return [
        against_peers("csv", "reference, CSV", tools, reference, text_key=True),
        against_peers("parquet", "reference, Parquet", tools, Input(METER, meters, DAYS, "parquet"), text_key=True),
        against_peers("metric", "METRIC, CSV", tools, Input(METRIC, HOSTS * scale, INSTANTS)),
        against_peers("metric-parquet", "METRIC, Parquet", tools, Input(METRIC, HOSTS * scale, INSTANTS, "parquet")),
        Case(
            "memory",
            "reference, CSV, memory",
            [
                (Tidetable(tools, "tidetable, 384 MiB, the default"), reference),
                (Tidetable(tools, "tidetable, 1 GiB", ["--memory", "1GiB"]), reference),
                (Tidetable(tools, "tidetable, 128 MiB", ["--memory", "128MiB"]), reference),
            ],
            "sizes",
        ),
        Case(
            "growth",
            "growth, CSV",
            [(Tidetable(tools, f"tidetable, {name}"), Input(METER, meters * times, DAYS)) for name, times in growth],
            "sizes",
        ),
        Case("year", "a year, CSV", [(Tidetable(tools, "tidetable"), Input(METER, 2_000 * scale, 365))], "sizes"),
    ]


NAMES = ["csv", "parquet", "metric", "metric-parquet", "memory", "growth", "year"]
