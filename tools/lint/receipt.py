#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The receipt of the last GPU run: which kernel sources ran on a GPU, where, with what result.

    receipt.py --write COUNTS   after ./dev gpu-check, with what failed: writes tests/gpu/receipt.json
    receipt.py                  lists kernel sources that changed since, or never ran

A kernel's source is its .cu file with everything that it includes, and what that includes, but for comments and
white space. Stale receipts are told, not failed: whoever changes a kernel may have no GPU at hand, whoever releases
must have had one."""
import glob
import hashlib
import json
import os
import re
import subprocess
import sys

RECEIPT = "tests/gpu/receipt.json"
INCLUDE = re.compile(r'^\s*#\s*(?:include\s+"([^"]+)"|define\s+WD_\w+\s+"([^"]+)")', re.M)
COMMENT_OR_TOKEN = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?\*/|("(?:\\.|[^"\\])*"|\w+|[^\w\s])', re.S)


def sources_of(path, found):
    """The file and, through them, all that it includes by name of the repository (also by a macro)."""
    if path in found or not os.path.exists(path):
        return found
    found.add(path)
    with open(path, encoding="utf-8") as f:
        for names in INCLUDE.findall(f.read()):
            for folder in ("src", "include", os.path.dirname(path)):
                sources_of(os.path.normpath(os.path.join(folder, names[0] or names[1])), found)
    return found


def kernel_hashes():
    hashes = {}
    for kernel in sorted(glob.glob("src/**/*.cu", recursive=True)):
        digest = hashlib.sha256()
        for source in sorted(sources_of(kernel, set())):
            with open(source, encoding="utf-8") as f:
                digest.update(" ".join(filter(None, COMMENT_OR_TOKEN.findall(f.read()))).encode())
        hashes[kernel] = digest.hexdigest()[:16]
    return hashes


def device():
    try:
        result = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                                capture_output=True, text=True, timeout=30)
        return result.stdout.strip().splitlines()[0] if result.returncode == 0 else "unknown"
    except (OSError, subprocess.TimeoutExpired, IndexError):
        return "unknown"


def main():
    if sys.argv[1:2] == ["--write"]:
        os.makedirs(os.path.dirname(RECEIPT), exist_ok=True)
        with open(RECEIPT, "w") as f:
            json.dump({"device": device(), "result": sys.argv[2], "kernels": kernel_hashes()}, f,
                      indent=1)
            f.write("\n")
        print(f"receipt: {RECEIPT}")
        return 0
    ran = {}
    if os.path.exists(RECEIPT):
        with open(RECEIPT) as f:
            ran = json.load(f)["kernels"]
    now = kernel_hashes()
    stale = [kernel for kernel, value in now.items() if ran.get(kernel) != value]
    for kernel in stale:
        print(f"   {kernel}: {'changed since it ran' if kernel in ran else 'never ran'} on a GPU")
    print(f"   {len(now) - len(stale)} of {len(now)} kernel files ran on a GPU as they are")
    return 0


if __name__ == "__main__":
    sys.exit(main())
