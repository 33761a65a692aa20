#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bench: its options, its outputs, its refusals, on the CPU and on the fake driver.

Times mean nothing here; everything else does: that rows are checked, that files hold what was
measured, that an older run is compared row by row, that a library which is not what it is to be is
turned away, and that both libraries run side by side (the peer is tests/tools/bench_peer.c).
"""
import csv
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

SOURCE = os.environ.get("WARPDNN_SOURCE") or os.path.realpath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("WARPDNN_BUILD") or os.path.join(SOURCE, "build")
BENCH = os.path.join(BUILD, "bench", "warpdnn_bench")
OURS = os.path.join(BUILD, "lib", "libcudnn.so.9")
FAKE = os.path.join(BUILD, "tests", "libfakecuda.so")
SHORT = ["--seconds", "0.001", "--limit", "0.02"]
FINE, BAD_ROWS, CANNOT_RUN = 0, 1, 2


def run(*args, status=FINE, fake=False, **more):
    """Runs the bench; answers its standard output and error."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("WARPDNN_CUDA_DRIVER", "WARPDNN_BENCH", "WARPDNN_DEVICE"))}
    if fake:
        env.update(WARPDNN_CUDA_DRIVER=FAKE, FAKECUDA_DEVICES="1", FAKECUDA_REPORT="1",
                   FAKECUDA_MEMORY_MIB="128",
                   WARPDNN_ENGINES="none")
    env.update({key: value for key, value in more.items() if value is not None})
    for key in [key for key, value in more.items() if value is None]:
        env.pop(key, None)
    done = subprocess.run([BENCH, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, timeout=500)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(args)}: status {done.returncode}, not {status}\n"
                             f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout, done.stderr


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def in_folder(test):
    def wrapped():
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
    wrapped.__name__ = test.__name__
    return wrapped


def check_rows(run_, verdict="right"):
    expect(run_["rows"], "no rows")
    for row in run_["rows"]:
        what = f"{row['family']} {row['problem']}: {row['verdict']}: {row['note']}"
        expect(row["verdict"] in (verdict, "unchecked"), what)
        expect(row["ours_us"] > 0 and row["floor_us"] > 0 and row["bytes"] > 0, what)
        over = row["ours_us"] / row["floor_us"]
        expect(abs(row["over_floor"] / over - 1) < 0.05 or row["floor_us"] < 0.01, what)
        expect(row["engine"], what)


