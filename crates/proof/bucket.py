"""Runs a command with TIDETABLE_BUCKET set to a bucket of an S3 server, which runs as long as the command.

    bucket.py VENV COMMAND ARGS..

The server is moto's, on loopback; it is installed into the directory VENV. If that fails, the reason is printed, and the
command is not run.
"""

import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

REQUIREMENT = "moto[server]==5.2.5"
BUCKET = "proofs"


def installed(venv: pathlib.Path) -> pathlib.Path | None:
    """The server's program; None, after printing the reason, if it cannot be installed."""
    program = venv / "bin" / "moto_server"
    if program.exists():
        return program
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", REQUIREMENT]
    for command in ([sys.executable, "-m", "venv", venv], pip):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            print(f"skipped: no S3 server to test against: {last}")
            return None
    return program


def free_port() -> int:
    """A free port."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(endpoint: str) -> None:
    """Creates the bucket, once the server answers."""
    for _ in range(300):
        request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
        try:
            urllib.request.urlopen(request, timeout=10).close()
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    raise SystemExit("the S3 server does not answer")


def main() -> int:
    venv, command = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    program = installed(venv)
    if program is None:
        return 0
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], **silent)
    try:
        wait_for(endpoint)
        reached = {
            "TIDETABLE_BUCKET": f"s3://{BUCKET}/tables",
            "AWS_ENDPOINT": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "proof",
            "AWS_SECRET_ACCESS_KEY": "proof",
        }
        return subprocess.run(command, env=os.environ | reached, check=False).returncode
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
