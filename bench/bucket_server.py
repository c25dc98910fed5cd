"""The bucket server of crates/bucket-server, as long as a block of code."""

import json
import os
import pathlib
import subprocess
import urllib.request

from measure import THREADS, Failed

BUCKET = "tidetable"


def elsewhere():
    """Pins the calling process to cores that nothing measured runs on, if there are any."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > THREADS:
        os.sched_setaffinity(0, set(cores[THREADS:]))


class Server:
    """A server with an empty bucket; `options` are those of its command."""

    def __init__(self, binary: pathlib.Path, *options: str):
        command = [str(binary), "--with-stdin", "--bucket", BUCKET, *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, preexec_fn=elsewhere)
        self.endpoint = self.process.stdout.readline().strip()
        if not self.endpoint:
            raise Failed("the bucket server did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def control(self, method: str, path: str, body: str = "") -> str:
        """Asks a path below `/_/`."""
        request = urllib.request.Request(f"{self.endpoint}/_/{path}", method=method, data=body.encode())
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.read().decode()

    def counts(self) -> dict:
        """The counts since the last `count_anew`."""
        return json.loads(self.control("GET", "counts"))

    def count_anew(self):
        self.control("DELETE", "counts")

    def delay(self, text: str):
        """Adds so much time to each reply from now on: `30ms`, `0`."""
        self.control("PUT", "delay", text)

    def environment(self) -> dict[str, str]:
        """Variables by which a client reaches it."""
        keys = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench-secret", "AWS_REGION": "us-east-1"}
        return keys | {"AWS_ENDPOINT": self.endpoint, "AWS_ALLOW_HTTP": "true"}
