"""Tables of tidetable in Python: `tidetable.sql("SELECT ..").df()`.

The module starts the command of the same name and reads its answer from a pipe, as Arrow. It needs no other package; pandas, Polars,
DuckDB and pyarrow take its results without a copy where they are installed:

    import polars, tidetable
    frame = polars.DataFrame(tidetable.sql("SELECT * FROM SENSOR WHERE meter = $1", params=[42]))
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tidetable import _ipc
from tidetable._command import Command, Rows, TidetableError, objects, options, query_arguments, shows_progress
from tidetable._parameters import bound

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Result", "TidetableError", "describe", "read", "run", "sql", "tables"]

Place = str | os.PathLike[str]

# Digits of decimals that a float shows as they are.
FLOAT_DIGITS = 15


class Result:
    """Rows of a query, read from the command as they are asked for, once.

    Whoever knows Arrow's PyCapsule interface takes it as it is: `polars.DataFrame(result)`, `pyarrow.table(result)`, and DuckDB by the
    name of the variable, `duckdb.sql("FROM result")`.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows, self._is_read = rows, False
        try:
            self._reader = _ipc.Reader(rows)
        except BaseException:
            rows.close()
            raise
        rows.from_the_start()

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [field.name for field in self._reader.fields]

    def _take(self) -> Rows:
        if self._is_read:
            raise TidetableError("the rows of this result have been read: keep what .arrow(), .pl() or .df() gave, or ask again", 2)
        self._is_read = True
        return self._rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream. The types are those of the query, whatever is requested."""
        if "pyarrow" in sys.modules:
            return self.reader().__arrow_c_stream__()
        if "polars" in sys.modules:
            return self.pl().__arrow_c_stream__()
        rows = self._take()
        return _ipc.stream_capsule(_ipc.Reader(rows), rows.close)

    def __arrow_c_schema__(self) -> object:
        """The columns and their types."""
        return _ipc.schema_capsule(self._reader)

    def reader(self) -> pyarrow.RecordBatchReader:
        """The rows as they come, as batches of pyarrow."""
        import pyarrow

        return pyarrow.ipc.open_stream(io.BufferedReader(self._take()))

    def arrow(self) -> pyarrow.Table:
        """All rows as a table of pyarrow."""
        return self.reader().read_all()

    def pl(self) -> polars.DataFrame:
        """All rows as a frame of Polars."""
        import polars

        return polars.read_ipc_stream(io.BufferedReader(self._take()))

    def df(self, *, decimals: Literal["float", "decimal"] = "float") -> pandas.DataFrame:
        """All rows as a frame of pandas, by way of pyarrow. Decimals of up to 15 digits become floats, unless `decimals="decimal"`."""
        import pyarrow

        table = self.arrow()
        if decimals == "float":
            fields = []
            for field in table.schema:
                is_short = pyarrow.types.is_decimal(field.type) and field.type.precision <= FLOAT_DIGITS
                fields.append(field.with_type(pyarrow.float64()) if is_short else field)
            table = table.cast(pyarrow.schema(fields))
        return table.to_pandas(date_as_object=False)

    def close(self) -> None:
        """Ends the query, if rows are left that nobody wants."""
        self._is_read = True
        self._rows.close()

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<tidetable.Result of {', '.join(self.columns)}>"


def sql(
    query: str,
    *,
    root: Place | None = None,
    project: Place | None = None,
    params: Mapping[str, Any] | Sequence[Any] | None = None,
    version: int | Mapping[str, int] | None = None,
    as_of: str | None = None,
    memory: str | None = None,
) -> Result:
    """Asks a query, and returns as soon as its first rows are there.

    Args:
        query: one statement of SQL.
        root: the store, as `--root`; by default that of the project or of TIDETABLE_ROOT.
        project: the folder of tidetable.toml; by default the current one or one above it.
        params: values of `$1`, `$2` (a sequence) or `$name` (a mapping). They are written as literals, never as SQL.
        version: an older version of the table, or of each of several tables.
        as_of: a logical time: the versions that were the newest then are read.
        memory: a budget such as `1GiB`, beyond which the query spills to disk.

    Raises:
        TidetableError: if the query is wrong or fails; then also while rows are read.
    """
    arguments, unlink = query_arguments(bound(query, params))
    if isinstance(version, Mapping):
        for table, number in version.items():
            arguments += ["--version", f"{table}={number}"]
    elif version is not None:
        arguments += ["--version", str(version)]
    if as_of is not None:
        arguments += ["--as-of-commit", as_of]
    if memory is not None:
        arguments += ["--memory", memory]
    command = Command([*options(root, project), "sql", *arguments, "--output", "arrows"])
    return Result(Rows(command, unlink))


def tables(*, root: Place | None = None, project: Place | None = None) -> list[dict[str, Any]]:
    """The tables and exports of a store, with their rows, cells and bytes."""
    return list(objects([*options(root, project), "tables"]))


def describe(table: str, *, root: Place | None = None, project: Place | None = None) -> dict[str, Any]:
    """What is known of a table: its columns, layout, inputs, versions and SSTs."""
    return next(iter(list(objects([*options(root, project), "describe", table]))))


def read(
    table: str,
    *,
    root: Place | None = None,
    project: Place | None = None,
    row: str | None = None,
    prefix: str | None = None,
    start: str | None = None,
    end: str | None = None,
    columns: Sequence[str] = (),
    limit: int | None = None,
    reverse: bool = False,
) -> Iterator[dict[str, Any]]:
    """Cells of a table in the order of their row keys, as Bigtable's ReadRows returns them, one after the other.

    Args:
        table: its name.
        row, prefix, start, end: a row key, the beginning of row keys, or their range without its end.
        columns: families, or columns as `FAMILY:QUALIFIER`.
        limit: the most rows.
        reverse: from the last row to the first.
    """
    arguments = [*options(root, project), "read", table]
    for name, value in (("row", row), ("prefix", prefix), ("start", start), ("end", end), ("limit", limit)):
        if value is not None:
            arguments += [f"--{name}", str(value)]
    for column in columns:
        arguments += ["--columns", column]
    if reverse:
        arguments.append("--reverse")
    return objects(arguments)


def run(
    job: str,
    *arguments: str,
    root: Place | None = None,
    project: Place | None = None,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Runs a job, and returns the record of the run.

    Args:
        job: its name, or the path of its file.
        arguments: as of `tidetable run`, such as `"--day", "2018-01-31"`.
        root, project: as of `sql`.
        progress: whether the command draws its progress; by default on a terminal. Ctrl-C ends it as it ends the command.

    Raises:
        TidetableError: if the run failed, or did only a part of its work (`code` 4).
    """
    shows = shows_progress(progress)
    found: dict[str, Any] = {}
    try:
        for found in objects([*options(root, project), "run", job, *arguments], shows):
            pass
    except TidetableError as error:
        # Messages that went to the terminal are in the record, too.
        raise TidetableError(found.get("error") or str(error), error.code) from None
    return found