@in_folder
def test_cpu_files(folder):
    paths = {kind: os.path.join(folder, "run." + kind) for kind in ("json", "csv", "html")}
    out, _ = run("--cpu", "--family", "pointwise", "--only", "relu_forward fp32", "--random", "0",
                 *SHORT, *[word for kind, path in paths.items() for word in ("--" + kind, path)])
    one = load(paths["json"])
    check_rows(one)
    host, = one["host"]
    expect(host["library"] == "ours" and all(host[name] > 0 for name in (
        "open_ms", "handle_ms", "first_call_ms", "host_mb", "activation_us", "plan_us")), host)
    expect("launch_us" not in host and "to open the library" in out, out)
    expect("geometric" not in out and "relu_forward fp32" in out, out)
    for row in one["rows"]:
        sizes = re.search(r"(\d+(?:x\d+)+)", row["problem"]).group(1).split("x")
        count = 1
        for size in sizes:
            count *= int(size)
        expect(row["bytes"] == 8 * count, f"{row['problem']}: {row['bytes']} bytes")
    with open(paths["csv"], encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    expect([line["problem"] for line in lines] == [row["problem"] for row in one["rows"]], lines)
    with open(paths["html"], encoding="utf-8") as file:
        page = file.read()
    expect("to open the library" in page, "what it costs on the host")
    expect("http" not in page and "<script" not in page, "the page asks for something outside")
    drawings = re.findall(r"<svg.*?</svg>", page, re.S)
    expect(len(drawings) == 2, f"{len(drawings)} drawings")
    for drawing in drawings:
        xml.dom.minidom.parseString(drawing)
    expect(drawings[1].count('class="ours"') == len(one["rows"]), "a bar a row")


def test_cpu_sets():
    out, _ = run("--cpu", "--matmul", "--only", "768 of 32x32x32", "--seconds", "0.01",
                 "--processor-time")
    expect("%sgemm" in out and "768 of 32x32x32" in out, out)
    out, _ = run("--cpu", "--memory", "--nhwc", "--only", "softmax channel_forward", "--seconds",
                 "0.01", "--json", "-")
    rows = json.loads(out)["rows"]
    expect(len(rows) == 1 and rows[0]["family"] == "softmax" and rows[0]["floor_us"] > 0, rows)
    out, _ = run("--cpu", "--conv", "--batch", "1", "--only", "fprop n1 960", "--seconds", "0.01")
    expect("%sgemm" in out and "fprop" in out, out)


@in_folder
def test_against(folder):
    path, old_path = os.path.join(folder, "new.json"), os.path.join(folder, "old.json")
    words = ["--cpu", "--family", "softmax", "--only", "64x1", "--random", "0", *SHORT]
    run(*words, "--json", path)
    old = load(path)
    name = old["rows"][0]["problem"]
    for row in old["rows"]:
        row["ours_us"] *= 1000
    save(old_path, old)
    out, _ = run(*words, "--against", old_path)
    expect(", 0 slower" in out and "0 rows are new" in out, out)
    old["rows"][0]["ours_us"] = 0.0001
    save(old_path, old)
    out, _ = run(*words, "--against", old_path, status=BAD_ROWS)
    slower = out[out.index("Slower than before"):]
    expect(name in slower and ", 1 slower" in slower, out)
    run(*words, "--against", old_path, "--noise", "1e12")
    del old["rows"][0]
    save(old_path, old)
    out, _ = run(*words, "--against", old_path)
    expect("1 rows are new" in out, out)
    old["device"] = "another machine"
    save(old_path, old)
    _, err = run(*words, "--against", old_path, status=CANNOT_RUN)
    expect("another machine" in err, err)


@in_folder
def test_against_bad_files(folder):
    path = os.path.join(folder, "old.json")
    words = ["--cpu", "--family", "softmax", "--against", path]
    _, err = run(*words, status=CANNOT_RUN)
    expect("cannot read" in err, err)
    for text, what in (("", ":1:"), ("{\n\"a\": [1, 2\n}", ":3:"), ("{}", "no run of"),
                       ("[" * 100, "too deep"), ("{\"a\": \"b", "no end"), ("{} x", "more behind")):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        _, err = run(*words, status=CANNOT_RUN)
        expect(what in err, f"{text[:20]!r}: {err}")


def test_refusals():
    for words, what in (
            (["--family", "none"], "pointwise"), (["--nonsense"], "unknown option"),
            (["--cpu", "--seconds", "x"], "--seconds"), (["--cpu", "--batch"], "wants a value"),
            (["--conv"], "--cpu"), (["--cpu", "--json", "/nonexistent/x"], "cannot write"),
            (["--cpu", "--html", "/"], "cannot write"),
            (["--cpu", "--ours", "/nonexistent/libcudnn.so.9"], "no such library"),
            (["--peer", "/nonexistent/libcudnn.so.9"], "no such library"),
            (["--peer", OURS], "it is a WarpDNN"), (["--peer", FAKE], "it is no cuDNN 9"),
            (["--no-peer", "--ours", FAKE], "it is no cuDNN 9")):
        _, err = run(*words, status=CANNOT_RUN)
        expect(what in err, f"{words}: {err}")
    _, err = run("--no-peer", status=CANNOT_RUN, WARPDNN_CUDA_DRIVER="/nonexistent/libcuda.so.1")
    expect("no CUDA driver" in err and "--cpu" in err, err)
    _, err = run("--no-peer", "--device", "7", status=CANNOT_RUN, fake=True)
    expect("--device 7" in err, err)
    out, err = run("--cpu", "--family", "softmax", "--only", "no such row", status=CANNOT_RUN)
    expect("no problem matches" in err, (out, err))


PROBLEM = re.compile(r"(\w+) .*?(\d+)x(\d+)x((?:\d+x)?)(\d+)x(\d+)( .*|)$")
# What every family's list has among its problems, by N, C, depth, H, W and the rest of the text.
KINDS = {
    "three channels": lambda n, c, d, h, w, rest: c == 3,
    "odd channels": lambda n, c, d, h, w, rest: c > 3 and c % 2 == 1,
    "odd pointers": lambda n, c, d, h, w, rest: rest.endswith(" odd"),
    "one row": lambda n, c, d, h, w, rest: n == 1 and d == 1 and h == 1,
    "three dimensions": lambda n, c, d, h, w, rest: d > 1,
}
# norms are over long rows; spatial transformers have two dimensions
WITHOUT = {("norm", "three channels"), ("spatial", "three dimensions")}


def test_lists():
    out, _ = run("--list")
    lines = out.splitlines()
    expect(len(lines) == len(set(lines)), [line for line in lines if lines.count(line) > 1])
    for family in {line.split()[0] for line in lines}:
        mine = [line for line in lines if line.split()[0] == family]
        expect(len(mine) >= 40, f"{family} has {len(mine)} problems")
        sizes = []
        for line in mine:
            _, n, c, d, h, w, rest = PROBLEM.match(line).groups()
            sizes.append((int(n), int(c), int(d[:-1] or 1), int(h), int(w), rest))
        for kind, is_kind in KINDS.items():
            expect((family, kind) in WITHOUT or any(is_kind(*size) for size in sizes),
                   f"{family} has no problem with {kind}")
    one, _ = run("--list", "--family", "pooling")
    expect(one and set(one.splitlines()) < set(lines), one)


@in_folder
def test_problems(folder):
    path = os.path.join(folder, "problems")
    # a list is such a file
    listed, _ = run("--list")
    for family in sorted({line.split()[0] for line in listed.splitlines()}):
        text = os.path.join(SOURCE, "bench", family + ".def")
        expect(run("--list", "--family", family, "--problems", text)[0] == run("--list", "--family", family)[0],
               f"{family}'s list reads otherwise than it is compiled")

    def write(*lines):
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))

    write("/* mine */", "", " # another", "  PROBLEM( max_forward ,FP32,NHWC,2,3,1,9,8,1,3,2,1)",
          "PROBLEM(average_forward, FP32, NCHW, 1, 4, 1, 7, 7, 0, 0, 1)")
    out, err = run("--cpu", "--family", "pooling", "--problems", path, *SHORT, "--json", "-")
    rows = [row["problem"] for row in json.loads(out)["rows"]]
    expect(rows == ["max_forward fp32 NHWC 2x3x9x8 w3/2 p1 odd", "average_forward fp32 NCHW 1x4x7x7 global"], (rows, err))
    head = "PROBLEM(max_forward, FP32, NCHW, "
    for line, what in (
            ("max_forward", "a line is PROBLEM"), ("PROBLEM(max_forward, FP32", "has no end"),
            ("PROBLEM(max, FP32, NCHW, 1, 1, 1, 9, 9, 0, 3, 2, 1)", "pooling has no call 'max'; it has max_forward"),
            ("PROBLEM(max_forward, FP31, NCHW, 1, 1, 1, 9, 9, 0, 3, 2, 1)", "a type is"),
            ("PROBLEM(max_forward, FP32, CHW, 1, 1, 1, 9, 9, 0, 3, 2, 1)", "a layout is"),
            (head + "0, 1, 1, 9, 9, 0, 3, 2, 1)", "N is a whole number from 1"),
            (head + "1, 1, 1, 9, 9x, 0, 3, 2, 1)", "W is a whole number"),
            (head + "1, 1, 1, 9, 99999999999, 0, 3, 2, 1)", "W is a whole number"),
            (head + "100000, 100000, 1, 900, 9, 0, 3, 2, 1)", "elements, at most"),
            (head + "1, 1, 1, 9)", "W is missing"), (head + "1, 1, 1, 9, 9, 16, 3, 2, 1)", "odd is"),
            (head + "1, 1, 1, 9, 9, 0, 3, 0, 1)", "the stride is a whole number from 1"),
            (head + "1, 1, 1, 9, 9, 0, 3)", "the stride is missing"),
            (head + "1, 1, 1, 9, 9, 0, 3, 2, 1, 1)", "what is no parameter"),
            (head + "1, 1, 1, 9, 9, 0, 3, 2, 1, 0, 0)", "more than 4 parameters"),
            (head + "1, 1, 1, 9, 9, 0, 3, 2, 1) 5", "what follows"), ("PROBLEM(" + "x" * 600, "a line of 512 bytes")):
        write("", line)
        _, err = run("--list", "--family", "pooling", "--problems", path, status=CANNOT_RUN)
        expect(f"{path}:2: " in err and what in err, (line, err))
    for words, what in ((["--problems", path], "wants the --family"),
                        (["--family", "all", "--cpu", "--problems", path], "wants the --family"),
                        (["--family", "pooling", "--problems", folder], "cannot read"),
                        (["--family", "pooling", "--problems", path + "x"], "cannot read")):
        _, err = run("--list", *words, status=CANNOT_RUN)
        expect(what in err, (words, err))
    write()
    _, err = run("--cpu", "--family", "pooling", "--problems", path, *SHORT, status=CANNOT_RUN)
    expect("no problem matches" in err, err)


