#!/usr/bin/env python3
"""Shrinks a file that differs to the fewest lines that still differ, so that a person can read it.

    shrink.py TIDETABLE FOLDER --seed 3 --files 500 --file 219

The seed and number of files are those of the batch; the file is the folder that compare.py names.
"""

import argparse
import collections
import contextlib
import dataclasses
import pathlib
import random

import compare
import generate


class One(compare.Batch):
    """A batch of one file."""

    def __init__(self, command, folder, file):
        self.sources, self.files = [file.source], [file]
        self.project = compare.Project(command, folder, self.sources)
        self.loaded, self.rejects, self.differences = {}, collections.defaultdict(dict), []


def differs(command, folder, file):
    """What differs of a file in a project of its own; nothing if it cannot be run."""
    with contextlib.suppress(SystemExit):
        return One(command, folder, file).run()
    return []


def pieces(file):
    """The lines of a file as (state in which they were added, bytes)."""
    found, before = [], b""
    for step, (_name, content) in enumerate(file.states):
        found += [(step, line) for line in content[len(before) :].splitlines(keepends=True)]
        before = content
    return found


def rebuilt(file, lines):
    names = [name for name, _content in file.states]
    return dataclasses.replace(file, states=[(name, b"".join(line for at, line in lines if at <= step)) for step, name in enumerate(names)])


def shrunk(command, folder, file):
    """The file with as few lines as still differ; the first, its header, stays."""
    lines, size = pieces(file), max(1, len(pieces(file)) // 2)
    while size:
        start = 1
        while start < len(lines):
            fewer = lines[:start] + lines[start + size :]
            if differs(command, folder, rebuilt(file, fewer)):
                lines = fewer
            else:
                start += size
        size //= 2
    return rebuilt(file, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidetable", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--files", type=int, required=True)
    parser.add_argument("--file", type=int, required=True)
    given = parser.parse_args()

    command, folder = given.tidetable.absolute(), given.folder / "shrunk"
    _sources, files = generate.Generator(random.Random(given.seed)).batch(given.files)
    found = shrunk(command, folder, files[given.file])
    batch = One(command, folder, found)
    for difference in batch.run():
        compare.show(batch, *difference)


if __name__ == "__main__":
    main()
