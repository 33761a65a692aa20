#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The small list: few cheap cases that together launch every kernel, for compute-sanitizer.

    tests/gpu/small_list.py LAUNCHES >tests/gpu/small_list.txt
    tests/gpu/small_list.py --check LAUNCHES FAMILY...

LAUNCHES is what cases left on the fake driver (WARPDNN_TEST_LAUNCHES, tests/support/harness_list.c); all of it:

    for engines in '*' none 'resample_*_walk,resample_*_vector' 'bn_*_chip,bn_*_cluster,bn_*_vector' 'bn_*_cluster'; do
        WARPDNN_TEST_LAUNCHES=/tmp/launches tests/run.py --fake-gpu --programs --folder ops --engines "$engines"
    done

and of engines that have not run on a device, the programs of their own (tests/fake_driver), with '*,untried'.

Lines behind the last comment were added by hand: keep them where the list is made anew.

A kernel is launched by TIMES cases of the list where there are so many that are cheap, and by one at least.
--check names the kernels in the families' tables that no case of LAUNCHES launches, or none of the list,
cases of the list that there are no more, and cases for untried engines where no engine is; its status is 1 where
there are some."""
import collections
import glob
import os
import re
import sys

TIMES = 2
CHEAP = 0.1     # seconds in the emulator: a case that costs more is chosen for what no other reaches
CASE = 0.02     # what each case costs, and what a program does
START = 2.0
ROW = re.compile(r"^WD_KERNEL\((\w+),", re.M)
HERE = os.path.dirname(os.path.realpath(__file__))
LIST = os.path.join(HERE, "small_list.txt")


def read(path):
    """{(engines, program, case): (seconds, kernels)}"""
    cases = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            engines, program, case, seconds, kernels = line.rstrip("\n").split("\t")
            cases[engines, program, case] = float(seconds), frozenset(kernels.split())
    return cases


def read_list():
    with open(LIST, encoding="utf-8") as lines:
        return {tuple(line.rstrip("\n").split("\t")) for line in lines if not line.startswith("#")}


def counts(cases, chosen):
    return collections.Counter(kernel for case in chosen for kernel in cases[case][1])


def choose(cases):
    """Greedy: next the case that launches most of what is wanted, for its seconds."""
    chosen = []
    started = set()
    kernels = frozenset().union(*(item[1] for item in cases.values()))

    def worth(case):
        cost = CASE + cases[case][0] + (0 if case[:2] in started else START)
        return len(cases[case][1] & wanted) / cost
    for times in range(1, TIMES + 1):
        have = counts(cases, chosen)
        wanted = {kernel for kernel in kernels if have[kernel] < times}
        left = sorted(set(cases) - set(chosen))
        if times > 1:
            left = [case for case in left if cases[case][0] <= CHEAP]
        while left := [case for case in left if cases[case][1] & wanted]:
            best = max(left, key=worth)
            chosen.append(best)
            started.add(best[:2])
            wanted -= cases[best][1]
    # what the first choices launched once, later ones may have TIMES times
    have = counts(cases, chosen)
    for case in sorted(chosen, key=lambda case: -cases[case][0]):
        if all(have[kernel] > TIMES for kernel in cases[case][1]):
            have.subtract(cases[case][1])
            chosen.remove(case)
    return sorted(chosen)


def has_untried():
    for path in glob.glob(os.path.join(HERE, "../../src/ops", "**", "*.c"), recursive=True):
        with open(path, encoding="utf-8") as text:
            if "untried = true" in text.read():
                return True
    return False


def check(path, families):
    cases = read(path)
    listed = read_list() & set(cases)
    launched, small = counts(cases, cases), counts(cases, listed)
    ran = {case[:2] for case in cases}
    stale = [case for case in sorted(read_list() - set(cases)) if case[:2] in ran]
    for case in stale:
        print(f"{os.path.basename(LIST)} has a case that there is not: {' '.join(case)}")
    missing = len(stale)
    if any("untried" in case[0] for case in read_list()) and not has_untried():
        print(f"{os.path.basename(LIST)} has cases for untried engines, and no engine is untried")
        missing += 1
    for family in families:
        for table in sorted(glob.glob(os.path.join(HERE, "../../src/ops", family, "*_kernels.def"))):
            with open(table, encoding="utf-8") as text:
                symbols = ["wd_" + symbol for symbol in ROW.findall(text.read())]
            for symbol in symbols:
                if not launched[symbol]:
                    print(f"no case launches {symbol}")
                elif not small[symbol]:
                    print(f"no case of {os.path.basename(LIST)} launches {symbol}")
                missing += not small[symbol]
    return 1 if missing else 0


def main():
    arguments = sys.argv[1:]
    if len(arguments) > 2 and arguments[0] == "--check":
        return check(arguments[1], arguments[2:])
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    cases = read(arguments[0])
    chosen = choose(cases)
    print("# Cases that launch every kernel: engines, program, case. small_list.py chose them.")
    for case in chosen:
        print("\t".join(case))
    print(f"{len(chosen)} of {len(cases)} cases, {sum(cases[case][0] for case in chosen):.0f} s in the emulator, "
          f"{len(counts(cases, chosen))} kernels and steps of definitions", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