@in_folder
def test_gpu_rows(folder):
    path = os.path.join(folder, "run.json")
    out, _ = run("--list")
    for family in sorted({line.split()[0] for line in out.splitlines()}):
        run("--no-peer", "--no-host", "--family", family, "--random", "3", "--seconds", "0.001",
            "--limit", "0.004", "--json", path, fake=True)
        one = load(path)
        check_rows(one)
        expect(all(row["captured"] and row["peer_us"] is None for row in one["rows"]), one)
        expect(one["copy_gbs"] > 0, one)
        expect(all(row["host_us"] > 0 and row["pieces"] > 0 for row in one["rows"]), one)


@in_folder
def test_host_calls(folder):
    """What a call costs on the host, for every problem: so many times an empty launch of a driver that does
    nothing. An engine that cuts its problem anew in every call takes more. The best of some rounds
    counts; what else runs on the machine may still spoil one, and so each family has three tries."""
    most, path = 40, os.path.join(folder, "run.json")
    idle = {"FAKECUDA_IDLE": "1", "FAKECUDA_MEMORY_MIB": "143000", "WARPDNN_ENGINES": "*"}
    out, _ = run("--list")
    for family in sorted({line.split()[0] for line in out.splitlines()}):
        for left in (2, 1, 0):
            out, err = run("--host-calls", "--no-host", "--family", family, "--random", "2", "--json",
                           path, fake=True, **idle)
            one = load(path)
            launch = one["launch_us"]
            expect(one["rows"] and launch > 0 and "an empty kernel" in err and "/floor," not in out, err)
            for row in one["rows"]:
                expect(row["ours_us"] is None and row["verdict"] == "unchecked", row)
                expect(row["host_us"] > 0 and row["pieces"] > 0 and row["engine"], row)
                graph = row["plan_us"], row["plan_first_us"]
                expect(graph == (None, None) or min(graph) > 0, row)
            slow = [row for row in one["rows"] if row["host_us"] > most * launch * row["pieces"]]
            if not slow:
                break
            expect(left, [(row["problem"], row["engine"], row["host_us"], launch) for row in slow])
    for words in (["--cpu"], ["--peer", OURS], ["--against", path]):
        _, err = run("--host-calls", *words, status=CANNOT_RUN, fake=True, **idle)
        expect("--host-calls goes without" in err, err)


