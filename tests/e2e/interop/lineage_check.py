#!/usr/bin/env python3
"""Reads events of a file with the classes of OpenLineage's Python client, emits them with it, and compares what it wrote.

    lineage_check.py EVENTS

Each line must be an event whose facets the client knows, with fields that it knows. Prints the number of events; exit code 1 if the
client writes an event otherwise.
"""

import importlib
import json
import os
import pkgutil
import sys
import tempfile

import attr
import openlineage.client.generated as generated
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.transport.file import FileConfig, FileTransport


def facets():
    """The classes of facets by the name at the end of their schema."""
    found = {}
    for module in pkgutil.iter_modules(generated.__path__):
        for kind in vars(importlib.import_module(f"{generated.__name__}.{module.name}")).values():
            if isinstance(kind, type) and hasattr(kind, "_get_schema"):
                found[kind._get_schema()] = kind
    return found


FACETS = facets()


def facet(fields):
    kind = FACETS[fields["_schemaURL"]]
    own = {key: value for key, value in fields.items() if not key.startswith("_")}
    if "assertions" in own:
        from openlineage.client.generated.data_quality_assertions_dataset import Assertion

        own["assertions"] = [Assertion(**one) for one in own["assertions"]]
    if "fields" in own:
        from openlineage.client.generated.schema_dataset import SchemaDatasetFacetFields

        own["fields"] = [SchemaDatasetFacetFields(**one) for one in own["fields"]]
    return kind(**own, producer=fields["_producer"])


def every(named):
    return {key: facet(fields) for key, fields in named.items()}


def event(line):
    return RunEvent(
        eventType=RunState(line["eventType"]),
        eventTime=line["eventTime"],
        run=Run(runId=line["run"]["runId"], facets=every(line["run"]["facets"])),
        job=Job(line["job"]["namespace"], line["job"]["name"], every(line["job"]["facets"])),
        inputs=[
            InputDataset(of["namespace"], of["name"], facets=every(of["facets"]), inputFacets=every(of["inputFacets"]))
            for of in line["inputs"]
        ],
        outputs=[
            OutputDataset(of["namespace"], of["name"], facets=every(of["facets"]), outputFacets=every(of["outputFacets"]))
            for of in line["outputs"]
        ],
        producer=line["producer"],
    )


def bare(value):
    """What a value says, without empty members and what the client adds: its version, and the schema of the event that it has."""
    if isinstance(value, dict):
        parts = {key: bare(part) for key, part in value.items() if key not in ("schemaURL", "tags")}
        return {key: part for key, part in parts.items() if part not in (None, {}, [])}
    if isinstance(value, list):
        return [bare(part) for part in value]
    return value


def main():
    with open(sys.argv[1], encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "emitted.jsonl")
        client = OpenLineageClient(transport=FileTransport(FileConfig(path, append=True)))
        for line in events:
            client.emit(event(line))
        with open(path, encoding="utf-8") as lines:
            emitted = [json.loads(line) for line in lines]
    for own, theirs in zip(events, emitted, strict=True):
        if bare(own) != bare(theirs):
            print(f"{json.dumps(bare(own), indent=1)}\nis not\n{json.dumps(bare(theirs), indent=1)}")
            return 1
    print(len(events))
    return 0


if __name__ == "__main__":
    sys.exit(main())
