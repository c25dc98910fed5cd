"""A wheel that carries the binary, which pip puts on the PATH, and the Python module that asks it. The format: packaging.python.org, "Binary distribution format"."""

import base64
import hashlib
import time
import zipfile


def make(what, folder):
    stem = f"{what['distribution'].replace('-', '_')}-{what['version']}"
    info = f"{stem}.dist-info"
    tag = f"py3-none-{platform_tag(what)}"
    licences = {"LICENSE": (what["root"] / "LICENSE").read_bytes(), "THIRD-PARTY": what["notices"].encode()}
    metadata = [
        "Metadata-Version: 2.4",
        f"Name: {what['distribution']}",
        f"Version: {what['version']}",
        f"Summary: {what['summary']}",
        f"License-Expression: {what['license']}",
        *(f"License-File: {name}" for name in licences),
        "Classifier: Environment :: Console",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Python :: 3",
        "Classifier: Topic :: Database",
        "Classifier: Typing :: Typed",
        "Requires-Python: >=3.10",
    ]
    module = what["root"] / "packaging/python" / what["name"]
    files = {
        **{f"{what['name']}/{path.name}": path.read_bytes() for path in sorted(module.iterdir()) if path.is_file()},
        f"{stem}.data/scripts/{what['name']}": what["binary"].read_bytes(),
        f"{info}/METADATA": ("\n".join(metadata) + "\n").encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tidetable\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        **{f"{info}/licenses/{name}": text for name, text in licences.items()},
    }
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    path = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(what["time"])[:6])
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 1 if what["quick"] else 9)
    return path


def platform_tag(what):
    """Which systems pip installs it on: those whose glibc is no older than the newest symbol that the binary wants of it. Wheels
    have no tag for the level of the CPU; the command itself looks at that."""
    glibc = max(versions["GLIBC"] for versions in what["needs"].values() if "GLIBC" in versions)
    return f"manylinux_{glibc[0]}_{glibc[1]}_{what['machine']}"


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
