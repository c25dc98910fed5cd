"""Lists crates, directories, sizes, circles and knots: `just house`, or only what is wrong: `python3 tests/house.py --circles`.

A file depends on another if it names an item that the other defines; re-exports are followed to the definition, and test modules do
not count. In each directory, a file or directory depends on another if one of its files depends on a file there. Exits with 1 if
files depend on each other in a circle, files and directories of a directory do (a knot), or a directory of code or tests holds
more than MOST_FILES.
"""

import re
import signal
import sys
from pathlib import Path

MOST_FILES = 15
ROOT = Path(__file__).resolve().parent.parent
ITEM = re.compile(r"(?:^|[;{}\]])\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+|async\s+|const\s+(?=fn))*"
                  r"(?:struct|enum|trait|fn|const|static|type|union|macro_rules!)\s+(?:mut\s+)?([A-Za-z_]\w*)", re.M)
MODULE = re.compile(r"(?:#\[cfg\(([^)\]]*(?:\([^)]*\))?[^)\]]*)\)\]\s*)?(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
USE = re.compile(r"(pub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])((?:crate|super|self)(?:::\w+)+|[a-z_]\w*(?:::\w+)+)")


def bare(text):
    """The code without comments, strings and test modules, so that braces and names can be counted."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'',
                  lambda m: '""' if '"' in m.group(0) else "", text, flags=re.S)
    while found := re.search(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?(mod|use|fn|impl|const|struct)\b[^;{]*([;{])", text):
        end = found.end()
        if found.group(2) == "{":
            depth = 1
            while depth and end < len(text):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
        text = text[: found.start()] + text[end:]
    return text


def leaves(tree):
    """`a::{b, c as d, e::*}` as (path, name) pairs."""
    tree = tree.strip()
    if "{" in tree:
        head, rest = tree.split("{", 1)
        inner, depth, part = rest.rsplit("}", 1)[0], 0, ""
        for c in inner + ",":
            depth += {"{": 1, "}": -1}.get(c, 0)
            if c == "," and depth == 0:
                if part.strip():
                    yield from leaves(head + part.strip())
                part = ""
            else:
                part += c
        return
    path, _, name = tree.partition(" as ")
    path = [p.strip() for p in path.split("::") if p.strip()]
    if path[-1] == "self":
        path.pop()
    yield path, (name.strip() or path[-1])


class Module:
    def __init__(self, file, path):
        text = bare(file.read_text())
        self.file, self.path, self.children = file, path, {}
        self.lines = sum(1 for line in text.splitlines() if line.strip())
        depth, top = 0, []
        for c in text:
            if c == "}":
                depth -= 1
            if depth == 0:
                top.append(c)
            if c == "{":
                depth += 1
        top = "".join(top)
        self.items = set(ITEM.findall(top))
        self.uses = [(bool(m.group(1)), *leaf) for m in USE.finditer(text) for leaf in leaves(m.group(2))]
        self.public = {name for m in USE.finditer(text) if (m.group(1) or "").strip() == "pub" for _, name in leaves(m.group(2))}
        self.body = USE.sub(";", text)
        self.declared = [name for cfg, name in MODULE.findall(text) if "test" not in cfg]
        self.public |= set(re.findall(r"\bpub mod (\w+)\s*;", text))


def load(file, path, crate):
    module = crate[path] = Module(file, path)
    folder = file.parent if file.name in ("lib.rs", "main.rs", "mod.rs") else file.parent / file.stem
    for name in module.declared:
        for candidate in (folder / f"{name}.rs", folder / name / "mod.rs"):
            if candidate.exists():
                load(candidate, path + (name,), crate)
                module.children[name] = path + (name,)


def resolve(crate, at, path, seen=()):
    """The file that defines what `path` names in module `at`, or None for what is not of this crate."""
    here, path = at, list(path)
    if not path:
        return crate[here].file
    if path[0] == "crate":
        here, path = (), path[1:]
    elif path[0] in ("self", "super"):
        while path and path[0] in ("self", "super"):
            here, path = (here[:-1] if path[0] == "super" else here), path[1:]
    if (here, tuple(path)) in seen or len(seen) > 12 or here not in crate:
        return None
    seen = (*seen, (here, tuple(path)))
    if not path:
        return crate[here].file
    module, name = crate[here], path[0]
    if name in module.children:
        return resolve(crate, module.children[name], path[1:], seen) or crate[module.children[name]].file
    if name in module.items:
        return module.file
    for _, target, local in module.uses:
        if local == name and target != path:
            if found := resolve(crate, here, target + path[1:], seen) or resolve(crate, here, target, seen):
                return found
    for _, target, local in module.uses:
        if local == "*" and (found := resolve(crate, here, target[:-1] + path, seen)):
            return found
    return None


def edges(crate):
    graph = {}
    for at, module in crate.items():
        out = graph.setdefault(module.file, set())
        named = []
        for public, target, local in module.uses:
            if not public and local != "*":
                named.append(target)
        for path in PATH.findall(module.body):
            named.append(path.split("::"))
        for word in set(re.findall(r"\b[A-Z]\w+\b|\b[a-z_]\w*(?=\()", module.body)):
            if word not in module.items and any(local == "*" for _, _, local in module.uses):
                named.append([word])
        for target in named:
            file = resolve(crate, at, target)
            if file and file != module.file:
                # A module that is named only on the way to its parts is no dependency by itself.
                whole = next((m for m in crate.values() if m.file == file), None)
                if whole and target[-1] == (whole.path[-1] if whole.path else "") and whole.children:
                    continue
                out.add(file)
    return graph


def circles(graph):
    """Strongly connected components of more than one file (Tarjan)."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while True:
                group.append(stack.pop())
                on.discard(group[-1])
                if group[-1] == node:
                    break
            if len(group) > 1:
                found.append(sorted(group))

    for node in graph:
        if node not in index:
            visit(node)
    return found


def knots(graph, source):
    """The circles between the files and directories of each directory, as (directory, {entry: {other entry: an example}})."""
    directories = {parent for file in graph for parent in file.parents if parent == source or source in parent.parents}
    for directory in sorted(directories):
        between = {}
        for file, others in graph.items():
            for other in others:
                if directory not in file.parents or directory not in other.parents:
                    continue
                entry, target = (path.relative_to(directory).parts[0] for path in (file, other))
                if entry != target:
                    between.setdefault(entry, {}).setdefault(target, (file, other))
                    between.setdefault(target, {})
        for group in circles(between):
            yield directory, {entry: {to: between[entry][to] for to in group if to in between[entry]} for entry in group}


def crowded():
    """Directories of the crates and of tests with too many files; the tests of a file may stand beside it."""
    for top in ("crates", "tests"):
        for directory in sorted(path for path in (ROOT / top).rglob("*") if path.is_dir()):
            files = sum(file.suffix in (".rs", ".py") and file.name != "tests.rs" for file in directory.iterdir())
            if files > MOST_FILES:
                yield f"{directory.relative_to(ROOT)} holds {files} files, {MOST_FILES} are enough"


def main():
    # A reader such as `head` may end early.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.setrecursionlimit(10_000)
    lists = "--circles" not in sys.argv[1:]
    wrong, total = list(crowded()), 0
    for folder in sorted((ROOT / "crates").iterdir()):
        source = folder / "src"
        top = next((source / name for name in ("lib.rs", "main.rs") if (source / name).exists()), None)
        if top is None:
            continue
        crate = {}
        load(top, (), crate)
        lines = sum(module.lines for module in crate.values())
        total += lines
        if lists:
            print(f"{folder.name:10} {lines:6} lines of code {len(crate):4} files {len(crate[()].public):4} names")
            rooms = {}
            for module in crate.values():
                rooms.setdefault(module.file.parent, []).append(module)
            for room, modules in sorted(rooms.items()):
                print(f"    {str(room.relative_to(source)):30} {sum(m.lines for m in modules):6} {len(modules):4}")
        graph = edges(crate)
        for group in circles(graph):
            wrong.append(f"{folder.name}: {len(group)} files in a circle:")
            for file in group:
                to = [str(other.relative_to(source)) for other in group if other in graph[file]]
                wrong.append(f"    {file.relative_to(source)} -> {', '.join(to)}")
        for directory, group in knots(graph, source):
            wrong.append(f"{directory.relative_to(ROOT)}: a knot of {len(group)} files and directories:")
            for entry, targets in sorted(group.items()):
                for target, (file, other) in sorted(targets.items()):
                    wrong.append(f"    {entry} -> {target}: {file.relative_to(directory)} names {other.relative_to(directory)}")
    if lists:
        print(f"{'together':10} {total:6} lines of code")
    print("\n".join(wrong) if wrong else "no circles, no knots, no crowded directory")
    sys.exit(bool(wrong))


main()
