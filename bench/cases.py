"""Benchmark cases: for each, the engines, their inputs, and the baseline of their times."""

import functools

from engines import Tidetable, peers
from inputs import Input
from shapes import METER, METRIC

METERS, DAYS = 20_000, 10
HOSTS, INSTANTS = 1_000, 200
# Many entities, of few readings each.
ENTITIES, ENTITY_DAYS, ENTITY_PER_DAY = 3_000_000, 2, 12
# A day of the meters that Google's schema guides count.
DAY_METERS = 10_000_000


class Case:
    """`entries` are pairs of engine and input. Times are relative to tidetable's (`among`: "engines"), or per item to the
    first entry's ("sizes"). An `optional` case runs only if it is named."""

    def __init__(self, name, title, entries, among="engines", optional=False):
        self.name, self.title, self.entries, self.among, self.optional = name, title, entries, among, optional


def against_peers(name, title, tools, given, text_key=False, optional=False):
    return Case(name, title, [(engine, given) for engine in [Tidetable(tools), *peers(tools, text_key)]], optional=optional)


def all_cases(tools, args):
    """All cases; `args.scale` multiplies the number of meters or hosts."""
    scale = args.scale
    given = functools.partial(Input, seed=args.seed, ordered=args.ordered)
    meters = METERS * scale
    reference = given(METER, meters, DAYS)
    many = given(METER, ENTITIES * scale, ENTITY_DAYS, per_day=ENTITY_PER_DAY)
    growth = [("a tenth", 0.1), ("once", 1), ("five times", 5)]
    return [
        against_peers("csv", "reference, CSV", tools, reference, text_key=True),
        against_peers("parquet", "reference, Parquet", tools, given(METER, meters, DAYS, "parquet"), text_key=True),
        against_peers("metric", "METRIC, CSV", tools, given(METRIC, HOSTS * scale, INSTANTS)),
        against_peers("metric-parquet", "METRIC, Parquet", tools, given(METRIC, HOSTS * scale, INSTANTS, "parquet")),
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
            [(Tidetable(tools, f"tidetable, {name}"), given(METER, meters * times, DAYS)) for name, times in growth],
            "sizes",
        ),
        Case("year", "a year, CSV", [(Tidetable(tools, "tidetable"), given(METER, 2_000 * scale, 365))], "sizes"),
        against_peers("entities", "3,000,000 meters, CSV", tools, many, optional=True),
        *(
            Case(
                "day" if form == "csv" else "day-parquet",
                f"a day of 10,000,000 meters, {form}",
                [(Tidetable(tools, "tidetable, 1 GiB", ["--memory", "1GiB"]), given(METER, DAY_METERS * scale, 1, form))],
                optional=True,
            )
            for form in ("csv", "parquet")
        ),
    ]


NAMES = ["csv", "parquet", "metric", "metric-parquet", "memory", "growth", "year", "entities", "day", "day-parquet"]
