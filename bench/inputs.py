"""Inputs: generated once from a seed, as CSV and, by DuckDB, as Parquet, with their row count and sums."""

import json
import shutil
import subprocess

import shapes
from measure import Failed, size, warm


class Input:
    """`entities` meters or hosts; `steps` days of 96 readings, or instants."""

    def __init__(self, shape, entities, steps, form="csv"):
        self.shape, self.entities, self.steps, self.form = shape, max(1, round(entities)), steps, form

    def prepare(self, tools):
        """Generates the input if it is missing, atomically; sets `folder`, `rows` and `sums`."""
        home = tools.work / "inputs" / f"{self.shape.name}-{self.entities}x{self.steps}"
        self.folder = home / self.form
        if not (home / "csv").is_dir():
            self.generate(tools, home)
        truth = json.loads((home / "truth.json").read_text())
        self.rows, self.sums = truth["rows"], truth["sums"]
        if not self.folder.is_dir():
            self.convert(tools, home)
        self.items, self.bytes = self.shape.items(self.rows), size(self.folder)

    def generate(self, tools, home):
        making = home.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        generator = tools.generators / ("readings" if self.shape is shapes.METER else "metrics")
        command = [generator, making / "csv", str(self.entities), str(self.steps)]
        report = subprocess.check_output(command, text=True)
        lines = dict(line.split() for line in report.splitlines())
        truth = {"rows": int(lines.pop("rows")), "sums": {name: float(value) for name, value in lines.items()}}
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

    def check(self, answer):
        """Raises unless `answer` has all rows, and the sums up to rounding of floats."""
        if answer["rows"] != self.rows:
            raise Failed(f"wrong answer: {answer['rows']} rows of {self.rows}")
        for name, expected in self.sums.items():
            found = answer["sums"][name]
            if abs(found - expected) > abs(expected) * 1e-9:
                raise Failed(f"wrong answer: sum({name}) = {found}, not {expected}")
