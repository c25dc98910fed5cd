"""A Debian package: the binary, manual pages, completions, units, an example. What the command can say itself, it says here."""

import email.utils
import gzip
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}
# The packages of Debian that hold the libraries, and whose versions their symbols have.
PACKAGES = {
    "libc.so.6": "libc6",
    "libm.so.6": "libc6",
    "ld-linux-x86-64.so.2": "libc6",
    "ld-linux-aarch64.so.1": "libc6",
    "libgcc_s.so.1": "libgcc-s1",
}
EXAMPLE = "smart-meters"
CONFIGURATION = """\
# The project that the units of systemd work in: `systemctl enable --now tidetable@JOB.timer` runs jobs/JOB/job.toml of this folder
# each night. Paths in job files are relative to this folder. An example: /usr/share/doc/tidetable/examples.
# Where tables, exports, run records and rejected rows are kept.
root = "/var/lib/tidetable"
"""
# As the units need it; nobody logs in as it.
USER = 'u tidetable - "tidetable jobs" /var/lib/tidetable\n'
CONFINED = """\
User=tidetable
StateDirectory=tidetable
ProtectSystem=full
PrivateTmp=true
"""
POSTINST = """\
#!/bin/sh
set -e
# The units' user, where there is systemd. No unit is enabled and none is started.
if [ "$1" = configure ]; then
    if command -v systemd-sysusers >/dev/null; then
        systemd-sysusers ${DPKG_ROOT:+"--root=$DPKG_ROOT"} tidetable.conf
    fi
    if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
        systemctl daemon-reload
    fi
fi
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: {name}
Comment: The crates that are part of the binary, and their licences, stand in third-party.gz beside this file.

Files: *
Copyright: {year} The tidetable authors
License: {license}
 The whole text is in /usr/share/common-licenses/{license} on Debian systems.

Files: usr/share/doc/tidetable/examples/sample-data/*
Copyright: ComStock, National Renewable Energy Laboratory
License: CC-BY-3.0-US
 Creative Commons Attribution 3.0 United States, https://creativecommons.org/licenses/by/3.0/us/ as README.md there says.
"""


def make(what, folder):
    name, architecture = what["name"], ARCHITECTURE[what["machine"]]
    path = folder / f"{name}_{what['version']}-1_{architecture}.deb"
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        fill(what, tree, Path(scratch))
        control(what, tree, architecture)
        programs = (tree / "DEBIAN/postinst", tree / "usr/bin" / name)
        for each in tree.rglob("*"):
            each.chmod(0o755 if each.is_dir() or each in programs else 0o644)
        compression = ["-Zgzip", "-z1"] if what["quick"] else ["-Zxz"]
        command = ["dpkg-deb", *compression, "--build", "--root-owner-group", tree, path]
        dated = {**os.environ, "SOURCE_DATE_EPOCH": str(what["time"])}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=dated)
    return path


def fill(what, tree, scratch):
    name, root = what["name"], what["root"]
    say = lambda *arguments: subprocess.run([what["binary"], *arguments], check=True, capture_output=True, text=True).stdout
    put(tree / f"usr/bin/{name}", what["binary"].read_bytes())
    say("man", scratch / "man")
    for page in (scratch / "man").iterdir():
        put(tree / f"usr/share/man/man1/{page.name}.gz", packed(page.read_bytes()))
    put(tree / f"usr/share/bash-completion/completions/{name}", say("completions", "bash"))
    put(tree / f"usr/share/zsh/vendor-completions/_{name}", say("completions", "zsh"))
    put(tree / f"usr/share/fish/vendor_completions.d/{name}.fish", say("completions", "fish"))
    put(tree / "etc/tidetable/tidetable.toml", CONFIGURATION)
    put(tree / f"usr/lib/sysusers.d/{name}.conf", USER)
    documents = tree / "usr/share/doc" / name
    put(documents / "copyright", COPYRIGHT.format(year=time.gmtime(what["time"]).tm_year, **what))
    put(documents / "third-party.gz", packed(what["notices"].encode()))
    put(documents / "changelog.gz", packed((root / "CHANGELOG.md").read_bytes()))
    put(documents / "changelog.Debian.gz", packed(changelog(what).encode()))
    example(root, documents / "examples")
    units(what, scratch, tree / "lib/systemd/system")


