#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the bench begins and ends: numbers that are none, outputs that cannot be written, full disks, ^C and
kill in the middle, libraries that are not what they are named as. What was measured is kept, an older
file is never lost, and the exit status says what happened."""
import csv
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import bench_test as bench
import warpdnn_tool as tool
from warpdnn_tool import CUDA_LIBRARY, FAKE_DRIVER, LIBRARY

FINE, BAD_ROWS, CANNOT_RUN = bench.FINE, bench.BAD_ROWS, bench.CANNOT_RUN
ROWS = ["--cpu", "--family", "softmax", "--only", "64x1", "--random", "0", *bench.SHORT]
FAKE = {"WARPDNN_CUDA_DRIVER": FAKE_DRIVER, "FAKECUDA_DEVICES": "1", "FAKECUDA_MEMORY_MIB": "128",
        "WARPDNN_ENGINES": "none"}


def run(*arguments, env=None, **more):
    return tool.run([bench.BENCH, *arguments], env, timeout=300, **more)


def test_options(t, _):
    for words, what in (
            (["--random", "2.5"], "--random wants a whole number"), (["--random", "-1"], "at least 0"),
            (["--random", "1e9"], "at most 10000"), (["--random", "x"], "--random"),
            (["--seed", "-1"], "--seed wants"), (["--seed", "18446744073709551616"], "--seed wants"),
            (["--seed", ""], "--seed wants"), (["--seed", "1e3"], "--seed wants"),
            (["--noise", "nan"], "--noise"), (["--noise", "-3"], "--noise"), (["--noise", "3%"], "--noise"),
            (["--limit", "0"], "at least 0.001"), (["--seconds", ""], "--seconds"),
            (["--batch", "0"], "at least 1"), (["--only"], "wants a value"), ([""], "unknown option"),
            (["softmax"], "unknown option"), (["--peer", "x"], "go without --cpu"),
            (["--device", "1"], "go without --cpu"), (["--family", ""], "there is no such family"),
            (["--json", "-", "--csv", "-"], "only one of"), (["--csv", "-", "--html", "-"], "only one of"),
            (["--json", "a", "--csv", "a"], "different files"), (["--csv", "b", "--html", "b"], "different files")):
        status, out, err = run("--cpu", *words)
        t.check(f"{words} is refused", status == CANNOT_RUN and what in err and not out, (status, err))
    status, out, err = run("--peer", "x", "--no-peer")
    t.check("--peer and --no-peer", status == CANNOT_RUN and "without each other" in err, err)
    status, out, _ = run("--help")
    t.check("help", status == FINE and all(word in out for word in (
        "(20)", "(3)", "--seed", "--json", "--csv", "--html", "--against", "Status: 0")), out)


def test_random(t, w):
    """Twenty random problems unless told otherwise, from a seed that is printed."""
    words = ["--cpu", "--family", "dropout", "--seconds", "0.00001", "--limit", "0.05", "--no-check"]
    rows = {}
    for name, more in (("none", ["--random", "0"]), ("default", []), ("seed", ["--seed", "18446744073709551615"])):
        path = w.path(name)
        status, _, err = run(*words, *more, "--json", path)
        data = bench.load(path)
        rows[name] = [row["problem"] for row in data["rows"]]
        t.check(f"{name}: ends well", status == FINE and data["complete"], (status, err))
        t.check(f"{name}: the seed is told", f"values: {data['seed']} " in err, err)
    t.check("twenty more", len(rows["default"]) == len(rows["none"]) + 20, {k: len(v) for k, v in rows.items()})
    t.check("each once", len(set(rows["default"])) == len(rows["default"]), rows["default"])
    t.check("a large seed is kept whole", data["seed"] == 18446744073709551615, data["seed"])
    t.check("another seed, others", rows["seed"] != rows["default"])


def test_standard_output(t, w):
    status, out, err = run(*ROWS, "--json", "-")
    t.check("JSON alone", status == FINE and json.loads(out)["rows"] and "engine" in err, (status, err))
    status, out, err = run(*ROWS, "--csv", "-")
    lines = list(csv.DictReader(io.StringIO(out)))
    t.check("CSV alone", status == FINE and lines and all(line["ours_us"] for line in lines), out)
    status, out, err = run(*ROWS, "--html", "-")
    t.check("HTML alone", status == FINE and out.startswith("<!doctype html>")
            and out.rstrip().endswith("</html>") and "softmax" in err, (out[:200], err))
    status, out, err = run("--cpu", "--matmul", "--only", "768 of", "--seconds", "0.001", "--json", "-")
    t.check("sets: JSON alone", status == FINE and json.loads(out)["rows"] and "%sgemm" in err, err)
    status, out, err = run(*ROWS, "--json", "-", "--against", w.write("empty.json", "{}"))
    t.check("a bad older run costs no time", status == CANNOT_RUN and "no run of" in err and not out, err)
    status, out, err = run(*ROWS[:2], "softmax", "--only", os.fsdecode(b"64\xffx'\""), "--json", "-")
    t.check("arguments that are no text", status == CANNOT_RUN
            and json.loads(out)["command"].startswith("warpdnn_bench --cpu"), (status, out))
    for name, words in (("table", ROWS), ("list", ["--list"]), ("JSON", [*ROWS, "--json", "-"])):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([bench.BENCH, *words], stdout=full, stderr=subprocess.PIPE, check=False,
                                  env=tool.clean_environment())
        t.check(f"{name}: a full disk", done.returncode == CANNOT_RUN and b"No space left" in done.stderr,
                (done.returncode, done.stderr[-300:]))


def no_large_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


def test_files(t, w):
    for kind in ("json", "csv", "html"):
        status, _, err = run(*ROWS, f"--{kind}", "/dev/full")
        t.check(f"{kind}: a full device", status == CANNOT_RUN and "cannot write /dev/full: No space" in err, err)
        old = w.write(f"old.{kind}", "older\n")
        status, _, err = run(*ROWS, f"--{kind}", old, preexec_fn=no_large_files)
        with open(old, encoding="utf-8") as file:
            text = file.read()
        t.check(f"{kind}: a disk that fills up keeps the older file", status == CANNOT_RUN and text == "older\n"
                and "File too large" in err, (status, err, text))
        link = w.path(f"link.{kind}")
        os.symlink(f"old.{kind}", link)
        status, _, err = run(*ROWS, f"--{kind}", link)
        with open(old, encoding="utf-8") as file:
            text = file.read()
        t.check(f"{kind}: a link stays one", status == FINE and os.path.islink(link) and text != "older\n", err)
    t.check("nothing is left beside them", not [name for name in os.listdir(w.folder) if "part" in name],
            os.listdir(w.folder))
    for path in ("/no/such/folder/x", "/", w.folder, "", "/proc/x"):
        begin = time.monotonic()
        status, out, err = run("--cpu", "--family", "all", "--json", path)
        t.check(f"'{path}' cannot be written, and that is said first", status == CANNOT_RUN
                and "cannot write" in err and not out and time.monotonic() - begin < 5, (status, err))
    new = w.path("new.json")
    run(*ROWS, "--json", new, "--against", "/no/such/file")
    t.check("a run that is refused leaves no file", not os.path.exists(new))
    status, _, err = run(*ROWS, "--json", new)
    status, _, err = run(*ROWS, "--json", new, "--against", new, "--noise", "1e9")
    t.check("into the file that it is set against", status == FINE and bench.load(new)["rows"], err)
    status, _, err = run("--cpu", "--family", "pooling", "--only", "1x64x28", "--random", "0", *bench.SHORT,
                         "--against", new)
    t.check("nothing in common is no success", status == CANNOT_RUN and "nothing is compared" in err, err)
    status, _, err = run(*ROWS, "--against", new, "--noise", "1e9", "--processor-time")
    t.check("the clock against processors", status == CANNOT_RUN and "--processor-time" in err, err)
    status, _, err = run(*ROWS, "--json", "/dev/null")
    t.check("/dev/null stays a device", status == FINE and not os.path.isfile("/dev/null"), err)


def start(path, *words):
    process = subprocess.Popen(
        [bench.BENCH, "--cpu", "--no-host", "--random", "0", "--seconds", "0.1", "--json", path, *words],
        env=tool.clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()  # the head of the table comes with its first row
    return process


def test_signals(t, w):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        path = w.path(f"{number.name}.json")
        process = start(path, "--family", "softmax", "--limit", "0.02")
        process.stdout.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        data = bench.load(path)
        t.check(f"{number.name}: what was measured is kept", process.returncode == -number and data["rows"]
                and not data["complete"] and f"were measured: {len(data['rows'])}" in err,
                (process.returncode, out[-300:], err))
    path = w.write("older.json", "older\n")
    process = start(path, "--family", "softmax", "--limit", "0.02")
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=60)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    t.check("SIGKILL: the older file is there", process.returncode == -9 and text == "older\n", text)

    # a row that takes long; the second signal does not wait for it
    process = subprocess.Popen([bench.BENCH, "--cpu", "--memory", "--only", "add_all", "--seconds", "30", "--json", path],
                               env=tool.clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(2)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    t.check("the second signal ends it at once", process.returncode == -signal.SIGINT
            and time.monotonic() - begin < 10, process.returncode)
    process = subprocess.Popen(
        [bench.BENCH, *ROWS, "--json", w.path("nohup.json")], env=tool.clean_environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    t.check("what is ignored stays ignored", process.returncode == FINE, process.returncode)


def test_found_peer(t, w, made):
    """The peer that is not named is the one inside PyTorch's package, wherever that is."""
    def found(name, folder, **env):
        place = w.make_folder(folder, "nvidia", "cudnn", "lib")
        for file in ("libcudnn.so.9", "libreal.so"):
            shutil.copy(os.path.join(os.path.dirname(made), file), place)
        status, out, err = run("--no-host", "--family", "softmax", "--only", "64x10x", "--random", "0",
                               *bench.SHORT, "--json", w.path("found.json"), env={**FAKE, **env})
        row, = bench.load(w.path("found.json"))["rows"]
        t.check(f"found {name}", status == FINE and f"{place}/libcudnn.so.9" in err and row["peer_us"] > 0
                and row["ratio"] > 0, (status, out, err))

    found("in a venv", "venv/lib/python3.9/site-packages", VIRTUAL_ENV=w.path("venv"))
    found("in a conda environment", "conda/lib/python3.12/site-packages", CONDA_PREFIX=w.path("conda"))
    w.write("bin/python3", f'#!/bin/sh\nPYTHONPATH="{w.path("site")}" exec "{sys.executable}" "$@"\n', 0o755)
    w.write("site/nvidia/cudnn/__init__.py", "")
    found("by python3", "site", PATH=w.path("bin") + ":" + os.environ["PATH"])
    # what its own library needs lies in the packages beside it, which come first on the loader's path
    w.make_folder("venv/lib/python3.9/site-packages/nvidia/cublas/lib")
    found("with others beside it", "venv/lib/python3.9/site-packages", VIRTUAL_ENV=w.path("venv"),
          LD_LIBRARY_PATH=os.path.dirname(LIBRARY))