@in_folder
def test_seeds(folder):
    def problems(seed):
        path = os.path.join(folder, "run.json")
        run("--cpu", "--family", "reduce", "--only", "over", "--random", "6", "--seed", seed,
            "--json", path, *SHORT)
        return [row["problem"] for row in load(path)["rows"]][-6:]
    expect(len(set(problems("5"))) == 6, "no problem twice")
    expect(problems("5") == problems("5"), "a seed gives the same problems")
    expect(problems("5") != problems("6"), "another seed gives others")


def idle_driver(folder):
    """A fake driver away from the emulator: kernels of engines do nothing there."""
    return shutil.copy(FAKE, folder)


@in_folder
def test_wrong_answers(folder):
    """Where kernels of engines do nothing, the poison is found."""
    out, _ = run("--no-peer", "--no-host", "--family", "pointwise", "--only",
                 "relu_forward fp32 NCHW", "--random", "0", *SHORT, status=BAD_ROWS, fake=True,
                 WARPDNN_CUDA_DRIVER=idle_driver(folder), WARPDNN_ENGINES=None,
                 FAKECUDA_REPORT=None)
    expect("WRONG" in out and "computation in fp64" in out, out)


def have_peer():
    return platform.machine() == "x86_64" and shutil.which("cc") is not None


