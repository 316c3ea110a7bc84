"""Arrows between the modules of the coordinator: which file uses which.

Usage: module_arrows.py [SOURCE]

`scripts/check-arrows` runs it. It fails if a module uses one of a layer above its own, if a module has
no layer, or if more than three files form a ring. Code of tests does not count. What a module exports
again counts as the module that defines it. SOURCE is a folder other than the coordinator's.
"""

import re
import sys
from pathlib import Path

SOURCE = Path(sys.argv[1] if sys.argv[1:] else Path(__file__).resolve().parents[2] / "coordinator/src")
LARGEST_RING = 3

# From the top: a module may use those of its own layer and of layers below. The longest prefix of
# a module's path says its layer; one that ends with :: is of the modules inside alone.
LAYERS = [
    ["cli"],
    ["commands"],
    # `api` itself is the router of everything.
    ["api", "pages", "server::scrape"],
    ["api::"],
    ["background", "intake", "ratings", "server", "storage_identity", "sweep", "trust"],
    ["alerts", "app", "archives", "concurrency", "events", "fleet", "live_boards", "notices", "worker_names"],
    ["db::database"],
    ["db::use_cases"],
    ["db::models"],
    ["db", "config", "random", "signing", "telemetry", "trust::compare"],
    # What knows no ledger.
    ["blobs", "clock", "config::addresses", "dataset", "disk_space", "limits", "openings", "panics", "tokens", "versions"],
    ["trust::draw", "trust::drift", "trust::pool", "trust::rate", "trust::verdict"],
]

USE = re.compile(r"\b(pub(?:\([^)]*\))? )?use ([^;]+);")
ITEM = re.compile(r"\b(?:struct|enum|trait|fn|type|const|static|mod|macro_rules!)\s+(\w+)")
INLINE = re.compile(r"\$?\b((?:crate|super|self)(?:::\w+)+)")


def module_of(file):
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return "::".join(parts[:-1] if parts[-1] == "mod" else parts)


def code_of(file):
    code = re.split(r"#\[cfg\(test\)\]\n(?:pub[^ ]* )?mod ", file.read_text())[0]
    return re.sub(r"//[^\n]*", "", code)


def expand(tree):
    """The paths of a use tree: `a::{b, c::d}` is `a::b` and `a::c::d`."""
    tree = re.sub(r"\s+as\s+\w+", "", tree.strip())
    group = re.fullmatch(r"([\w:]*?)(?:::)?\{(.*)\}", tree, re.S)
    if not group:
        return [tree]
    before, body = group.groups()
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(body):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            parts.append(body[begin:place])
            begin = place + 1
    parts.append(body[begin:])
    paths = [path for part in parts if part.strip() for path in expand(part)]
    joined = (f"{before}::{path}" if before else path for path in paths)
    return [re.sub(r"::self$", "", path) for path in joined]


class Modules:
    def __init__(self):
        files = [file for file in SOURCE.rglob("*.rs") if file.stem not in ("lib", "main", "tests")]
        self.code = {module_of(file): code_of(file) for file in files}
        self.items = {module: set(ITEM.findall(code)) for module, code in self.code.items()}
        self.exported = {module: {} for module in self.code}
        self.globs = {module: [] for module in self.code}
        for module, code in self.code.items():
            for public, tree in USE.findall(code):
                for path in expand(tree) if public else []:
                    self.export(module, self.absolute(module, path))

    def export(self, module, path):
        if path and path[-1] == "*":
            self.globs[module].append(path[:-1])
        elif path:
            self.exported[module][path[-1]] = path

    def absolute(self, module, path):
        """A path from the crate's root; nothing if it leads into another crate."""
        parts, here = path.split("::"), module.split("::")
        if parts[0] == "crate":
            return parts[1:]
        if parts[0] == "self":
            return here + parts[1:]
        if parts[0] == "super":
            while parts and parts[0] == "super":
                here, parts = here[:-1], parts[1:]
            return here + parts
        return here + parts if "::".join([*here, parts[0]]) in self.code else None

    def defining(self, path, seen=()):
        """The module that defines what a path names."""
        lengths = range(len(path), 0, -1)
        names = ("::".join(path[:length]) for length in lengths)
        module = next((name for name in names if name in self.code), None)
        rest = path[len(module.split("::")) :] if module else []
        if not rest or module in seen:
            return module
        again = self.exported[module].get(rest[0])
        if again:
            return self.defining(again + rest[1:], (*seen, module)) or module
        if rest[0] not in self.items[module]:
            for glob in self.globs[module]:
                target = self.defining(glob + rest, (*seen, module))
                if target and rest[0] in self.items[target]:
                    return target
        return module

    def arrows(self):
        arrows = {}
        for module, code in self.code.items():
            paths = [path for public, tree in USE.findall(code) if not public for path in expand(tree)]
            paths += INLINE.findall(USE.sub("", code))
            ways = (self.absolute(module, path) for path in paths)
            targets = {self.defining([part for part in way if part != "*"]) for way in ways if way}
            arrows[module] = targets - {module, None}
        return arrows


def layer(module):
    fits = [
        (len(prefix), place)
        for place, prefixes in enumerate(LAYERS)
        for prefix in prefixes
        if module == prefix or module.startswith(f"{prefix.removesuffix('::')}::")
    ]
    return max(fits)[1] if fits else None


def reached(arrows, begin):
    seen, left = set(), [begin]
    while left:
        for target in arrows[left.pop()] - seen:
            seen.add(target)
            left.append(target)
    return seen


def rings(arrows):
    reach = {module: reached(arrows, module) for module in arrows}
    found = {
        frozenset(other for other in reach[module] if module in reach[other])
        for module in arrows
        if module in reach[module]
    }
    return [sorted(ring) for ring in found]


def main():
    arrows = Modules().arrows()
    faults = []
    for module, targets in sorted(arrows.items()):
        if layer(module) is None:
            faults.append(f"{module} has no layer; give it one in {Path(__file__).name}")
        for target in sorted(targets):
            above, own = layer(target), layer(module)
            if None not in (above, own) and above < own:
                faults.append(f"{module} must not use {target}, which is of a layer above")
    for ring in sorted(rings(arrows)):
        if len(ring) > LARGEST_RING:
            faults.append(f"a ring of {len(ring)} files: {', '.join(ring)}")
    for fault in faults:
        print(f"arrows: coordinator: {fault}", file=sys.stderr)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
