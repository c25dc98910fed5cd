#!/usr/bin/env python3
"""Types at the prompt of a command and prints what it shows.

    prompt_check.py SECONDS COMMAND ARGUMENT.. < KEYS

Each line of KEYS is typed as it is, with Python's escapes (`\\t` is Tab, `\\x03` Ctrl-C), and after it Enter unless it ends
with `\\c`. The next line is typed when the prompt is back. Ends with the command, or after SECONDS with exit code 3.
PROMPT_COLUMNS says how wide the terminal is.
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

PROMPT = b"tidetable> "


def main():
    deadline = time.monotonic() + float(sys.argv[1])
    keys = [line.rstrip("\n").encode().decode("unicode_escape") for line in sys.stdin]
    child, terminal = pty.fork()
    if child == 0:
        size = struct.pack("HHHH", 24, int(os.environ.get("PROMPT_COLUMNS", "0")), 0, 0)
        fcntl.ioctl(0, termios.TIOCSWINSZ, size)
        os.execvp(sys.argv[2], sys.argv[2:])
    shown, seen = b"", 0
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                chunk = os.read(terminal, 65536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
        elif keys and shown.count(PROMPT) > seen:
            line = keys.pop(0)
            seen = shown.count(PROMPT)
            os.write(terminal, line[:-1].encode() if line.endswith("\\") else (line + "\r").encode())
    else:
        sys.stdout.buffer.write(shown)
        os.kill(child, 9)
        sys.exit(3)
    sys.stdout.buffer.write(shown)
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


main()
