"""Installs each package into a place of its own and runs the sample: `python3 packaging/test.py WHAT`.

WHAT is the folder that holds both packages, or a binary, of which they are made first.

Nothing is installed on this machine. What is missing of dpkg-deb, systemd-sysusers, systemd-analyze, man, zsh, fish, lintian and
qemu-x86_64 is said and left out.
"""

import csv
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JOB = "smart-meters"
QUERY = "SELECT count(*) AS readings, round(sum(kwh), 2) AS kwh FROM SENSOR"
ANSWER = {"readings": "7200", "kwh": "2029695.39"}
# Tags of lintian that stay: no address is in the source, and Debian has no request for the package that it could close.
ACCEPTED = ["bogus-mail-host", "bogus-mail-host-in-debian-changelog", "initial-upload-closes-no-bugs"]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        # Neither settings of the person nor what is installed elsewhere may help.
        env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(scratch), "LC_ALL": "C.UTF-8"}
        made = Path(sys.argv[1]).resolve()
        if not made.is_dir():
            made = scratch / "made"
            print(call([sys.executable, "-B", ROOT / "packaging/package.py", sys.argv[1], made, "--quick"], os.environ), end="")
        installed_wheel(only(made, "*.whl"), scratch, env)
        if there("dpkg-deb"):
            installed_deb(only(made, "*.deb"), scratch, env)
        old_cpu(scratch / "venv/bin/tidetable", env)
    print("the packages work")


def installed_wheel(wheel, scratch, env):
    venv = scratch / "venv"
    call([sys.executable, "-m", "venv", venv], env)
    started = time.monotonic()
    call([venv / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel], env)
    env = {**env, "PATH": f"{venv / 'bin'}:{env['PATH']}"}
    expect(shutil.which("tidetable", path=env["PATH"]) == str(venv / "bin/tidetable"), "pip puts the command on the PATH")
    project = scratch / "wheel-project"
    for each in ("tidetable.toml", f"jobs/{JOB}", f"sample-data/{JOB}"):
        copy(ROOT / each, project / each)
    answers(project, env)
    print(f"wheel: from pip install to the first answer: {time.monotonic() - started:.1f} s")
    asked = f"import tidetable; print(tidetable.sql({QUERY!r}, project={str(project)!r}).columns)"
    found = call([venv / "bin/python", "-c", asked], env).strip()
    expect(found == str(list(ANSWER)), f"the module asks the command beside it: {found}")
    shown = call([venv / "bin/python", "-m", "pip", "show", "--files", "tidetable-db"], env)
    expect("Apache-2.0" in shown or "License" in shown, "pip show knows the licence")


def installed_deb(package, scratch, env):
    root = scratch / "root"
    call(["dpkg-deb", "-x", package, root], env)
    call(["dpkg-deb", "-e", package, scratch / "control"], env)
    binary = root / "usr/bin/tidetable"
    documents = root / "usr/share/doc/tidetable"
    depends = call(["dpkg-deb", "--field", package, "Depends"], env)
    expect("libc6 (>= 2." in depends, f"it depends on a version of libc6: {depends}")
    conffiles = (scratch / "control/conffiles").read_text().split()
    expect(conffiles and all((root / each.lstrip("/")).is_file() for each in conffiles), "conffiles are there")
    call(["md5sum", "--check", "--quiet", scratch / "control/md5sums"], env, cwd=root)

    env = {**env, "PATH": f"{root / 'usr/bin'}:{env['PATH']}"}
    project = scratch / "deb-project"
    shutil.copytree(documents / "examples", project)
    answers(project, env)

    pages(root, call([binary, "--help"], env), env)
    completions(root, env)
    configured(root, scratch / "control/postinst", binary, env)
    verified_units(root, env)
    checked_by_lintian(package, env)


def answers(project, env):
    call(["tidetable", "-C", project, "run", JOB], env)
    rows = list(csv.DictReader(call(["tidetable", "-C", project, "sql", "--output", "csv", "-c", QUERY], env).splitlines()))
    expect(rows == [ANSWER], f"{QUERY}: {rows}")


def pages(root, help_text, env):
    """A page for each command that the help names, and `man` can read them."""
    folder = root / "usr/share/man/man1"
    found = {page.name for page in folder.iterdir()}
    expect("tidetable.1.gz" in found and "tidetable-run.1.gz" in found and len(found) > 20, f"manual pages: {sorted(found)}")
    missing = [name for name in ("run", "sql", "schedule", "backup") if name not in help_text or f"tidetable-{name}.1.gz" not in found]
    expect(not missing, f"no page of {missing}")
    for page in folder.iterdir():
        expect(".TH" in gzip.decompress(page.read_bytes()).decode(), f"{page.name} is a manual page")
    if there("man"):
        text = call(["man", "-l", folder / "tidetable-run.1.gz"], {**env, "MANPAGER": "cat", "MANWIDTH": "100"})
        expect("SYNOPSIS" in text and "--from" in text, f"man shows: {text[:500]}")


