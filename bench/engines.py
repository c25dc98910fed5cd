"""The engines: each loads an input in a directory of its own, and reports its content and bytes."""

import json
import os
import pathlib
import shutil
import subprocess

from measure import THREADS, Failed, measured, size


# Stages of a load, as in its run record.
STEPS = ("read", "parse", "sort", "encode", "write")


class Tools:
    """Paths of programs and data, and the installed peers."""

    def __init__(self, tidetable, generators, python, work):
        self.tidetable, self.generators, self.python, self.work = tidetable, generators, python, work
        self.versions = {name: version for name in ("duckdb", "polars", "chdb") if (version := self.version(name))}
        self.compacts = self.knows("compact")
        self.full = ["--full"] if "--full" in self.help("compact") else []

    def version(self, peer):
        """The version of a peer; None if it is not installed."""
        code = f"import importlib.metadata as m; import {peer}; print(m.version('{peer}'))"
        found = subprocess.run([self.python, "-c", code], capture_output=True, text=True)
        return found.stdout.strip() if found.returncode == 0 else None

    def knows(self, command):
        return bool(self.help(command))

    def help(self, command):
        """The help of a subcommand; empty if it does not exist."""
        found = subprocess.run([self.tidetable, command, "--help"], capture_output=True, text=True)
        return found.stdout if found.returncode == 0 else ""

    def peer(self, name, order):
        """Runs an order in a peer; returns its answer and the peak memory of its process."""
        script = pathlib.Path(__file__).with_name(f"peer_{name}.py")
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        _, peak, text = measured([self.python, script, json.dumps(order)], self.work, env)
        return json.loads(text.strip().splitlines()[-1]), peak


class Tidetable:
    """The command, with `options` of `run`."""

    ours = True
    # Whether equal rows are kept: here, they are the same cells.
    duplicates = False

    def __init__(self, tools, name="tidetable", options=()):
        self.tools, self.name, self.options = tools, name, options
        self.home = tools.work / "tidetable"
        self.env = dict(os.environ, RAYON_NUM_THREADS=str(THREADS), TOKIO_WORKER_THREADS=str(THREADS))
        self.env.pop("TIDETABLE_ROOT", None)
        self.missing = None
        # Stages of the last load, from its run record.
        self.stages = {}

    def load(self, given):
        self.clean()
        self.home.mkdir(parents=True)
        folder = self.home / "jobs" / given.shape.name
        folder.mkdir(parents=True)
        (folder / "job.toml").write_text(given.shape.job_file(f"{given.folder}/*.{given.form}"))
        (self.home / "tidetable.toml").write_text('root = "data"\n')
        seconds, peak, text = self.command("run", given.shape.name, *self.options, "--output", "json")
        record = json.loads(text.strip().splitlines()[-1])
        taken = lambda step: sum(load.get(f"{step}_seconds", 0.0) for load in record["loads"])
        self.stages = record["seconds"] | {step: taken(step) for step in STEPS}
        return seconds, peak

    def command(self, *words):
        return measured([self.tools.tidetable, *words], self.home, self.env)

    def answer(self, given):
        sums = ", ".join(f'sum("{name}") AS "{name}"' for name, _ in given.shape.columns)
        query = f'SELECT count(*) AS "rows", {sums} FROM "{given.shape.table}"'
        answer = json.loads(self.command("sql", "--output", "json", "-c", query)[2])
        return {"rows": answer.pop("rows"), "sums": {name: float(value) for name, value in answer.items()}}

    def bytes(self, given, _):
        """Bytes of the newest version: its SSTs and its manifest."""
        version = json.loads(self.command("describe", given.shape.table, "--output", "json")[2])
        ssts = sum(sst["bytes"] for window in version["windows"] for sst in window["ssts"])
        manifests = (self.home / "data/tables" / given.shape.table / "manifest").glob("*.json")
        return ssts + size(max(manifests))

    def compact(self, given):
        """Seconds and bytes of a compaction; None if the command has none."""
        if not self.tools.compacts:
            return None
        seconds, _, _ = self.command("compact", given.shape.table, *self.tools.full)
        given.check(self.answer(given), self.duplicates)
        return seconds, self.bytes(given, None)

    def clean(self):
        shutil.rmtree(self.home, ignore_errors=True)


class Peer:
    """Another engine, in a Python process of its own."""

    ours = False
    duplicates = True

    def __init__(self, tools, peer, name, options=None):
        self.tools, self.peer, self.options = tools, peer, options or {}
        version = tools.versions.get(peer)
        self.name = name.format(version=version) if version else name.replace(" {version}", "")
        self.missing = None if version else f"{peer} is not installed"
        self.home = tools.work / f"peer-{peer}"
        self.out = self.home / "out"

    def order(self, do, given):
        names = {"shape": given.shape.name, "source": str(given.folder), "form": given.form}
        places = {"out": str(self.out), "temporary": str(self.home / "temporary")}
        return {"do": do, **names, **places, **self.options}

    def load(self, given):
        """The peer's own seconds: from after its import to its last sync."""
        self.clean()
        self.home.mkdir(parents=True)
        answer, peak = self.tools.peer(self.peer, self.order("load", given))
        return answer["seconds"], peak

    def answer(self, given):
        return self.tools.peer(self.peer, self.order("answer", given))[0]

    def bytes(self, _, answer):
        return answer.get("bytes") or size(self.out)

    def compact(self, _):
        return None

    def clean(self):
        shutil.rmtree(self.home, ignore_errors=True)


def peers(tools, text_key):
    """All peers; with `text_key`, DuckDB again with the row key as text."""
    found = [Peer(tools, "duckdb", "DuckDB {version}, Parquet zstd", {"key": "columns"})]
    if text_key:
        found.append(Peer(tools, "duckdb", "DuckDB {version}, Parquet zstd, key as text", {"key": "text"}))
    found.append(Peer(tools, "polars", "Polars {version}, Parquet zstd"))
    found.append(Peer(tools, "chdb", "chdb {version}, MergeTree"))
    return found


__all__ = ["Failed", "Peer", "Tidetable", "Tools", "peers"]
