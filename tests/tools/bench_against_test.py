#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate of `warpdnn bench --against`: rows of made-up times against made-up runs. What is within the
noise passes, what is beyond it does not; rows that are new, gone or refused; runs that do not compare;
files that are cut, foreign or no JSON."""
import json
import os
import sys

import warpdnn_tool as tool
from warpdnn_tool import SOURCE, run

FINE, SLOWER, NOTHING, MISFIT, UNREAD = 0, 1, 2, 8, 9
DEVICE = "a device"


def old_run(w, rows, name="old.json", **facts):
    data = {"warpdnn_bench": 2, "device": DEVICE, "time": "clock", **facts, "rows": [
        {"family": "pooling", "problem": problem, "engine": engine, "ours_us": time}
        for problem, time, engine in rows]}
    return w.write(name, json.dumps(data))


def test_gate(t, program, w):
    old = old_run(w, [("a", 100.0, "an_engine"), ("b", 2.0, "other_engine"), ("c", None, "an_engine")])

    def gate(name, want, words, rows, noise="3", device=DEVICE):
        arguments = [word for row in rows for word in ("pooling", *row)]
        status, out, err = run([program, old, noise, device, *arguments])
        t.check(name, status == want and words in out + err, (status, out, err))
        return out, err

    _, err = gate("the same", FINE, "2 rows, 0 slower, 0 faster", [("a", "100"), ("b", "2")])
    t.check("nothing is timed again", "again" not in err, err)
    gate("within the noise", FINE, "0 slower", [("a", "102.9"), ("b", "2.059")])
    out, err = gate("beyond it", SLOWER, "pooling a: 103.10 us, was 100.00 (+3.1%)", [("a", "103.1"), ("b", "2")])
    t.check("that row is timed again", err == "again: a\n", err)
    t.check("the other is not named", "pooling b" not in out and "2 rows, 1 slower" in out, out)
    gate("an engine that changed is named", SLOWER, "engine was other_engine", [("b", "2.1")])
    gate("one row is enough, however fast the others", SLOWER, "1 slower, 1 faster", [("a", "1"), ("b", "2.1")])
    gate("faster", FINE, "0 slower, 1 faster by more than 3%", [("a", "90"), ("b", "2")])
    gate("another noise", FINE, "more than 10%", [("a", "109.9")], noise="10")
    gate("no noise", SLOWER, "1 slower", [("a", "100.01")], noise="0")
    gate("no noise, the same", FINE, "0 slower", [("a", "100")], noise="0")
    gate("refused now", SLOWER, "ran before, is refused now", [("a", "0"), ("b", "2")])
    gate("all refused now", SLOWER, "ran before", [("a", "0")])
    gate("new and gone", FINE, "1 rows are new, 1 of the older run are not in this one",
         [("a", "100"), ("new", "5")])
    gate("what was refused before is new", FINE, "1 rows are new", [("a", "100"), ("c", "7")])
    gate("nothing in common", NOTHING, "0 rows", [("new", "5")])
    gate("nothing measured", NOTHING, "2 of the older run", [])
    gate("the mean", FINE, "geometric mean 0.500", [("a", "50"), ("b", "1")])
    gate("another device", MISFIT, "their times do not compare", [("a", "100")], device="other")
    old = old_run(w, [("a", 100.0, "an_engine")], time="processors")
    gate("another clock", MISFIT, "--processor-time", [("a", "100")])


def test_files(t, program, w):
    good = old_run(w, [("a", 100.0, "an_engine"), ("b", 2.0, "an_engine")], host=[{"x": 1}])
    with open(good, encoding="utf-8") as file:
        text = file.read()

    def read(name, content, want=UNREAD, words=""):
        path = w.write("file.json", content)
        status, out, err = run([program, path, "3", DEVICE, "pooling", "a", "100"])
        t.check(f"{name}: {want}", status == want and words in err and (want != UNREAD or err), (status, out, err))

    read("whole", text, FINE)
    read("other fields and orders", text.replace('"time"', '"rows2": [[{"ours_us": 3}]], "time"'), FINE)
    for at in range(0, len(text)):
        status, _, err = run([program, w.write("cut.json", text[:at]), "3", DEVICE, "pooling", "a", "100"])
        if status != UNREAD or "cut.json:1: " not in err:
            t.check(f"cut at {at}", False, (status, err))
            break
    else:
        t.check("cut anywhere", True)
    for name, content, words in (
            ("empty", "", ":1: a value is wanted"), ("text", "hello", "a value is wanted"),
            ("a list", "[]", "no run of warpdnn_bench"), ("a string", '"x"', "no run of"),
            ("another tool's", '{"version": 1, "benchmarks": []}', "no run of"),
            ("another version", text.replace('bench": 2', 'bench": 1'), "another version"),
            ("two", text + text, "more behind"), ("deep", "[" * 5000, "too deep"),
            ("not a number", text.replace("100.0", "NaN"), "a value is wanted"),
            ("no end of numbers", text.replace("100.0", "1e999"), "a value is wanted"),
            ("binary", b"\x7fELF\x00\x01\x02", "a value is wanted"),
            ("zeroes", b"\x00" * 4096, "a value is wanted"),
            ("line 3", '{\n"a": 1,\n"b" 2}', ":3: a ':' is wanted")):
        read(name, content, words=words)
    long = "x" * 5000
    read("long names", json.dumps({"warpdnn_bench": 2, "device": DEVICE, "rows": [
        {"family": long, "problem": long, "engine": long, "ours_us": 1}]}), NOTHING)
    read("rows of nothing", json.dumps({"warpdnn_bench": 2, "device": DEVICE, "rows": [{}, 3, None, "a"]}), NOTHING)
    for path, words in (("/no/such/file", "No such file"), (w.folder, "Is a directory"),
                        ("/dev/zero", "File too large"), ("/dev/null", "a value is wanted")):
        status, _, err = run([program, path, "3", DEVICE])
        t.check(f"{path} is no run", status == UNREAD and words in err, (status, err))
    status, out, err = run(["sh", "-c", f"cat '{good}' | '{program}' /dev/stdin 3 '{DEVICE}' pooling a 100"])
    t.check("through a pipe", status == FINE, (status, out, err))


def main():
    t = tool.Checks()
    tool.stop_without(t)
    with tool.World() as w:
        bench = os.path.join(SOURCE, "bench")
        text = f'#include "{os.path.join(SOURCE, "tests", "tools", "bench_against.c")}"\n'
        program = w.compile("bench_against", text, "-std=c11", "-D_GNU_SOURCE", "-I" + os.path.join(SOURCE, "include"),
                            *[os.path.join(bench, name + ".c")
                              for name in ("against", "json_read", "output", "result")], "-lm")
        test_gate(t, program, w)
        test_files(t, program, w)
    return t.finish()


if __name__ == "__main__":
    sys.exit(main())
