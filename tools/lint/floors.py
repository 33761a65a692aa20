#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The floor check: who may include whom.

    api -> plan -> ops -> graph -> gpu | cpu -> base

A file includes from its own floor and from floors to the right. gpu and cpu do not know each other.
Families in ops/ do not include each other's headers, except for what is made to be shared: arguments,
definitions and loops over blocks (*_args.h, *_def.h, *_block.h, *_block.cuh). Programs on the public API (examples, tools
and some test folders) and oracles of tests keep out of the library's inside.

    tools/lint/floors.py [ROOT]      prints what is wrong, exits 1 if anything is
"""
import os
import re
import sys

FLOOR = {"api": 0, "plan": 1, "ops": 2, "graph": 3, "gpu": 4, "cpu": 4, "base": 5}
PUBLIC_ONLY = ("examples/", "tests/api/", "tests/gpu/", "tests/golden/", "tests/clients/", "tools/")
OF_THE_BUILD = "tools/pack/"
FOR_ANYONE = {"src/gpu/arch.h"}  # rules of CUDA's, not of the library
GENERATED = {"build_id.h"}
SUFFIXES = (".c", ".h", ".cu", ".cuh", ".inc", ".def")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def files_under(root, top):
    for folder, _, names in os.walk(os.path.join(root, top)):
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                yield os.path.relpath(os.path.join(folder, name), root)


def includes(root, path):
    """Each include: its line, its name, and whether the file itself asks if it is there."""
    with open(os.path.join(root, path), encoding="utf-8") as text:
        lines = text.read().split("\n")
    asked = set(re.findall(r'__has_include\("([^"]+)"\)', "\n".join(lines)))
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(1) in asked


def resolve(root, path, name):
    """The path, from the root, of what `#include "name"` in `path` means; None if there is none."""
    own = os.path.dirname(path)
    for folder in (own, "src", "include", "tests"):
        candidate = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def family(path):
    parts = path.split("/")
    return parts[2] if len(parts) > 3 and parts[1] == "ops" else None


def fault(path, target):
    """Why the file `path` may not include `target`, or None."""
    if target.startswith("src/"):
        if path.startswith("include/"):
            return "a public header includes a private one"
        if path.startswith(PUBLIC_ONLY) and not path.startswith(OF_THE_BUILD) and target not in FOR_ANYONE:
            return "this folder uses the public API alone"
        if path.startswith("tests/") and "oracle" in path and target.startswith("src/ops/"):
            return "an oracle shares nothing with the definitions"
    if not path.startswith("src/"):
        return None
    if target.startswith("tests/"):
        return "the library includes a file of its tests"
    if not target.startswith("src/"):
        return None
    floor, other = path.split("/")[1], target.split("/")[1]
    for name, where in ((floor, path), (other, target)):
        if name not in FLOOR:
            return f"{where} is on no floor (floors: {', '.join(FLOOR)})"
    if FLOOR[other] < FLOOR[floor] or {floor, other} == {"gpu", "cpu"}:
        return f"{floor} may not include from {other}"
    mine, theirs = family(path), family(target)
    if mine and theirs and mine != theirs and not target.endswith(("_args.h", "_def.h", "_block.h", "_block.cuh")):
        return f"the family {mine} includes the family {theirs} (only *_args.h, *_def.h and *_block.h, *_block.cuh are shared)"
    return None


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    root = os.path.realpath(root)
    checked = wrong = 0
    for top in ("src", "include", "tests", "bench", "examples", "tools"):
        for path in files_under(root, top):
            checked += 1
            if top == "src" and (path.count("/") < 2 or path.split("/")[1] not in FLOOR):
                print(f"{path}: on no floor (floors: {', '.join(FLOOR)})")
                wrong += 1
            for number, name, optional in includes(root, path):
                target = resolve(root, path, name)
                if target:
                    why = fault(path, target)
                elif optional or name in GENERATED:
                    why = None
                else:
                    why = "not found in src/, include/ or the file's own folder"
                if why:
                    print(f'{path}:{number}: #include "{name}": {why}')
                    wrong += 1
    print(f"floors: {checked} files, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
