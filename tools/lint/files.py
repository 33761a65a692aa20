#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every file of the repository keeps: its length, its head, its words.

- 300 lines are pleasant, 500 a soft limit (reported), 1,000 a hard one (an error); public headers,
  .def files and data excepted.
- Source files open with an SPDX line and a short paragraph that says what the file is for.
- Instructions of a GPU (asm in .cu and .cuh) stand in src/gpu/device alone: tests/emulator has host versions.
- No path or name of a particular machine; no trailing white space, no tab in C; a newline at the end.

    tools/lint/files.py [ROOT]       prints what is wrong, exits 1 if anything is
"""
import os
import re
import subprocess
import sys

SOFT, HARD = 500, 1000
SOURCE = (".c", ".h", ".cu", ".cuh", ".inc", ".def", ".py", ".sh", ".cmake", ".S.in", ".cmake.in")
C_LIKE = (".c", ".h", ".cu", ".cuh", ".inc", ".def")
SOURCE_NAMES = ("dev", ".ci/run", "CMakeLists.txt")
TEXT = SOURCE + (".md", ".txt", ".csv", ".in", ".yml", ".json", ".svg", ".supp")
DATA = re.compile(r"(^include/.*\.h|\.def|\.csv|\.txt|\.json|\.jsonl|\.svg|\.gz|^LICENSE|^CHANGELOG\.md)$")
# Words of one workplace, spelled so that this file does not contain them.
WORDS = ("/wor" + "k/", "far" + "m-bench")
HEAD_LINES = 12
INSTRUCTION = re.compile(r"\basm\b|\bextern\s+__shared__")
DEVICE = re.compile(r"^src/gpu/device/")
# Machine code comes of PTX that knows nothing of them (cmake/cuda.cmake).
ONE_ARCH = re.compile(r"__CUDA_ARCH_(FEAT|HAS_FEATURE|SPECIFIC|FAMILY_SPECIFIC)")


def tracked(root):
    """Tracked and new files that git does not ignore, and that exist."""
    out = subprocess.run(["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],
                         check=True, stdout=subprocess.PIPE).stdout.decode()
    return sorted(p for p in set(out.split("\0")) if p and os.path.isfile(os.path.join(root, p))
                  and not os.path.islink(os.path.join(root, p)))


def head_faults(lines):
    head = lines[:HEAD_LINES]
    spdx = next((i for i, line in enumerate(head) if "SPDX-License-Identifier: Apache-2.0" in line), None)
    if spdx is None:
        return ["no line 'SPDX-License-Identifier: Apache-2.0' at the top"]
    # A paragraph: some words of prose in a comment or docstring right after the SPDX line.
    prose = " ".join(lines[spdx + 1:spdx + 8])
    first = next((line for line in lines[spdx + 1:] if line.strip(" \t*/#\r\n")), "")
    if not re.match(r'\s*(\*|/\*|//|#(?!include|define|pragma|if|!)|"""|r""")', first) \
            or len(re.findall(r"[A-Za-z]{2,}", prose)) < 4:
        return ["no paragraph after the SPDX line that says what the file is for"]
    return []


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    root = os.path.realpath(root)
    faults, long_files, checked = [], [], 0
    for path in tracked(root):
        source = path.endswith(SOURCE) or path in SOURCE_NAMES
        if not source and not path.endswith(TEXT):
            continue
        checked += 1
        with open(os.path.join(root, path), encoding="utf-8", errors="replace", newline="") as text:
            content = text.read()
        lines = content.split("\n")
        count = len(lines) - 1 if content.endswith("\n") else len(lines)
        say = lambda what, number=None: faults.append(  # noqa: E731
            f"{path}:{number}: {what}" if number else f"{path}: {what}")
        if not DATA.search(path) and source:
            if count > HARD:
                say(f"{count} lines; more than {HARD} is an error, split the file")
            elif count > SOFT:
                long_files.append((count, path))
        if source:
            for what in head_faults(lines):
                say(what)
            if content and not content.endswith("\n"):
                say("no newline at the end")
        for number, line in enumerate(lines, 1):
            for word in WORDS:
                if word in line:
                    say(f"'{word}' is a word of one particular machine", number)
            if source and line.rstrip("\r") != line.rstrip():
                say("white space at the end of the line", number)
            if source and "\r" in line:
                say("carriage return", number)
            if path.endswith((".cu", ".cuh")) and INSTRUCTION.search(line) and not DEVICE.search(path):
                say("an instruction outside of src/gpu/device", number)
            if path.endswith(C_LIKE) and ONE_ARCH.search(line):
                say("asks for what one architecture alone has, which cmake/cuda.cmake has no rule for", number)
            if path.endswith(C_LIKE) and "\t" in line:
                say("tab", number)
    for line in faults:
        print(line)
    for count, path in sorted(long_files, reverse=True):
        print(f"{path}: {count} lines, over the soft limit of {SOFT} (no error)")
    print(f"files: {checked} read, {len(faults)} wrong, {len(long_files)} over {SOFT} lines")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
