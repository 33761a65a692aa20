#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the tests of one build folder, and count their cases.

Programs are those of BUILD/tests/manifest.txt (tests/F/X_test.c); scripts are tests/F/X_test.py and
X_test.sh. Each prints either cmocka's output or a last line `N passed, N failed[, N skipped]`; one
that reports no case, crashes, or runs out of time has failed. A failure is shown in full with the
command that reruns it. The last line is `N passed, N failed[, N skipped]`, in cases; the exit status
is 0 only if something passed and nothing failed.

    tests/run.py [--build build] [--folder F]... [--exclude F]... [--only TEXT] [--gpu|--fake-gpu] [--quick]
                 [--sample N] [--cases FILE [--pieces N]] [--engines LIST] [--under COMMAND]

Tests see: WARPDNN_BUILD and WARPDNN_SOURCE (absolute folders); WARPDNN_TEST_QUICK=1 under --quick,
where a long test does a tenth of its random cases; WARPDNN_TEST_SAMPLE=N under --sample, in programs of operations
alone, which run every N-th case, more or less; WARPDNN_TEST_CASES=FILE under --cases, where only the
cases that the file lists for these engines run, and programs that have some (by pieces of N cases of one, side by side,
under --pieces); WARPDNN_ENGINES=LIST under --engines;
WARPDNN_DEVICE=gpu under --gpu and, with the fake driver, --fake-gpu. Other variables of the library's
are taken away, and without --gpu no real GPU is visible. Folders `gpu` run under --gpu only.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$")
CMOCKA = re.compile(r"^\[  (PASSED |FAILED |SKIPPED) \] (?:.*: )?(\d+) test\(s\)", re.M)
SAMPLED = ("ops", "fake_driver")
GPU_FOLDERS = ("gpu", "ops", "api", "golden", "clients")
# where no run has said it yet
LONG = ("ops_norm", "ops_softmax_shapes", "ops_lrn", "ops_pointwise", "ops_spatial_sampler")


class Result:
    def __init__(self, test):
        self.test = test
        self.passed = self.failed = self.skipped = 0
        self.seconds = 0.0
        self.why = ""       # what is wrong with the run as a whole
        self.output = ""


class Test:
    def __init__(self, name, path, command, folder, cases=None):
        self.name, self.path, self.command, self.folder = name, path, command, folder
        self.cases = cases  # a list of its own


def programs_of(path, engines):
    """The programs of a list of cases that have some with these engines (tests/support/harness_list.c), and their lines."""
    programs = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = line.split("\t")
            if not line.startswith("#") and row[0] == engines:
                programs.setdefault(row[1], []).append(line.rstrip("\n") + "\n")
    return programs


def in_pieces(tests, having, args):
    """Each program as several tests of so many cases at most. Their lists stay in the build folder, to be run again."""
    folder = os.path.join(args.build, "tests", "pieces")
    os.makedirs(folder, exist_ok=True)
    pieces = []
    for test in tests:
        lines = having[test.name]
        for first in range(0, len(lines), args.pieces):
            cases = os.path.join(folder, f"{test.name}.{first}.txt")
            with open(cases, "w", encoding="utf-8") as of_piece:
                of_piece.writelines(lines[first:first + args.pieces])
            name = f"{test.name}:{first + 1}-{min(first + args.pieces, len(lines))}"
            pieces.append(Test(name, test.path, test.command, test.folder, cases))
    return pieces


