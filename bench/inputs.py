"""Inputs: generated once from a seed, as CSV and, by DuckDB, as Parquet, with their row counts and sums."""

import json
import shutil
import subprocess

import shapes
from measure import Failed, size, warm


class Input:
    """`entities` meters or hosts; `steps` days of `per_day` readings, or instants.

    Random ids in random order within an instant, some rows late, twice or missing; `ordered`: none of it.
    """

    def __init__(self, shape, entities, steps, form="csv", *, per_day=96, seed=1, ordered=False):
        self.shape, self.entities, self.steps, self.form = shape, max(1, round(entities)), steps, form
        self.per_day, self.seed, self.ordered = per_day, seed, ordered

    @property
    def name(self):
        """The name of the directory of the input: everything that its content depends on."""
        steps = self.steps if self.per_day == 96 else f"{self.steps}x{self.per_day}"
        arrival = "ordered" if self.ordered else "irregular"
        return f"{self.shape.name}-{self.entities}x{steps}-{arrival}-{self.seed}"

    def prepare(self, tools):
        """Generates the input if it is missing, atomically; sets `folder`, and the truth about its rows."""
        home = tools.work / "inputs" / self.name
        self.folder = home / self.form
        if not (home / "csv").is_dir():
            self.generate(tools, home)
        # Of `rows`, all rows, and `records`, the different ones: their number and the sums of the columns.
        self.truth = json.loads((home / "truth.json").read_text())
        self.rows = self.truth["rows"]["rows"]
        if not self.folder.is_dir():
            self.convert(tools, home)
        self.items, self.bytes = self.shape.items(self.rows), size(self.folder)

    def generate(self, tools, home):
        making = home.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        generator = tools.generators / ("readings" if self.shape is shapes.METER else "metrics")
        command = [generator, making / "csv", str(self.entities), str(self.steps), "--seed", str(self.seed)]
        command += ["--per-day", str(self.per_day)] if self.shape is shapes.METER else []
        command += ["--ordered"] if self.ordered else []
        report = [line.split() for line in subprocess.check_output(command, text=True).splitlines()]
        counts = {line[0]: int(line[1]) for line in report if line[0] != "sum"}
        sums = [line[1:] for line in report if line[0] == "sum"]
        truth = {
            what: {"rows": counts[what], "sums": {line[0]: float(line[at]) for line in sums}}
            for at, what in enumerate(("rows", "records"), 1)
        }
        (making / "truth.json").write_text(json.dumps(truth))
        shutil.rmtree(home, ignore_errors=True)
        making.rename(home)

    def convert(self, tools, home):
        if "duckdb" not in tools.versions:
            raise Failed("Parquet inputs are made by DuckDB, which is missing")
        making = home / "parquet.making"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        names = {"shape": self.shape.name, "source": str(home / "csv"), "out": str(making)}
        tools.peer("duckdb", {"do": "convert", **names})
        making.rename(self.folder)

    def warm(self):
        return warm(self.folder)

    def discard(self):
        shutil.rmtree(self.folder.parent, ignore_errors=True)

    def check(self, answer, duplicates):
        """Raises unless `answer` has all rows, with or without `duplicates`, and the sums up to rounding of floats."""
        truth = self.truth["rows" if duplicates else "records"]
        if answer["rows"] != truth["rows"]:
            raise Failed(f"wrong answer: {answer['rows']} rows of {truth['rows']}")
        for name, expected in truth["sums"].items():
            found = answer["sums"][name]
            if abs(found - expected) > abs(expected) * 1e-9:
                raise Failed(f"wrong answer: sum({name}) = {found}, not {expected}")
