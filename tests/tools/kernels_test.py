#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The compiler's report against the kernel tables: every row of every *_kernels.def has its kernel in
its module for each architecture, with no more registers than its budget and no spills; and what the packed
images of the memory-bound families come to. Needs a build with GPU kernels; without one every row is skipped."""
import glob
import os
import re
import sys

ROW = re.compile(r"^WD_KERNEL\((\w+),\s*[\w ]+,\s*(\d+),\s*(\d+),", re.M)
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
PROPERTIES = re.compile(r"Function properties for (\w+)")
# nvcc spills beside free registers, whatever the budget: bytes that are let pass.
EXCUSED = {
    ("gather_planes_f64_few", "sm_80"): 24,
    # five blocks a processor are what was timed; 128 registers, with four, were not (src/ops/pooling/README.md)
    ("maxima_warp_f16", "sm_80"): 136,
    ("maxima_warp_f16", "sm_90a"): 36,
    ("maxima_warp_bf16", "sm_80"): 16,
    ("maxima_warp_bf16", "sm_90a"): 36,
}
# Bytes of the packed images of all modules but those of matrix products and convolutions.
BUDGET = 8_000_000
OTHERS = ("conv_", "gemm_", "matmul_")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def report(path):
    """{(symbol, architecture): [registers, spilled bytes]} of one ptxas report."""
    found = {}
    entry = function = None
    with open(path, encoding="utf-8") as text:
        for line in text:
            if match := ENTRY.search(line):
                entry = function = match.group(1), match.group(2)
                found[entry] = [0, 0]
            elif match := PROPERTIES.search(line):
                function = entry if entry and match.group(1) == entry[0] else None
            elif (match := SPILLS.search(line)) and function:
                found[function][1] += int(match.group(1)) + int(match.group(2))
            elif (match := REGISTERS.search(line)) and entry:
                found[entry][0] = int(match.group(1))
                entry = function = None
    return found


def main():
    build = os.environ.get("WARPDNN_BUILD", "build")
    source = os.environ.get("WARPDNN_SOURCE", ".")
    passed = failed = skipped = 0
    with_kernels = bool(glob.glob(os.path.join(build, "kernels", "*.ptxas.txt")))
    for table in sorted(glob.glob(os.path.join(source, "src/**/*_kernels.def"), recursive=True)):
        module = os.path.basename(table)[: -len("_kernels.def")]
        with open(table, encoding="utf-8") as text:
            rows = ROW.findall(text.read())
        paths = glob.glob(os.path.join(build, "kernels", module + ".*.ptxas.txt"))
        if not rows:
            print(f"{table}: no rows")
            failed += 1
        if not paths:
            if with_kernels:
                print(f"{module}: its kernels have no report of the compiler's")
                failed += 1
            else:
                skipped += len(rows)
            continue
        found = {}
        for path in paths:
            found.update(report(path))
        for symbol, threads, budget in rows:
            mine = {arch: facts for (name, arch), facts in found.items() if name == "wd_" + symbol}
            wrong = [] if mine else ["not in the module"]
            for arch, (registers, spilled) in mine.items():
                if registers > int(budget):
                    wrong.append(f"{registers} registers on {arch}, the budget is {budget}")
                if spilled > EXCUSED.get((symbol.removeprefix("wd_"), arch), 0):
                    wrong.append(f"{spilled} bytes of spills on {arch}")
                if registers * int(threads) > 65536:
                    wrong.append(f"{threads} threads of {registers} registers do not fit {arch}")
            for text in wrong:
                print(f"{module}: {symbol}: {text}")
            failed += bool(wrong)
            passed += not wrong
    if with_kernels:
        images = glob.glob(os.path.join(build, "kernels", "*.packed"))
        size = sum(os.path.getsize(path) for path in images if not os.path.basename(path).startswith(OTHERS))
        fits = 0 < size <= BUDGET
        print(f"packed images: {size} bytes, the budget is {BUDGET}")
        passed += fits
        failed += not fits
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
