#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run clang-tidy on the files named on standard input, a few at a time.

With a limit, no file is started after that many seconds; what was left out is said, not hidden. --quick leaves
clang's analyzer out, which takes 97% of the time.

    tools/lint/tidy.py --build FOLDER [--limit SECONDS] [--jobs N] [--quick] < list-of-files
"""
import argparse
import concurrent.futures
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--limit", type=float, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    paths = sys.stdin.read().split()
    start = time.monotonic()

    def tidy(path):
        if args.limit and time.monotonic() - start > args.limit:
            return None
        # gcc's flags that clang does not know are no finding.
        run = subprocess.run(["clang-tidy", "--quiet", "-p", args.build,
                              "--extra-arg=-Wno-unknown-warning-option",
                              "--extra-arg=-Wno-ignored-optimization-argument",
                              *(["--checks=-clang-analyzer-*"] if args.quick else []), path],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return path, run.returncode, run.stdout, run.stderr

    wrong = left = done = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool:
        for result in pool.map(tidy, paths):
            if result is None:
                left += 1
                continue
            path, code, out, err = result
            done += 1
            if code:
                wrong += 1
                print(out.strip() or f"{path}: clang-tidy fails: {err.strip()}")
    if left:
        print(f"clang-tidy: {left} files left out for lack of time (./dev lint --all reads them)")
    print(f"clang-tidy{' without its analyzer' if args.quick else ''}: {done} files, {wrong} with findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