def test_libraries(t, w):
    def peer(name, path, words, **env):
        status, out, err = run("--peer", path, "--no-host", "--family", "softmax", "--only", "64x10", "--random",
                               "0", *bench.SHORT, env={**FAKE, **env})
        t.check(f"the peer is {name}", status == CANNOT_RUN and words in err and "softmax" not in out,
                (status, out, err))
        return err

    peer("a folder", w.folder, "cannot open")
    peer("text", w.write("libcudnn.so.9", "text\n"), "cannot open")
    peer("empty", w.write("empty/libcudnn.so.9", ""), "cannot open")
    os.symlink(LIBRARY, w.path("link.so"))
    peer("ours by another name", w.path("link.so"), "it is a WarpDNN")
    w.make_folder("copy")
    peer("a copy of ours", shutil.copy(LIBRARY, w.path("copy", "libcudnn.so.9")), "it is a WarpDNN")
    peer("another library", w.library("other/libcudnn.so.9", "int x;", "libcudnn.so.9"), "it is no cuDNN 9")
    peer("a cuDNN without all of it", w.stand_in("few"), "it is no cuDNN 9")
    if bench.have_peer():
        made = bench.make_peer(w.make_folder("made"))
        for version in ("8907", "100000", "0"):
            peer(f"of version {version}", made, f"version {version}: it is no cuDNN 9", BENCH_PEER_VERSION=version)
        test_found_peer(t, w, made)
        beside = shutil.copy(made, w.path("copy", "libpeer.so"))
        shutil.copy(LIBRARY, w.path("copy", "libreal.so"))
        status, _, err = run("--peer", beside, "--ours", w.path("copy", "libcudnn.so.9"), "--family", "softmax",
                             env=FAKE)
        t.check("both in one folder", status == CANNOT_RUN and "both libraries lie in" in err, err)
    else:
        t.skip("a stand-in for the peer cannot be made here")
    if os.path.exists(CUDA_LIBRARY):
        peer("NVIDIA's, where it cannot run", CUDA_LIBRARY, "no handle")
        folder = os.path.dirname(CUDA_LIBRARY)
        peer("one of its parts", os.path.join(folder, "libcudnn_ops.so.9"), "it is no cuDNN 9")
        status, _, err = run("--cpu", "--ours", CUDA_LIBRARY)
        t.check("NVIDIA's is not ours", status == CANNOT_RUN and "it is not WarpDNN" in err, err)
        status, out, err = run(*ROWS, env={"LD_LIBRARY_PATH": folder})
        t.check("NVIDIA's first on the path changes nothing", status == FINE and "softmax_forward_cpu" in out
                or "softmax_forward_def" in out, (status, out, err))
    else:
        t.skip("NVIDIA's library is not installed")
    trap = w.make_folder("trap", "nvidia", "cudnn", "lib")
    w.write("trap/nvidia/__init__.py", f"open({w.path('sprung')!r}, 'w')\n")
    w.write("trap/nvidia/cudnn/__init__.py", "")
    shutil.copy(LIBRARY, os.path.join(trap, "libcudnn.so.9"))
    run("--no-host", "--family", "softmax", "--only", "64x10x", "--random", "0", *bench.SHORT, env=FAKE,
        cwd=w.path("trap"))
    t.check("modules of the folder it is started in are left alone", not os.path.exists(w.path("sprung")))


def main():
    # what a shell started in the background ignores its children do too
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    if not os.path.exists(bench.BENCH):
        print("the bench is not built\n0 passed, 0 failed, 1 skipped")
        return 77
    t = tool.Checks()
    tool.stop_without(t)
    for part in (test_options, test_random, test_standard_output, test_files, test_signals, test_libraries):
        with tool.World() as w:
            part(t, w)
    return t.finish()


if __name__ == "__main__":
    sys.exit(main())
