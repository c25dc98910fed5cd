"""Results as a Markdown table, and every run as JSON."""

import datetime
import statistics
import subprocess

from measure import machine

HEAD = "| input | engine | seconds | a second | against | peak memory | bytes an item | after compaction |"


def markdown(results, tools, args, cold):
    version = subprocess.run([tools.tidetable, "--version"], capture_output=True, text=True).stdout.strip()
    missing = [name for name in ("duckdb", "polars", "chdb") if name not in tools.versions]
    lines = [
        f"{datetime.date.today()}, {machine()}; {version}; {runs(args.runs)}, two cores and two threads each.",
        f"Inputs: {arrival(args)}. {cache(cold)}",
        *[f"Missing: {name}, which could not be installed." for name in missing],
        "",
        HEAD,
        "|---" * HEAD.count(" | ") + "|---|",
        *[line(result, results) for result in results],
    ]
    stages = stage_table([result for result in results if result.engine.ours and not result.failed])
    return "\n".join(lines + stages)


def runs(count):
    return "single runs" if count == 1 else f"medians of {count} alternating runs"


def arrival(args):
    order = "ordered" if args.ordered else "irregular (random ids and order; some rows late, twice or missing)"
    return f"{order}, seed {args.seed}"


def cache(cold):
    warm = "They were in the page cache (read once before each run)"
    return f"{warm}, but those of: {', '.join(cold)}, which do not fit." if cold else f"{warm}."


def line(result, results):
    given = result.given
    items = getattr(given, "items", None)
    shown = f"{result.case.title}, {items / 1e6:.4g} M {given.shape.item}s" if items else result.case.title
    if result.failed:
        return f"| {shown} | {result.engine.name} | no run: {result.failed} | | | | | |"
    seconds = statistics.median(result.seconds)
    peak = statistics.median(result.peaks) / 2**20
    cells = [
        shown,
        result.engine.name,
        f"{seconds:.2f}",
        f"{items / seconds / 1e6:.2f} M",
        against(result, seconds, results),
        f"{peak:.0f} MiB",
        f"{result.bytes / items:.3f}",
        f"{result.compacted[1] / items:.3f} (in {result.compacted[0]:.2f} s)" if result.compacted else "",
    ]
    return f"| {' | '.join(cells)} |"


def against(result, seconds, results):
    """For a peer, how much faster tidetable is; for a size or setting, the time per item relative to the first entry."""
    first = next(other for other in results if other.case is result.case)
    if first is result or first.failed:
        return ""
    base = statistics.median(first.seconds)
    if result.case.among == "engines":
        return f"tidetable is {seconds / base:.2f} x as fast"
    ratio = (seconds / result.given.items) / (base / first.given.items)
    return f"{ratio:.2f} x the time a {result.given.shape.item}"


def stage_table(results):
    """tidetable's time by stage, of the run with the median time."""
    names = ("load", "commit", "publish", "read", "parse", "sort", "encode", "write")
    lines = [
        "",
        "Where the time of tidetable goes, from the record of the median run, in seconds. Parsing to writing are added up "
        "over the tasks of both cores.",
        "",
        "| input | engine | load | commit | publish | waiting for inputs | parsing | sorting | encoding | writing |",
        "|---" * (len(names) + 2) + "|",
    ]
    for result in results:
        order = sorted(range(len(result.seconds)), key=result.seconds.__getitem__)
        stages = result.stages[order[len(order) // 2]]
        cells = [f"{stages.get(name, 0.0):.3f}" for name in names]
        lines.append(f"| {result.case.title} | {result.engine.name} | {' | '.join(cells)} |")
    return lines if results else []


def records(results, tools, args):
    """All measurements."""
    rows = []
    for result in results:
        given = result.given
        rows.append(
            {
                "case": result.case.name,
                "engine": result.engine.name,
                "items": getattr(given, "items", None),
                "input_bytes": getattr(given, "bytes", None),
                "seconds": result.seconds,
                "peaks": result.peaks,
                "bytes": result.bytes,
                "compacted": result.compacted,
                "stages": result.stages,
                "failed": result.failed,
            }
        )
    about = {"date": str(datetime.date.today()), "machine": machine(), "scale": args.scale, "peers": tools.versions}
    about |= {"seed": args.seed, "ordered": args.ordered}
    return {**about, "results": rows}
