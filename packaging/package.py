"""Makes a wheel and a Debian package from a binary that is there: `python3 packaging/package.py BINARY FOLDER [--quick]`.

Both hold the same binary, without symbols. What it needs of a system is read from the binary itself, so that the tag of the wheel
and the dependencies of the Debian package cannot differ from it. The same binary and commit give the same bytes. With --quick they
are compressed in seconds instead of minutes, for tests.

Own scripts of Python's library and dpkg-deb, instead of maturin and cargo-deb, so that one binary is built once and both packages
hold it: maturin calls cargo itself, and cargo-deb is 200 crates to build first.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import deb
import wheel

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "tidetable-cli"
# What has no number in its name, and the number that it means.
NAMED = {"GLIBC_ABI_DT_RELR": ("GLIBC", (2, 36))}
LICENCE_FILE = re.compile(r"^(un)?licen[cs]e|^copying|^notice", re.IGNORECASE)


def run(*command):
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout


def needs(binary):
    """The versions of symbols that the binary wants of each library: {"libc.so.6": {"GLIBC": (2, 34)}, ..}, the newest of each."""
    found, library = {}, None
    for line in run("objdump", "-p", binary).splitlines():
        if match := re.match(r"\s+NEEDED\s+(\S+)", line):
            found.setdefault(match[1], {})
        elif match := re.match(r"\s+required from (\S+):", line):
            library = found.setdefault(match[1], {})
        elif match := re.match(r"\s+0x\w+ 0x\w+ \d+ (\S+)$", line):
            of, version = NAMED.get(match[1]) or numbered(match[1])
            library[of] = max(version, library.get(of, ()))
    return found


def numbered(name):
    match = re.fullmatch(r"([A-Z]+)_(\d+(?:\.\d+)+)", name)
    if not match:
        sys.exit(f"the binary needs {name}, of which no version is known; add it to NAMED in {__file__}")
    return match[1], tuple(map(int, match[2].split(".")))


def notices(metadata):
    """The licences of the crates in the binary, each text once: theirs ask for it."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    start = next(package["id"] for package in packages.values() if package["name"] == PACKAGE)
    seen, open_ends = {start}, [start]
    while open_ends:
        for dependency in nodes[open_ends.pop()]["deps"]:
            normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if normal and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                open_ends.append(dependency["pkg"])
    crates = [packages[each] for each in seen if packages[each]["source"]]
    crates.sort(key=lambda crate: (crate["name"], crate["version"]))
    texts = {}
    lines = ["Crates that are part of the binary, and their licences. The texts stand below, each once.", ""]
    for crate in crates:
        lines.append(f"{crate['name']} {crate['version']}: {crate['license'] or 'see below'}")
        for file in sorted(Path(crate["manifest_path"]).parent.iterdir()):
            if LICENCE_FILE.match(file.name) and file.is_file():
                texts.setdefault(file.read_text(errors="replace").strip(), []).append(crate["name"])
    for text, names in texts.items():
        lines += ["", "=" * 100, "Of " + ", ".join(sorted(set(names))) + ":", "", text]
    return "\n".join(lines) + "\n"


def committed():
    """The time that files of packages have: that of the commit, unless the environment says another one."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct"))


def main():
    quick = sys.argv[3:] == ["--quick"]
    if len(sys.argv) != 3 and not quick:
        sys.exit(__doc__)
    source, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    if not source.is_file():
        sys.exit(f"{source}: there is no binary; `just package` builds the one that is shipped")
    target = f"{platform.machine()}-unknown-linux-gnu"
    metadata = json.loads(run("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target))
    crate = next(package for package in metadata["packages"] if package["name"] == PACKAGE)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        binary = Path(scratch) / "tidetable"
        shutil.copy(source, binary)
        run("strip", binary)
        binary.chmod(0o755)
        what = {
            "name": "tidetable",
            # On PyPI the name of the command is another project's.
            "distribution": "tidetable-db",
            "version": crate["version"],
            "summary": crate["description"],
            "license": crate["license"],
            "root": ROOT,
            "binary": binary,
            "needs": needs(binary),
            "machine": platform.machine(),
            "time": committed(),
            "notices": notices(metadata),
            "quick": quick,
        }
        makers = [wheel.make]
        if shutil.which("dpkg-deb"):
            makers.append(deb.make)
        else:
            print("no Debian package: dpkg-deb is not here")
        for make in makers:
            made = make(what, folder)
            print(f"{made}: {made.stat().st_size / 2**20:.1f} MiB, SHA-256 {hashlib.sha256(made.read_bytes()).hexdigest()}")
        print(f"the binary: {binary.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
