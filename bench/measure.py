"""Runs commands and measures them: seconds, peak memory, bytes on disk; describes the machine."""

import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

THREADS = 2
# A command that takes longer hangs, and is killed.
LIMIT_SECONDS = 3600


class Failed(Exception):
    """A command that failed."""


def two_cores():
    """Pins the calling process and its children to two cores."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:THREADS]))


def measured(command, cwd, env=None):
    """Seconds, peak resident bytes (of the largest process) and output of a command pinned to two cores.

    Dirty pages of earlier commands are written first, so that they do not count.
    """
    os.sync()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        start = time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command], cwd=cwd, env=env, stdout=out, stderr=error, preexec_fn=two_cores
        )
        watch = threading.Timer(LIMIT_SECONDS, os.kill, (process.pid, signal.SIGKILL))
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        error.seek(0)
        if process.returncode != 0:
            lines = error.read().decode(errors="replace").strip().splitlines() or ["no message"]
            raise Failed(f"exit {process.returncode}: {lines[-1][:200]}")
        return seconds, usage.ru_maxrss * 1024, out.read().decode()


def size(path):
    """Bytes of a file, or of all files in a directory."""
    path = pathlib.Path(path)
    return path.stat().st_size if path.is_file() else sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


def warm(folder):
    """Reads all files of a directory into the page cache; returns whether they fit."""
    fits = size(folder) < memory("MemAvailable") * 0.6
    if fits:
        for path in sorted(folder.iterdir()):
            with open(path, "rb", buffering=0) as file:
                while file.read(16 << 20):
                    pass
    return fits


def memory(what):
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what + ":"))


def machine():
    """The machine, in one line."""
    with open("/proc/cpuinfo") as lines:
        names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0))
    name, kernel = names[0] if names else os.uname().machine, os.uname().release
    return f"{name}, {cores} cores, {memory('MemTotal') / 2**30:.0f} GiB, Linux {kernel}"
