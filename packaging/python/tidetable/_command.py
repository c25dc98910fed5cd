"""Starts the command `tidetable`, and turns how it ends into exceptions."""

from __future__ import annotations

import io
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

# Longer queries are passed in a file: the system limits arguments to 128 KiB each.
LONGEST_ARGUMENT = 100_000
# The time before a message of a log, and the mark of an error.
LOGGED = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z +(?:× )?")
# How often a wait for rows looks whether it was interrupted.
WAKE_SECONDS = 0.2
# Bytes of messages that are kept for an exception.
KEPT = 1 << 20


class TidetableError(Exception):
    """The command failed. The text is what it says, with the place in the query or file.

    Attributes:
        code: its exit code: 2 for a wrong query or argument, 3 for failed checks, 4 for a run that did a part of its work, and so
            on, as docs/reference/exit-codes.md lists them; 128 and the number of a signal that ended it.
    """

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def program() -> str:
    """The command: that of TIDETABLE_BIN, of this installation, or of the PATH."""
    if given := os.environ.get("TIDETABLE_BIN"):
        return given
    places = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    if found := shutil.which("tidetable", path=places):
        return found
    raise FileNotFoundError("there is no command tidetable: install the wheel, or name it in TIDETABLE_BIN")


def options(root: Any, project: Any) -> list[str]:
    """Options that all commands have."""
    found = []
    if project is not None:
        found += ["-C", os.fspath(project)]
    if root is not None:
        found += ["--root", os.fspath(root)]
    return found


class Command:
    """A command that runs. Its output is read while it does."""

    def __init__(self, arguments: Sequence[str], shows_progress: bool = False) -> None:
        # Bars are drawn on a terminal only; else messages come at the end, in the exception.
        own = None if shows_progress else subprocess.PIPE
        command = [program(), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=own, bufsize=0)
        # Without a buffer they are files.
        self.output = cast(io.FileIO, self.process.stdout)
        self.messages = bytearray()
        self.listener: threading.Thread | None = None
        if self.process.stderr is not None:
            messages = cast(io.FileIO, self.process.stderr)
            self.listener = threading.Thread(target=self.listen, args=(messages,), daemon=True)
            self.listener.start()

    def listen(self, messages: io.FileIO) -> None:
        for line in io.BufferedReader(messages):
            if len(self.messages) < KEPT:
                self.messages += line
        messages.close()

    def end(self) -> None:
        """Waits for the end.

        Raises:
            TidetableError: if the command failed.
        """
        code = self.wait()
        if code:
            raise TidetableError(self.text() or f"tidetable ended with {code}", code)

    def wait(self) -> int:
        """Waits for the end, and returns the exit code. An interrupt of this process ends the command, too."""
        try:
            code = self.process.wait()
        except KeyboardInterrupt:
            # A notebook is interrupted alone; at a terminal the command got the signal itself.
            self.stop(signal.SIGINT)
            raise
        if self.listener is not None:
            self.listener.join()
        self.output.close()
        return code if code >= 0 else 128 - code

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends the command, if it runs."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.output.close()
        self.process.wait()

    def text(self) -> str:
        """What the command said, without the times that its log has where no terminal is."""
        lines = self.messages.decode(errors="replace").strip().splitlines()
        text = "\n".join(LOGGED.sub("", line) for line in lines)
        return text.removeprefix("error: ")


class Rows(io.RawIOBase):
    """The output of a query, of which the beginning may be read twice. Its end is that of the command: if that failed, reading fails."""

    def __init__(self, command: Command, unlink: Path | None) -> None:
        super().__init__()
        self.command, self.unlink = command, unlink
        self.begun: bytearray | None = bytearray()
        self.again = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        if self.again:
            count = min(len(view), len(self.again))
            view[:count] = self.again[:count]
            self.again = self.again[count:]
            return count

        try:
            # A wait that wakes: Polars has a handler of SIGINT after which a read that waits goes on.
            while not select.select([self.command.output], [], [], WAKE_SECONDS)[0]:
                pass
            count = self.command.output.readinto(view) or 0
        except KeyboardInterrupt:
            self.command.stop(signal.SIGINT)
            raise
        if self.begun is not None:
            self.begun += view[:count]
        if count == 0 and len(view) > 0:
            self.command.end()
        return count

    def from_the_start(self) -> None:
        """What was read until now is read again, once."""
        self.again, self.begun = memoryview(bytes(self.begun or b"")), None

    def close(self) -> None:
        """Ends the query, if rows are left."""
        if not self.closed:
            self.command.stop()
            if self.unlink is not None:
                self.unlink.unlink(missing_ok=True)
        super().close()


def query_arguments(query: str) -> tuple[list[str], Path | None]:
    """How a query is passed, and the file that holds it, if it is long."""
    if len(query.encode()) <= LONGEST_ARGUMENT:
        return ["-c", query], None
    with tempfile.NamedTemporaryFile("w", suffix=".sql", delete=False, encoding="utf-8") as file:
        file.write(query)
    return ["-f", file.name], Path(file.name)


def objects(arguments: Sequence[str], shows_progress: bool = False) -> Iterator[dict[str, Any]]:
    """The objects that a command prints with `--output json`, as they come."""
    command = Command([*arguments, "--output", "json"], shows_progress)
    ended = False
    try:
        for line in io.BufferedReader(command.output):
            yield json.loads(line)
        ended = True
        command.end()
    except KeyboardInterrupt:
        command.stop(signal.SIGINT)
        raise
    finally:
        if not ended:
            command.stop()


def shows_progress(asked: bool | None) -> bool:
    """Whether bars are drawn: on a terminal, unless asked otherwise."""
    return sys.stderr.isatty() if asked is None else asked