def find_tests(args):
    tests = []
    manifest = os.path.join(args.build, "tests", "manifest.txt")
    if not os.path.isfile(manifest):
        print(f"{manifest} is not there: build first (./dev build; tests need cmocka, libcmocka-dev)")
        return []
    if not args.programs:
        for kind, start in (("py", [sys.executable]), ("sh", ["sh"])):
            pattern = os.path.join(SOURCE, "tests", "**", f"*_test.{kind}")
            for script in sorted(glob.glob(pattern, recursive=True)):
                path = os.path.relpath(script, SOURCE)
                name = path[len("tests/"):].rsplit(".", 1)[0].replace("/", "_")
                tests.append(Test(name, path, start + [script], path.split("/")[1]))
    with open(manifest, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                name, path = line.split()
                program = os.path.join(args.build, "tests", name)
                tests.append(Test(name, path, [program], path.split("/")[1]))

    having = programs_of(args.cases, args.engines or "") if args.cases else None

    def wanted(test):
        if having is not None and test.name not in having:
            return False
        if args.only and args.only not in test.name:
            return False
        if test.folder in args.exclude:
            return False
        if args.folder:
            return test.folder in args.folder
        return test.folder in GPU_FOLDERS if args.gpu else test.folder != "gpu"
    tests = [test for test in tests if wanted(test)]
    return in_pieces(tests, having, args) if args.pieces and having is not None else tests


def seconds_file(args):
    return os.path.join(args.build, "tests", "seconds.json")


def known_seconds(args):
    try:
        with open(seconds_file(args), encoding="utf-8") as known:
            return json.load(known)
    except (OSError, ValueError):
        return {}


def longest_first(tests, args):
    """Short tests fill the gaps: by what they took the last time."""
    seconds = known_seconds(args)

    def guess(test):
        script = not test.command[0].startswith(args.build)
        return seconds.get(test.name, 60.0 if script or test.name.startswith(LONG) else 0.0)
    return sorted(tests, key=guess, reverse=True)


def keep_seconds(results, args):
    seconds = known_seconds(args)
    seconds.update((r.test.name, round(r.seconds, 1)) for r in results)
    try:
        with open(seconds_file(args), "w", encoding="utf-8") as known:
            json.dump(seconds, known)
    except OSError:
        pass  # the next run goes by its guesses


def cached(build, key):
    path = os.path.join(build, "CMakeCache.txt")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as cache:
        match = re.search(rf"^{key}:\w+=(.*)$", cache.read(), re.M)
    return match.group(1) if match else ""


def environment(args):
    """The environment of the tests: ours added, what would change the library's ways removed."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith("CUDNN_") and key not in ("LD_PRELOAD", "LD_LIBRARY_PATH")
           and (not key.startswith("WARPDNN_") or key.startswith("WARPDNN_TEST_"))}
    ours = {"WARPDNN_BUILD": args.build, "WARPDNN_SOURCE": SOURCE}
    if args.gpu or args.fake_gpu:
        ours["WARPDNN_DEVICE"] = "gpu"
    if args.fake_gpu:
        ours["WARPDNN_CUDA_DRIVER"] = os.path.join(args.build, "tests", "libfakecuda.so")
        ours.update(FAKECUDA_REPORT="1", FAKECUDA_DEVICES="1", FAKECUDA_MEMORY_MIB="16384")
    if not args.gpu:
        ours["CUDA_VISIBLE_DEVICES"] = ""
    if args.engines:
        ours["WARPDNN_ENGINES"] = args.engines
    if args.quick:
        ours["WARPDNN_TEST_QUICK"] = "1"
    if args.sample > 1:
        ours["WARPDNN_TEST_SAMPLE"] = str(args.sample)
    if args.cases:
        ours["WARPDNN_TEST_CASES"] = os.path.abspath(args.cases)
    sanitizers = cached(args.build, "WARPDNN_SANITIZE")
    support = os.path.join(SOURCE, "tests", "support")
    if "address" in sanitizers:
        ours["ASAN_OPTIONS"] = "detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1"
        ours["LSAN_OPTIONS"] = f"suppressions={support}/lsan.supp:print_suppressions=0"
    if "undefined" in sanitizers:
        ours["UBSAN_OPTIONS"] = "print_stacktrace=1"
    if "thread" in sanitizers:
        ours["TSAN_OPTIONS"] = (f"suppressions={support}/tsan.supp:second_deadlock_stack=1:"
                                "ignore_noninstrumented_modules=1")
        # The OpenMP runtime tells the sanitizer of its barriers through this tool.
        archer = sorted(glob.glob("/usr/lib/llvm-*/lib/libarcher.so"))
        if archer:
            ours["OMP_TOOL_LIBRARIES"] = archer[-1]
    # Test programs run beside each other: threads that wait must not spin.
    ours["OMP_WAIT_POLICY"] = "passive"
    env.update(ours)
    prefix = shlex.split(args.under)
    if "thread" in sanitizers and shutil.which("setarch"):
        prefix += ["setarch", platform.machine(), "-R"]  # old thread sanitizers need a fixed layout
    return env, ours, prefix


def of_test(variables, test):
    """What of the tests' variables this one sees: programs with few cases run them all."""
    seen = {key: value for key, value in variables.items()
            if key != "WARPDNN_TEST_SAMPLE" or test.folder in SAMPLED}
    if test.cases:
        seen["WARPDNN_TEST_CASES"] = test.cases
    return seen


def count(result, code, expired, timeout):
    # after the last line of a test a sanitizer that it runs under may still speak
    lines = [line for line in result.output.splitlines() if line.strip() and not line.startswith("========= ")]
    match = COUNTS.match(lines[-1]) if lines else None
    if match:
        result.passed, result.failed = int(match.group(1)), int(match.group(2))
        result.skipped = int(match.group(3) or 0)
    else:
        for word, number in CMOCKA.findall(result.output):
            field = word.strip().lower()
            setattr(result, field, getattr(result, field) + int(number))
    if expired:
        result.why = f"ran past its limit of {timeout} s"
    elif code < 0:
        try:
            result.why = f"killed by {signal.Signals(-code).name}"
        except ValueError:
            result.why = f"killed by signal {-code}"
    elif code == 77 and not match:
        result.skipped = max(result.skipped, 1)
    elif code != 0 and not result.failed:
        result.why = f"exit status {code}"
    elif not result.passed and not result.failed and not result.skipped:
        result.why = "reported no test case"
    if result.why:
        result.failed += 1


def run(test, env, prefix, timeout):
    result = Result(test)
    start = time.monotonic()
    expired = False
    with tempfile.TemporaryFile() as out:
        try:
            process = subprocess.Popen(prefix + test.command, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, env=env, cwd=SOURCE,
                                       start_new_session=True)
        except OSError as error:
            result.why, result.failed = str(error), 1
            return result
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            expired = True
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        out.seek(0)
        result.output = out.read().decode(errors="replace")
    result.seconds = time.monotonic() - start
    count(result, code, expired, timeout)
    return result


def text_of_counts(passed, failed, skipped):
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def main():
    parser = argparse.ArgumentParser(description="Run WarpDNN's tests.")
    parser.add_argument("--build", default=os.path.join(SOURCE, "build"), help="build folder")
    parser.add_argument("--folder", action="append", default=[], help="only tests/FOLDER")
    parser.add_argument("--exclude", action="append", default=[], help="not tests/FOLDER")
    parser.add_argument("--only", help="only tests whose name contains this")
    parser.add_argument("--programs", action="store_true", help="no scripts")
    parser.add_argument("--gpu", action="store_true", help="the GPU tests, on a real GPU")
    parser.add_argument("--fake-gpu", action="store_true", help="on the fake driver, in place of a GPU")
    parser.add_argument("--engines", help="WARPDNN_ENGINES for the tests ('none': definitions alone)")
    parser.add_argument("--sample", type=int, default=1, help="every N-th case, more or less")
    parser.add_argument("--cases", help="only the cases of this list")
    parser.add_argument("--pieces", type=int, default=0, help="so many cases of the list at most for each process")
    parser.add_argument("--under", default="", help="a command that runs each test (a sanitizer)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the random cases")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--timeout", type=int, default=1500, help="seconds for one program (1500)")
    parser.add_argument("--list", action="store_true", help="list the tests and stop")
    parser.add_argument("--tally", help="append 'passed failed skipped' to this file")
    args = parser.parse_args()
    if args.pieces < 0 or (args.pieces and not args.cases):
        parser.error("--pieces is a number of cases, of those of --cases")
    args.build = os.path.realpath(args.build)
    tests = longest_first(find_tests(args), args)
    if args.list:
        for test in tests:
            print(f"{test.name:40} {test.path}")
        return 0

    env, ours, prefix = environment(args)
    results = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(args.jobs, 1)) as pool:
        futures = [pool.submit(run, test, of_test(env, test), prefix, args.timeout) for test in tests]
        for future in concurrent.futures.as_completed(futures):
            result = future.result()
            results.append(result)
            state = "FAILED" if result.failed else "ok    " if result.passed else "skip  "
            counts = text_of_counts(result.passed, result.failed, result.skipped)
            print(f"{state} {result.test.name:36} {counts}  ({result.seconds:.1f} s)", flush=True)

    keep_seconds(results, args)
    for result in results:
        if not result.failed:
            continue
        settings = [f"{key}={shlex.quote(value)}" for key, value in of_test(ours, result.test).items()]
        print(f"\n---- {result.test.name} ({result.test.path}): "
              f"{result.why or str(result.failed) + ' failed'}")
        print(result.output.rstrip())
        print("rerun: " + " ".join(settings + [shlex.quote(w) for w in prefix + result.test.command]))
    passed = sum(r.passed for r in results)
    failed = sum(r.failed for r in results)
    skipped = sum(r.skipped for r in results)
    if not results:
        print("no test matches" if args.only or args.folder else "there are no tests")
        failed = 1  # a run that tests nothing is no success
    if args.tally:
        with open(args.tally, "a", encoding="utf-8") as tally:
            tally.write(f"{passed} {failed} {skipped}\n")
    print(text_of_counts(passed, failed, skipped))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