def completions(root, env):
    bash = root / "usr/share/bash-completion/completions/tidetable"
    asked = 'source "$0"; COMP_WORDS=(tidetable sche); COMP_CWORD=1; _tidetable; echo "${COMPREPLY[@]}"'
    expect(call(["bash", "-c", asked, bash], env).split() == ["schedule", "schema", "scheduler"], "bash completes a command")
    for shell, file in (("zsh", "zsh/vendor-completions/_tidetable"), ("fish", "fish/vendor_completions.d/tidetable.fish")):
        path = root / "usr/share" / file
        expect(path.read_text() == call(["tidetable", "completions", shell], env), f"{file} is what the command prints")
        if there(shell):
            call([shell, "-n", path], env)


def configured(root, postinst, binary, env):
    """The script after installation makes a user and nothing else, and may run again."""
    if not there("systemd-sysusers"):
        return
    before = files(root)
    for _ in range(2):
        call(["sh", postinst, "configure"], {**env, "DPKG_ROOT": str(root)})
    users = (root / "etc/passwd").read_text()
    alone = users.startswith("tidetable:") and users.count("\n") == 1
    expect(alone and users.endswith("nologin\n"), f"one user that cannot log in: {users}")
    accounts = ("etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/.pwd")
    new = {each for each in files(root) - before if not each.startswith(accounts)}
    expect(not new, f"the script made {sorted(new)}")
    project = str(root / "etc/tidetable")
    said = ended([binary, "-C", project, "status"], env)
    expect("/var/lib/tidetable" in said.stdout + said.stderr, f"the configuration is read: {said}")


def verified_units(root, env):
    folder = root / "lib/systemd/system"
    service, timer = ((folder / f"tidetable@.{kind}").read_text() for kind in ("service", "timer"))
    expect('ExecStart="/usr/bin/tidetable" -C "/etc/tidetable" run %i --if-locked skip\n' in service, service)
    expect("OnCalendar=*-*-* 01:15:00 UTC\nPersistent=true\n" in timer and "WantedBy=timers.target\n" in timer, timer)
    expect(JOB not in service + timer and "/tmp" not in service + timer, f"names of the example are left:\n{service}{timer}")
    if there("systemd-analyze"):
        # Under the real root, where the targets are; the program is where the package puts it, here.
        tried = root / "tried"
        tried.mkdir()
        for kind, text in (("service", service), ("timer", timer)):
            text = text.replace("/usr/bin/tidetable", f"{root}/usr/bin/tidetable").replace("%i", JOB)
            (tried / f"tidetable@{JOB}.{kind}").write_text(text)
        said = ended(["systemd-analyze", "verify", "--man=no", *sorted(tried.iterdir())], env)
        ours = [line for line in said.stderr.splitlines() if "tidetable" in line]
        expect(not ours, "systemd-analyze verify: " + "\n".join(ours))


def checked_by_lintian(package, env):
    if there("lintian"):
        done = ended(["lintian", "--suppress-tags", ",".join(ACCEPTED), "--fail-on", "error,warning", package], env)
        print(done.stdout + done.stderr, end="")
        expect(done.returncode == 0, "lintian finds nothing but what is accepted")


def old_cpu(binary, env):
    """On a CPU without AVX the command answers or says why it cannot; it is never ended by a signal."""
    if there("qemu-x86_64"):
        done = ended(["qemu-x86_64", "-cpu", "Nehalem", binary, "--version"], env)
        refused = done.returncode == 1 and "this CPU lacks instructions" in done.stderr
        expect(refused or done.returncode == 0 and done.stdout.startswith("tidetable "), f"on an old CPU: {done}")
        print(f"on a CPU without AVX: {'refuses' if refused else 'runs'}")


def ended(command, env, cwd=None):
    words = list(map(str, command))
    return subprocess.run(words, env=env, cwd=cwd, text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL)


def call(command, env, cwd=None):
    done = ended(command, env, cwd)
    expect(done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def there(program):
    if shutil.which(program):
        return True
    print(f"not tried with {program}, which is not here")
    return False


def only(folder, pattern):
    found = list(folder.glob(pattern))
    expect(len(found) == 1, f"one file like {pattern}: {found}")
    return found[0]


def copy(source, to):
    to.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if source.is_dir() else shutil.copy)(source, to)


def files(root):
    return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_file()}


if __name__ == "__main__":
    main()