def example(root, to):
    put(to / "tidetable.toml", (root / "tidetable.toml").read_text())
    wanted = (".toml", ".sql", ".md", ".csv", ".parquet")
    for folder in (f"jobs/{EXAMPLE}", f"sample-data/{EXAMPLE}"):
        for file in (root / folder).iterdir():
            if file.suffix in wanted:
                put(to / folder / file.name, file.read_bytes())


def units(what, scratch, to):
    """Templates, a job an instance, from what the command prints for the example. That one has a schedule of its own to go by;
    the job of a template is run when the timer says, and what the machine slept through the timer makes up for."""
    project = scratch / "project"
    example(what["root"], project)
    made = scratch / "units"
    command = [what["binary"], "-C", project, "schedule", "--format", "systemd", "--write", made]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    service = (made / f"tidetable-{EXAMPLE}.service").read_text()
    service = swapped(service, f'"{what["binary"].resolve()}" -C "{project.resolve()}"', '"/usr/bin/tidetable" -C "/etc/tidetable"')
    service = swapped(service, " --catch-up ", " ")
    service = swapped(service, "Type=oneshot\n", f"Type=oneshot\n{CONFINED}")
    timer = (made / f"tidetable-{EXAMPLE}.timer").read_text()
    for suffix, unit in (("service", service), ("timer", timer)):
        unit = swapped(unit, EXAMPLE, "%i")
        unit = swapped(unit, "[Unit]\n", "[Unit]\nDocumentation=man:tidetable-run(1)\n")
        put(to / f"tidetable@.{suffix}", unit)


def swapped(text, old, new):
    if old not in text:
        sys.exit(f"what `tidetable schedule --format systemd` prints has no {old!r} any more; adapt {__file__}:\n{text}")
    return text.replace(old, new)


def control(what, tree, architecture):
    files = sorted(each for each in tree.rglob("*") if each.is_file())
    fields = {
        "Package": what["name"],
        "Version": f"{what['version']}-1",
        "Architecture": architecture,
        "Maintainer": maintainer(),
        "Installed-Size": str(sum(-(-each.stat().st_size // 1024) for each in files)),
        "Depends": ", ".join(depends(what["needs"])),
        "Recommends": "ca-certificates",
        "Section": "database",
        "Priority": "optional",
        "Description": f"""{lowered(what['summary'])}
 It reads CSV and Parquet telemetry, rewrites it into the row keys and columns
 of a Bigtable schema, keeps it in sorted immutable files, publishes a table
 a day, and answers SQL over all of it. One command; no server, no database.
 .
 On x86 this needs a CPU with AVX2 (x86-64-v3).""",
    }
    sums = "".join(f"{hashlib.md5(each.read_bytes()).hexdigest()}  {each.relative_to(tree)}\n" for each in files)
    conffiles = "".join(f"/{each.relative_to(tree)}\n" for each in files if each.relative_to(tree).parts[0] == "etc")
    put(tree / "DEBIAN/control", "".join(f"{key}: {value}\n" for key, value in fields.items()))
    put(tree / "DEBIAN/md5sums", sums)
    put(tree / "DEBIAN/conffiles", conffiles)
    put(tree / "DEBIAN/postinst", POSTINST)


def depends(needs):
    newest = {}
    for library, versions in needs.items():
        if library not in PACKAGES:
            sys.exit(f"the binary needs {library}; add the package of Debian that holds it to {__file__}")
        package = PACKAGES[library]
        newest[package] = max([newest.get(package, ()), *versions.values()])
    dotted = lambda version: ".".join(map(str, version))
    return [f"{package} (>= {dotted(version)})" if version else package for package, version in sorted(newest.items())]


def maintainer():
    """Who builds it, as Debian's own tools are told. The field must have an address."""
    return f"{os.environ.get('DEBFULLNAME', 'The tidetable authors')} <{os.environ.get('DEBEMAIL', 'tidetable@localhost')}>"


def changelog(what):
    return f"""\
{what['name']} ({what['version']}-1) unstable; urgency=medium

  * Version {what['version']}; changelog.gz says what changed.

 -- {maintainer()}  {email.utils.formatdate(what["time"])}
"""


def lowered(text):
    return text[:1].lower() + text[1:]


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def packed(data):
    return gzip.compress(data, 9, mtime=0)
