#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The test runner itself: that a failure of any kind is one, and that cases are added up."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
CMOCKA = r"""printf '[==========] Running 3 test(s).\n[  PASSED  ] 2 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n'
"""
NEW_CMOCKA = r"""printf '[  PASSED  ] 2 test(s).\n[  FAILED  ] t: 1 test(s), listed below:\n[  FAILED  ] a\n'; exit 1
"""
# (scripts, last line, success)
RUNS = [
    (["echo 2 passed, 0 failed"], "2 passed, 0 failed", True),
    (["echo 2 passed, 0 failed", "echo 3 passed, 0 failed, 1 skipped"], "5 passed, 0 failed, 1 skipped", True),
    ([CMOCKA], "2 passed, 0 failed, 1 skipped", True),
    (["echo 1 passed, 0 failed", "exit 77"], "1 passed, 0 failed, 1 skipped", True),
    ([NEW_CMOCKA], "2 passed, 1 failed", False),
    (["echo 2 passed, 1 failed; exit 1"], "2 passed, 1 failed", False),
    (["echo 2 passed, 1 failed"], "2 passed, 1 failed", False),
    (["echo 2 passed, 0 failed; exit 3"], "2 passed, 1 failed", False),
    (["echo 2 passed, 0 failed; echo ========= ERROR SUMMARY: 0 errors"], "2 passed, 0 failed", True),
    (["echo 2 passed, 0 failed; echo ========= ERROR SUMMARY: 1 error; exit 99"], "2 passed, 1 failed", False),
    (["echo all is well"], "0 passed, 1 failed", False),
    (["kill -SEGV $$"], "0 passed, 1 failed", False),
    (["sleep 60 & sleep 60"], "0 passed, 1 failed", False),
    (["exit 77"], "0 passed, 0 failed, 1 skipped", False),
    ([], "0 passed, 1 failed", False),
]


# of programs on a list of cases: (program, its cases), pieces of so many, last line
PROGRAM = """#!/bin/sh
test "$WARPDNN_ENGINES" = '*' || exit 1
grep -q ' bad$' "$WARPDNN_TEST_CASES" && { echo "0 passed, 1 failed"; exit 1; }
echo "$(grep -c . "$WARPDNN_TEST_CASES") passed, 0 failed"
"""
LIST = "# cases\n*\ta_test\tone\n*\ta_test\ttwo\nnone\ta_test\tother\n*\tb_test\tone\n*\ta_test\tthree\n"
PIECES = [
    (LIST, 2, "4 passed, 0 failed", 3),
    (LIST, 1, "4 passed, 0 failed", 4),
    (LIST, 8, "4 passed, 0 failed", 2),
    (LIST + "*\tb_test\tis bad\n", 1, "4 passed, 1 failed", 5),
]


def piece_is_right(cases, each, wanted, processes):
    """Whether programs go by pieces of their cases of the list, with these engines, each in a process."""
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "tests"))
        os.makedirs(os.path.join(root, "build", "tests"))
        shutil.copy(os.path.join(ROOT, "tests", "run.py"), os.path.join(root, "tests"))
        open(os.path.join(root, "build", "CMakeCache.txt"), "w", encoding="utf-8").close()
        with open(os.path.join(root, "list.txt"), "w", encoding="utf-8") as file:
            file.write(cases)
        with open(os.path.join(root, "build", "tests", "manifest.txt"), "w", encoding="utf-8") as manifest:
            for name in ("a_test", "b_test", "c_test"):
                manifest.write(f"{name} tests/ops/{name}.c\n")
                program = os.path.join(root, "build", "tests", name)
                with open(program, "w", encoding="utf-8") as file:
                    file.write(PROGRAM)
                os.chmod(program, 0o755)
        run = subprocess.run([sys.executable, os.path.join(root, "tests", "run.py"), "--programs", "--engines", "*",
                              "--cases", os.path.join(root, "list.txt"), "--pieces", str(each)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = run.stdout.splitlines()
        states = [line for line in lines if line.startswith(("ok ", "FAILED "))]
        again = "WARPDNN_TEST_CASES=" in run.stdout  # what reruns one that failed
        if lines[-1] == wanted and len(states) == processes and again == (run.returncode != 0):
            return True
        print(f"pieces of {each}: wanted '{wanted}' by {processes}; status {run.returncode}, said\n{run.stdout}")
        return False


def main():
    passed = failed = 0
    for piece in PIECES:
        if piece_is_right(*piece):
            passed += 1
        else:
            failed += 1
    for scripts, wanted, success in RUNS:
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "tests", "some"))
            os.makedirs(os.path.join(root, "build", "tests"))
            shutil.copy(os.path.join(ROOT, "tests", "run.py"), os.path.join(root, "tests"))
            for name in ("build/tests/manifest.txt", "build/CMakeCache.txt"):
                open(os.path.join(root, name), "w", encoding="utf-8").close()
            for i, script in enumerate(scripts):
                with open(os.path.join(root, "tests", "some", f"s{i}_test.sh"), "w", encoding="utf-8") as file:
                    file.write(script + "\n")
            run = subprocess.run([sys.executable, os.path.join(root, "tests", "run.py"), "--timeout", "6"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            last = run.stdout.splitlines()[-1]
            if last == wanted and (run.returncode == 0) == success:
                passed += 1
            else:
                failed += 1
                print(f"{scripts}: wanted '{wanted}', success {success}; status {run.returncode}, said\n{run.stdout}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