def make_peer(folder):
    shutil.copy(OURS, os.path.join(folder, "libreal.so"))
    path = os.path.join(folder, "libcudnn.so.9")
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", path,
                    os.path.join(SOURCE, "tests", "tools", "bench_peer.c"), "-ldl"],
                   check=True)
    return path


@in_folder
def test_peer(folder):
    peer, path = make_peer(folder), os.path.join(folder, "run.json")
    out, err = run("--peer", peer, "--family", "pooling", "--random", "1", *SHORT, "--json", path,
                   fake=True)
    one = load(path)
    check_rows(one)
    expect(peer in err and one["peer"].startswith("cuDNN 9"), err)
    expect(all(row["peer_us"] > 0 and row["ratio"] > 0 for row in one["rows"]), one["rows"])
    expect([host["library"] for host in one["host"]] == ["ours", "peer"], one["host"])
    for host in one["host"]:
        expect(host["open_ms"] > 0 and host["activation_us"] > 0 and host["descriptor_us"] > 0, host)
    expect("launch of an empty kernel" in out, out)
    _, err = run("--no-peer", "--ours", peer, status=CANNOT_RUN, fake=True)
    expect("it is not WarpDNN" in err, err)


@in_folder
def test_peer_wrong(folder):
    """A peer whose forward does nothing: small rows know who is right, large ones do not."""
    peer = make_peer(folder)
    words = ["--peer", peer, "--no-host", "--family", "pointwise", "--random", "0", "--seconds",
             "0.001"]
    out, _ = run(*words, "--only", "tanh_forward fp16", "--limit", "0.01", fake=True,
                 BENCH_PEER_IDLE="ActivationForward")
    expect("the peer's y" in out and "WRONG" not in out, out)
    out, _ = run(*words, "--only", "tanh_forward fp32 NCHW 1x1x", "--limit", "6", fake=True,
                 BENCH_PEER_IDLE="ActivationForward", status=BAD_ROWS)
    expect("WRONG" in out and "differ from the peer's" in out, out)


@in_folder
def test_arbiter(folder):
    """Where the libraries differ in a large row, a computation in fp64 says which of them is right:
    each from its own inputs, of what was read back whole, if what was not is alike."""
    words = ["--peer", make_peer(folder), "--no-host", "--family", "fusednorm", "--random", "0",
             "--seconds", "0.001", "--json", os.path.join(folder, "run.json")]
    whole = ["--only", "backward fp16 NHWC 4x64x56x56 persistent relu", "--limit", "10"]
    parts = ["--only", "training fp32 NHWC", "--limit", "40"]
    # room for one set of buffers, so that timing takes no longer than it must
    memory = {"FAKECUDA_MEMORY_MIB": "60"}

    def note(row, verdict, **more):
        run(*words, *row, fake=True, **memory, **more,
            status=BAD_ROWS if verdict == "wrong" else FINE)
        rows = load(os.path.join(folder, "run.json"))["rows"]
        expect(len(rows) == 1 and rows[0]["verdict"] == verdict, rows)
        return rows[0]["note"]

    expect(note(whole, "right") == "", "the libraries are alike")
    # the peer's backward pass starts from another mean than ours: both do what they should with theirs
    text = note(whole, "right", BENCH_PEER_SHIFTS="1")
    expect(text.startswith("right in fp64; dx: ") and "differ from the peer's" in text, text)
    text = note(whole, "right", BENCH_PEER_IDLE="BatchNormalizationBackwardEx")
    expect(text.startswith("the peer's dx: ") and "a computation in fp64" in text, text)
    text = note(whole, "wrong", WARPDNN_CUDA_DRIVER=idle_driver(folder),
                WARPDNN_ENGINES="bn_backward*")
    expect(text.startswith("dx: ") and "a computation in fp64" in text, text)
    # y is read back in part, the mean is not
    text = note(parts, "right", BENCH_PEER_SHIFTS="1")
    expect(text.startswith("the peer's mean: 1 of ") and "a computation in fp64" in text, text)
    text = note(parts, "wrong", BENCH_PEER_IDLE="BatchNormalizationForwardTrainingEx")
    expect(text.startswith("y: ") and "differ from the peer's" in text, text)


@in_folder
def test_planes(folder):
    """Where the libraries differ in a large problem of planes, fp64 decides on those concerned."""
    words = ["--peer", make_peer(folder), "--no-host", "--random", "0", "--seconds", "0.001", "--json",
             os.path.join(folder, "run.json")]
    memory = {"FAKECUDA_MEMORY_MIB": "60"}
    # dx of the first is read back in stretches, of the others whole
    for family, row, limit, call, engine in (
            ("pooling", "max_backward fp32 NHWC 4x64x112", "40", "PoolingBackward", "pool_backward*"),
            ("pooling", "average_backward fp16 NHWC 2x288", "6", "PoolingBackward", "pool_backward*"),
            ("lrn", "divisive_backward fp32 NCHW 2x64x56x112", "30", "DivisiveNormalizationBackward",
             "divnorm_backward*")):
        asked = ["--family", family, "--only", row, "--limit", limit]
        run(*words, *asked, fake=True, **memory, BENCH_PEER_IDLE=call, status=FINE)
        rows = load(os.path.join(folder, "run.json"))["rows"]
        expect(len(rows) == 1 and rows[0]["verdict"] == "right", rows)
        expect(rows[0]["note"].startswith("right in fp64 where "), rows)
        run(*words, *asked, fake=True, **memory, WARPDNN_CUDA_DRIVER=idle_driver(folder),
            WARPDNN_ENGINES=engine, status=BAD_ROWS)
        rows = load(os.path.join(folder, "run.json"))["rows"]
        expect(len(rows) == 1 and rows[0]["verdict"] == "wrong", rows)
        expect("in fp64" in rows[0]["note"], rows)


@in_folder
def test_peer_dies(folder):
    """A peer that cannot stand odd pointers costs its own process, not the run."""
    words = ["--peer", make_peer(folder), "--no-host", "--family", "pooling", "--random", "0", *SHORT]
    out, _ = run(*words, "--only", "odd", fake=True, BENCH_PEER_DIES="1")
    expect(out.count("fails on odd pointers") >= 3 and "refused" not in out, out)
    out, _ = run(*words, "--only", "odd", fake=True)
    expect("fails on" not in out, out)


def main():
    tests = [test_cpu_files, test_cpu_sets, test_against, test_against_bad_files, test_refusals,
             test_lists, test_problems, test_gpu_rows, test_host_calls, test_seeds, test_wrong_answers]
    passed = failed = skipped = 0
    if not os.path.exists(BENCH):
        print("the bench is not built\n0 passed, 0 failed, 1 skipped")
        return 77
    if have_peer():
        tests += [test_peer, test_peer_wrong, test_arbiter, test_planes, test_peer_dies]
    else:
        skipped += 5
    for test in tests:
        try:
            test()
            passed += 1
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print(f"{test.__name__}: {error}")
    tail = f", {skipped} skipped" if skipped else ""
    print(f"{passed} passed, {failed} failed{tail}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
