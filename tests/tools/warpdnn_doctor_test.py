#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""warpdnn doctor: what it says with no GPU, with the fake driver in all its moods, with other
libraries first on the path, with frameworks, sick devices and broken surroundings. Every answer is
valid JSON, comes in time, and has the exit status that its findings ask for."""
import json
import os
import shutil
import sys
import time

import warpdnn_tool as tool
from warpdnn_tool import BUILD, FAKE_DRIVER, LIBRARY, TOOL, run

WITH_CUDA = False  # what this build's kernels are; learned from the first report
NEEDED = 13000
LIMIT = 90         # seconds in which every report must be there


class Report:
    def __init__(self, status, out, err, seconds):
        self.status, self.err, self.seconds = status, err, seconds
        self.data = json.loads(out)
        self.findings = self.data["findings"]

    def of(self, name):
        return [f for f in self.findings if f["id"] == name]

    def has(self, name, verdict=None, words="", /, **facts):
        return any((verdict is None or f["verdict"] == verdict) and words in f["says"]
                   and all(f["facts"].get(key) == value for key, value in facts.items())
                   for f in self.of(name))

    def __str__(self):
        return f"status {self.status}\n" + "\n".join(
            f"{f['verdict']:8} {f['id']}: {f['says']} {f['facts']}" for f in self.findings)


def doctor(t, name, *arguments, env=None, program=TOOL, **more):
    """A report; that it is well-formed is checked here, for every call."""
    begin = time.monotonic()
    status, out, err = run([program, "doctor", "--json", *arguments], env, timeout=LIMIT, **more)
    seconds = time.monotonic() - begin
    try:
        report = Report(status, out, err, seconds)
    except ValueError as error:
        t.check(f"{name}: valid JSON", False, (error, out[-1500:], err))
        return None
    data = report.data
    counts = {v: sum(f["verdict"] == v for f in report.findings) for v in data["counts"]}
    t.check(f"{name}: valid", counts == data["counts"] and sum(counts.values()) == len(report.findings)
            and data["status"] == status and err == ""
            and data["verdict"] == ["fine", "wrong", "unusable"][status]
            and (status > 0) == (counts["wrong"] > 0)
            and all(f["do"] for f in report.findings if f["verdict"] == "wrong"), f"{report}\n{err}")
    return report


def fake(**settings):
    # only the definitions have twins that the fake driver can run
    return {"WARPDNN_CUDA_DRIVER": FAKE_DRIVER, "FAKECUDA_DEVICES": "1", "WARPDNN_ENGINES": "none",
            **{f"FAKECUDA_{key.upper()}": str(value) for key, value in settings.items()}}


def test_here(t, w):
    global WITH_CUDA, NEEDED
    r = doctor(t, "here", env={"WARPDNN_DEVICE": "cpu"})
    WITH_CUDA = r.has("library.kernels", "ok")
    if WITH_CUDA:
        NEEDED = r.of("library.kernels")[0]["facts"]["driver_needed"]
    t.check("the library is ours", r.has("library.file", "ok", path=os.path.realpath(LIBRARY)), r)
    t.check("a handle works", r.has("handle.default", "ok", device="cpu"), r)
    t.check("nothing is wrong here", r.status == 0, r)
    if os.path.exists(os.path.join(BUILD, "lib", "libwarpdnn_cpu.so")):
        t.check("the CPU module", r.has("library.cpu_module", "ok", "OpenMP threads"), r)
    if not any(os.path.exists(f"/dev/{n}") for n in ("nvidiactl", "nvidia0", "dxg")):
        r = doctor(t, "no GPU")
        t.check("no GPU: the CPU serves", r.status == 0 and r.has("handle.default", "ok", device="cpu")
                and (r.has("driver.missing", "note") or r.has("driver.init")), r)
        t.check("no GPU: no device files", r.has("kernel.nodes", "note"), r)
    status, out, err = run([TOOL, "doctor"], {"WARPDNN_DEVICE": "cpu"})
    t.check("text", status == 0 and out.startswith("library\n  ok") and err == ""
            and out.splitlines()[-1].startswith("fine: "), out)
    t.check("text is not wide", all(len(line) <= 100 or " " not in line.strip()[11:]
                                    for line in out.splitlines()), out)
    status, out, err = run([TOOL, "doctor", "--brief"], {"WARPDNN_DEVICE": "cpu", "WARPDNN_THREADS": "x"})
    t.check("--brief", status == 0 and "WARPDNN_THREADS=x" in out and "  ok" not in out, out)


def test_arguments(t, _):
    for arguments, words in ((["--yaml"], "unknown argument '--yaml'"), (["now"], "unknown argument"),
                             (["--timeout"], "value is missing"), (["--kernel-log"], "value is missing"),
                             (["--timeout", "0"], "--timeout takes"), (["--timeout", "x"], "--timeout"),
                             (["--timeout", "1e3"], "--timeout"), (["--timeout", ""], "--timeout")):
        status, out, err = run([TOOL, "doctor", *arguments])
        t.check(f"arguments {arguments}", status == 125 and words in err and not out, (status, err))
    status, out, _ = run([TOOL, "doctor", "--help"])
    t.check("help", status == 0 and "--kernel-log" in out, out)


def test_fake_driver(t, w):
    r = doctor(t, "a good driver", env=fake())
    t.check("good: version", r.has("driver.version", "ok", "CUDA 13.0", version=13000), r)
    t.check("good: the device", r.has("driver.device", "ok" if WITH_CUDA else "note",
                                      capability=90, coverage="native" if WITH_CUDA else "none"), r)
    t.check("good: a handle on it", r.status == 0 and r.has("handle.default", "ok", "GPU 0", device="gpu")
            and r.has("handle.cpu", "ok", device="cpu"), r)

    old = NEEDED - 1000
    r = doctor(t, "an old driver", env=fake(version=old))
    t.check("old: said", r.has("driver.version", "wrong", f"serves CUDA {old // 1000}.0; WarpDNN needs "
                               f"a driver for CUDA {NEEDED // 1000}.0", version=old, needed=NEEDED), r)
    t.check("old: unusable, and the library says so too", r.status == 2 and
            r.has("handle.default", "wrong", "cudnnCreate answers CUDNN_STATUS_NOT_INITIALIZED"), r)
    t.check("old: the CPU still works", r.has("handle.cpu", "ok", device="cpu"), r)
    r = doctor(t, "an old driver, on the CPU", env={**fake(version=old), "WARPDNN_DEVICE": "cpu"})
    t.check("old, CPU: wrong but usable", r.status == 1 and r.has("handle.default", "ok"), r)

    r = doctor(t, "no device", env=fake(devices=0))
    t.check("no device: the CPU serves", r.status == 0 and r.has("driver.init", "note", "no device")
            and r.has("handle.default", "ok", device="cpu"), r)
    r = doctor(t, "three devices", env=fake(devices=3))
    t.check("three devices", len(r.of("driver.device")) == 3
            and [f["facts"]["ordinal"] for f in r.of("driver.device")] == [0, 1, 2], r)
    for result, words in ((803, "different versions"), (999, "cuInit answers")):
        r = doctor(t, f"cuInit {result}", env=fake(init=result))
        t.check(f"cuInit {result}: unusable", r.status == 2
                and r.has("driver.init", "wrong", words, result=result), r)
    r = doctor(t, "no such driver", env={"WARPDNN_CUDA_DRIVER": "/no/such/libcuda.so.1"})
    t.check("no such driver", r.status == 2 and r.has("driver.missing", "wrong", "/no/such"), r)
    for capability, verdict, coverage in ((80, "ok", "native"), (86, "ok", "native"), (90, "ok", "native"),
                                          (120, "note", "jit"), (75, "wrong", "none")):
        r = doctor(t, f"capability {capability}", env=fake(capability=capability, version=13090))
        if WITH_CUDA and r.of("library.kernels")[0]["facts"]["architectures"] == "sm_80 sm_90a compute_90":
            t.check(f"capability {capability}: {coverage}",
                    r.has("driver.device", verdict, capability=capability, coverage=coverage), r)
        t.check(f"capability {capability}: usable or not",
                (r.status == 2) == (capability == 75) and r.has("driver.device", capability=capability), r)


def test_coverage(t, w):
    """The rules of CUDA's architectures, straight from the function."""
    rows = [(90, "sm_80 sm_90a compute_90", "native sm_90a"), (80, "sm_80 sm_90a compute_90", "native sm_80"),
            (89, "sm_80 sm_90a compute_90", "native sm_80"), (87, "sm_86", "native sm_86"),
            (80, "sm_86", "none "), (100, "sm_80 sm_90a compute_90", "jit compute_90"),
            (100, "sm_90a compute_90a", "none "), (103, "sm_100f", "native sm_100f"),
            (120, "sm_100f", "none "), (103, "sm_100", "native sm_100"), (90, "compute_90a", "jit compute_90a"),
            (75, "sm_80 sm_90a compute_90", "none "), (90, "", "none "), (86, "compute_80 sm_86", "native sm_86"),
            (121, "compute_90 compute_120f", "jit compute_120f"), (90, "sm_80", "none ")]
    calls = "".join(f'show({cap}, "{archs}");' for cap, archs, _ in rows)
    folder = os.path.join(tool.SOURCE, "tools", "warpdnn")
    program = w.compile("coverage", """
#include <stdio.h>
#include "doctor.h"
static void show(int capability, const char *archs)
{
    static const char *const names[] = {"native", "jit", "none"};
    char by[32];
    enum coverage got = coverage_of(capability, archs, by, sizeof by);
    printf("%s %s\\n", names[got], by);
}
int main(void) { """ + calls + " return 0; }", "-D_GNU_SOURCE", "-I" + folder, "-I" + os.path.join(tool.SOURCE, "src"),
                        os.path.join(folder, "coverage.c"), os.path.join(folder, "text.c"))
    _, out, _ = run([program])
    for (capability, archs, want), got in zip(rows, out.splitlines()):
        t.check(f"coverage of {capability} by '{archs}'", got == want, (got, want))


BAD_DRIVER = """
#include <unistd.h>
#include <signal.h>
int cuInit(unsigned f) { BODY return 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuGetErrorName(int e, const char **n) { *n = "X"; return 0; }
int cuDeviceGetCount(int *c) { *c = 1; return 0; }
int cuDeviceGet(int *d, int o) { *d = o; return 0; }
int cuDeviceGetName(char *n, int s, int d) { n[0] = 0; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = 9; return 0; }
int cuDeviceTotalMem_v2(size_t *b, int d) { *b = 0; return 0; }
"""


def test_bad_driver(t, w):
    crash = w.compile("crash.so", BAD_DRIVER.replace("BODY", "raise(SIGSEGV);"), "-shared", "-fPIC")
    r = doctor(t, "a driver that crashes", env={"WARPDNN_CUDA_DRIVER": crash})
    t.check("a crash is told", r.status == 2 and r.has("driver.ends", "wrong", "crashes (Segm")
            and r.has("driver.version", "ok", version=13000) and not r.of("driver.init"), r)
    hang = w.compile("hang.so", BAD_DRIVER.replace("BODY", "signal(SIGTERM, SIG_IGN); for (;;) pause();"),
                     "-shared", "-fPIC")
    r = doctor(t, "a driver that hangs", "--timeout", "3", env={"WARPDNN_CUDA_DRIVER": hang})
    t.check("a hang is told in time", r.status == 2 and r.seconds < 60
            and r.has("driver.ends", "wrong", "does not answer within 3 s"), (r.seconds, str(r)))
    text = w.write("text.so", "no library\n")
    r = doctor(t, "a driver that is text", env={"WARPDNN_CUDA_DRIVER": text})
    t.check("text is no driver", r.status == 2 and r.has("driver.missing", "wrong"), r)
    other = w.compile("other.so", "int x;", "-shared", "-fPIC")
    r = doctor(t, "a library that is no driver", env={"WARPDNN_CUDA_DRIVER": other})
    t.check("no driver", r.status == 2 and r.has("driver.strange", "wrong"), r)


def test_places(t, w):
    other = w.stand_in("other")
    cpu = {"WARPDNN_DEVICE": "cpu"}
    r = doctor(t, "another first on the path", env={**cpu, "LD_LIBRARY_PATH": os.path.dirname(other)})
    t.check("another first: seen", r.has("libcudnn.file", "ok", "cuDNN 9.13.0", path=other, version=91300,
                                         warpdnn=False, where="LD_LIBRARY_PATH"), r)
    t.check("another first: a plain program gets it", r.status == 0
            and r.has("libcudnn.plain", "note", "not WarpDNN", path=other), r)
    r = doctor(t, "ours first", env={**cpu, "LD_LIBRARY_PATH": os.path.dirname(LIBRARY) + ":" + w.path("other")})
    t.check("ours first", r.has("libcudnn.plain", "ok", "this WarpDNN", warpdnn=True)
            and r.has("libcudnn.file", "ok", warpdnn=True, version=91900)
            and r.has("libcudnn.file", "ok", path=other), r)
    r = doctor(t, "preloaded", env={**cpu, "LD_PRELOAD": other})
    t.check("preloaded", r.has("libcudnn.file", where="LD_PRELOAD", path=other)
            and r.has("libcudnn.plain", "note", path=other) and r.has("handle.default", "ok"), r)
    copy = w.make_folder("copy")
    shutil.copy(LIBRARY, os.path.join(copy, "libcudnn.so.9"))
    r = doctor(t, "another WarpDNN", env={**cpu, "LD_LIBRARY_PATH": copy})
    t.check("another WarpDNN", r.has("libcudnn.plain", "warning", "another WarpDNN"), r)
    if os.path.exists(tool.CUDA_LIBRARY):
        r = doctor(t, "NVIDIA's first", env={**cpu, "LD_LIBRARY_PATH": os.path.dirname(tool.CUDA_LIBRARY)})
        real = os.path.realpath(tool.CUDA_LIBRARY)
        t.check("NVIDIA's first", r.has("libcudnn.plain", "note", "not WarpDNN", path=real)
                and any(f["facts"].get("version", 0) >= 90000 and not f["facts"]["warpdnn"]
                        for f in r.of("libcudnn.file")), r)
    else:
        t.skip("NVIDIA's library is not installed")


def test_ugly_places(t, w):
    other = w.stand_in("other")
    cpu = {"WARPDNN_DEVICE": "cpu"}
    w.write("empty/libcudnn.so.9", "")
    w.write("text/libcudnn.so.9", "not a library\n")
    with open(LIBRARY, "rb") as file:
        whole = file.read()
    w.write("cut/libcudnn.so.9", whole[:5000])
    w.write("headers/libcudnn.so.9", whole[:64])
    w.write("noise/libcudnn.so.9", whole[:64] + bytes(range(256)) * 40)
    w.make_folder("folder", "libcudnn.so.9")
    w.make_folder("dangling")
    os.symlink("/no/such/file", w.path("dangling", "libcudnn.so.9"))
    w.library("foreign/libcudnn.so.9", "int other;", "libother.so.1")
    names = ("empty", "text", "cut", "headers", "noise", "folder", "foreign")
    path = ":".join(w.path(name) for name in (*names, "dangling", "other"))
    r = doctor(t, "broken files", env={**cpu, "LD_LIBRARY_PATH": path})
    for name in names:
        t.check(f"broken file: {name}", r.has("libcudnn.file", "warning",
                                              path=w.path(name, "libcudnn.so.9")), r)
    t.check("a good one behind them", r.has("libcudnn.file", "ok", path=other), r)

    w.make_folder("pipe")
    os.mkfifo(w.path("pipe", "libcudnn.so.9"))
    r = doctor(t, "a pipe", "--timeout", "3", env={**cpu, "LD_LIBRARY_PATH": w.path("pipe")})
    t.check("a pipe holds nobody", r.seconds < 60 and r.has("libcudnn.file", "warning", "not a regular file")
            and r.has("libcudnn.plain", "note", "does not answer within 3 s"), (r.seconds, str(r)))

    for name, body, words in (("crash", "*(volatile int *)0 = 1;", "crashes"),
                              ("hang", "for (;;);", "does not answer within 3 s")):
        sick = w.stand_in(name, body=body)
        r = doctor(t, f"versions that {name}", "--timeout", "3",
                   env={**cpu, "LD_LIBRARY_PATH": os.path.dirname(sick)})
        t.check(f"a version that {name}es", r.seconds < 60 and r.has("libcudnn.file", "warning", words,
                                                                     path=sick, version=0), r)

    os.symlink("loop", w.path("loop"))
    w.make_folder("closed")
    os.chmod(w.path("closed"), 0)
    r = doctor(t, "closed folders", env={**cpu, "LD_LIBRARY_PATH": f"{w.path('loop')}:{w.path('closed')}"})
    want = 1 if os.geteuid() == 0 else 2  # root reads everything
    t.check("closed folders are told", r.has("libcudnn.closed", "note", w.path("loop"), folders=want), r)

    folders = []
    for i in range(40):
        w.make_folder("many", str(i))
        os.symlink(other, w.path("many", str(i), "libcudnn.so.9"))
        folders.append(w.path("many", str(i)))
    path = ":".join(folders)
    path += ":" + ":".join(f"/no/such/folder/{i}" for i in range((125000 - len(path)) // 24))
    r = doctor(t, "an enormous path", env={**cpu, "LD_LIBRARY_PATH": path})
    t.check("an enormous path", len(path) > 100000 and r.seconds < 60
            and r.has("libcudnn.more", "note", "28 more folders")
            and sum(f["facts"]["where"] == "LD_LIBRARY_PATH" for f in r.of("libcudnn.file")) == 12,
            (len(path), r.seconds, str(r)))
    odd = w.make_folder(os.fsdecode(b'odd "\xff\\\x01\n name'))
    shutil.copy(other, os.path.join(odd, "libcudnn.so.9"))
    r = doctor(t, "an odd name", env={**cpu, "LD_LIBRARY_PATH": odd})
    t.check("an odd name", any('odd "\ufffd\\\x01\n name' in f["facts"]["path"]
                               for f in r.of("libcudnn.file")), r)


def site_packages(w, name, version, requires=()):
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    lines += [f"Requires-Dist: {spec}" for spec in requires]
    folder = f"site/{name.replace('-', '_')}-{version}.dist-info"
    w.write(f"{folder}/METADATA", "\n".join(lines) + "\n")


def test_python(t, w):
    cpu = {"WARPDNN_DEVICE": "cpu"}
    site_packages(w, "torch", "2.11.0", ['nvidia-cudnn-cu13==9.15.1.9; platform_system == "Linux"', "numpy"])
    site_packages(w, "jax-cuda12-plugin", "0.11.0",
                  ['nvidia-cudnn-cu12<10.0,>=9.8; extra == "with-cuda"', "nvidia-cudnn-frontend"])
    site_packages(w, "tensorflow", "2.30", ["nvidia-cudnn-cu13>=9.99.1"])
    site_packages(w, "cupy-cuda11x", "12.0", ["nvidia-cudnn-cu11~=8.9.7"])
    site_packages(w, "nvidia-cudnn-cu13", "9.15.1.9")
    packaged = w.stand_in("site/nvidia/cudnn/lib", version=91501)
    w.write("site/nvidia/cudnn/lib/libcudnn_ops.so.9", "part\n")
    # a venv whose python3 sees those packages
    w.write("venv/bin/python3", f'#!/bin/sh\nPYTHONPATH="{w.path("site")}" exec "{sys.executable}" "$@"\n', 0o755)
    r = doctor(t, "frameworks", env={**cpu, "VIRTUAL_ENV": w.path("venv")})
    t.check("frameworks: listed", r.has("python.python", "ok", "torch 2.11.0", path=w.path("venv/bin/python3"))
            and r.has("python.python", "ok", "jax-cuda12-plugin 0.11.0"), r)
    t.check("torch asks", r.has("python.asks", "ok", "nvidia-cudnn-cu13==9.15.1.9", lowest=91501), r)
    t.check("JAX asks", r.has("python.asks", "ok", "jax-cuda12-plugin", lowest=90800), r)
    t.check("too new", r.has("python.asks", "warning", "newer than what WarpDNN answers", lowest=99901), r)
    t.check("too old", r.has("python.asks", "warning", "another major version", lowest=80907), r)
    t.check("no frontend", not r.has("python.asks", None, "frontend"), r)
    t.check("the packaged library", r.has("python.file", "ok", "cuDNN 9.15.1", path=packaged, version=91501), r)
    t.check("its parts are none", not r.has("python.file", None, "libcudnn_ops"), r)
    r = doctor(t, "a version of our choice", env={**cpu, "VIRTUAL_ENV": w.path("venv"),
                                                   "WARPDNN_CUDNN_VERSION": "99901"})
    t.check("then it is new enough", not r.has("python.asks", "warning", "tensorflow"), r)

    for name, text, words in (
            ("fails", "#!/bin/sh\necho gone wrong >&2; exit 3\n", "ends with status 3: gone wrong"),
            ("is garbage", b"\x7fELF and nothing more", ""),
            ("says nothing", "#!/bin/sh\nexit 0\n", "does not work"),
            ("crashes", "#!/bin/sh\nkill -SEGV $$\n", "crashes"),
            ("hangs", "#!/bin/sh\nsleep 100 & sleep 100\n", "does not answer within 3 s"),
            ("floods", "#!/bin/sh\nexec head -c 20000000 /dev/urandom\n", "does not work")):
        folder = os.path.dirname(w.write(f"{name}/python3", text, 0o755))
        r = doctor(t, f"a Python that {name}", "--timeout", "3",
                   env={**cpu, "PATH": f"{folder}:/usr/bin:/bin"})
        t.check(f"a Python that {name}", r.status == 0 and r.seconds < 60
                and r.has("python.broken", "note", words, path=os.path.join(folder, "python3")), r)
    r = doctor(t, "no Python", env={**cpu, "PATH": w.make_folder("nothing")})
    t.check("no Python", r.status == 0 and r.has("python.none", "note"), r)

    # modules of the folder that it is started in are left alone
    trap = w.make_folder("trap")
    for module in ("json", "glob", "re", "os", "importlib", "torch"):
        w.write(f"trap/{module}.py", f"open({w.path('sprung')!r}, 'w')\n")
    doctor(t, "a folder full of traps", env=cpu, cwd=trap)
    t.check("no trap has sprung", not os.path.exists(w.path("sprung")))


def test_environment(t, w):
    r = doctor(t, "a bad device", env={"WARPDNN_DEVICE": "tpu"})
    t.check("a bad device", r.status == 2 and r.has("environment.value", "wrong", "auto gpu cpu")
            and r.has("handle.default", "wrong"), r)
    r = doctor(t, "odd variables", env={"WARPDNN_DEVICE": "cpu", "WARPDNN_THREADS": "5000",
                                        "WARPDNN_CPU_ISA": "avx", "WARPDNN_TREADS": "2",
                                        "CUDA_VISIBLE_DEVICES": "3"})
    t.check("out of range", r.has("environment.value", "warning", "0 to 1024", name="WARPDNN_THREADS"), r)
    t.check("no such word", r.has("environment.value", "warning", name="WARPDNN_CPU_ISA"), r)
    t.check("misspelt", r.has("environment.unknown", "warning", "WARPDNN_TREADS"), r)
    t.check("in order", r.has("environment.set", "note", name="WARPDNN_DEVICE"), r)
    t.check("hidden devices", r.has("environment.visible", "note", "CUDA_VISIBLE_DEVICES=3"), r)
    r = doctor(t, "a bad word of good ones", env={"WARPDNN_DEVICE": "gpu cpu"})
    t.check("a bad word of good ones", r.status == 2 and r.has("environment.value", "wrong"), r)
    for name, value, status, says in (("no folder", w.path("nowhere/log"), "warning", "No such file"),
                                      ("a folder", w.make_folder("logs"), "warning", "Is a directory"),
                                      ("a file", w.path("logs/new"), None, ""), ("a stream", "stderr", None, ""),
                                      ("nowhere", "", "note", "without CUDNN_LOGDEST_DBG")):
        r = doctor(t, f"log: {name}", env={"WARPDNN_DEVICE": "cpu", "CUDNN_LOGLEVEL_DBG": "1",
                                           "CUDNN_LOGDEST_DBG": value})
        t.check(f"log: {name}", r.has("environment.log", status, says) if status else not r.of("environment.log"), r)
    t.check("no log is made", not os.path.exists(w.path("nowhere")), r)
    for level in ("banana", "9", "-1", "3x"):
        r = doctor(t, f"log level {level}", env={"WARPDNN_DEVICE": "cpu", "CUDNN_LOGLEVEL_DBG": level,
                                                 "CUDNN_LOGDEST_DBG": "stderr"})
        t.check(f"log level {level}", r.has("environment.log", "warning", "no number from 0 to 3"), r)
    with open(os.path.join(tool.SOURCE, "docs", "environment.md"), encoding="utf-8") as text:
        documented = {word for word in text.read().split("`") if word.startswith("WARPDNN_")}
    r = doctor(t, "all of them empty", env={name: "" for name in documented})
    t.check("empty is not set", r.status == 0 and not r.of("environment.value")
            and not r.of("environment.unknown"), r)
    r = doctor(t, "every documented variable", env={name: "1" for name in documented})
    t.check("every documented variable is known", len(documented) >= 8
            and not any(name in f["says"] for f in r.of("environment.unknown") for name in documented), r)


NVML = """
#include <stddef.h>
#include <string.h>
typedef unsigned long long u64;
int nvmlInit_v2(void) { INIT }
int nvmlSystemGetDriverVersion(char *t, unsigned n) { strcpy(t, "580.95.05"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = 0; return 0; }
int nvmlDeviceGetName(void *d, char *t, unsigned n) { strcpy(t, "Test GPU"); return 0; }
int nvmlDeviceGetTemperature(void *d, int k, unsigned *v) { *v = CELSIUS; return 0; }
int nvmlDeviceGetTemperatureThreshold(void *d, int k, unsigned *v) { *v = 90; return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *v) { *v = 250000; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *v) { *v = 700000; return 0; }
int nvmlDeviceGetComputeMode(void *d, unsigned *v) { *v = MODE; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, u64 *v) { *v = CLOCKS; return 0; }
int nvmlDeviceGetTotalEccErrors(void *d, int t, int c, u64 *v) { *v = ECC; return 0; }
int nvmlDeviceGetRemappedRows(void *d, unsigned *a, unsigned *b, unsigned *p, unsigned *f)
{ *a = *b = 0; *p = *f = ROWS; return 0; }
"""
HEALTHY = {"INIT": "return 0;", "CELSIUS": 45, "MODE": 0, "CLOCKS": 1, "ECC": 0, "ROWS": 0}


def test_health(t, w):
    def sick(name, *arguments, **changes):
        text = NVML
        for key, value in {**HEALTHY, **changes}.items():
            text = text.replace(key, str(value))
        folder = f"nvml{len(os.listdir(w.folder))}"
        w.compile(f"{folder}/libnvidia-ml.so.1", text, "-shared", "-fPIC")
        return doctor(t, name, *arguments, env={"WARPDNN_DEVICE": "cpu", "LD_LIBRARY_PATH": w.path(folder)})

    r = sick("a healthy device")
    t.check("healthy", r.status == 0 and r.has("health.device", "ok", "Test GPU", celsius=45, milliwatts=250000)
            and r.has("health.nvml", "ok", driver="580.95.05") and not r.of("health.clocks"), r)
    r = sick("a hot device", CELSIUS=95, CLOCKS=0x44)
    t.check("hot", r.status == 0 and r.has("health.device", "warning", "95 degrees")
            and r.has("health.clocks", "warning", "heat, by hardware")
            and r.has("health.clocks", "note", "power limit"), r)
    r = sick("a device with memory errors", ECC=3)
    t.check("memory errors", r.status == 1 and r.has("health.ecc", "wrong", "3 uncorrected"), r)
    r = sick("worn rows", ROWS=1)
    t.check("worn rows", r.status == 1 and len(r.of("health.rows")) == 2, r)
    r = sick("a forbidden device", MODE=2)
    t.check("forbidden", r.status == 1 and r.has("health.mode", "wrong"), r)
    r = sick("NVML fails", INIT="return 18;")
    t.check("NVML fails", r.has("health.nvml", None, "nvmlInit answers 18"), r)
    r = sick("NVML crashes", INIT="return *(volatile int *)0;")
    t.check("NVML crashes", r.status == 0 and r.has("health.nvml", "warning", "crashes"), r)
    r = sick("NVML hangs", "--timeout", "3", INIT="for (;;);")
    t.check("NVML hangs", r.has("health.nvml", "warning", "does not answer"), r)


def test_kernel_log(t, w):
    cpu = {"WARPDNN_DEVICE": "cpu"}
    log = w.write("log", "[  1.0] NVRM: Xid (PCI:0000:3b:00): 13, pid=7, Graphics Exception\n"
                  "[  2.0] usb 1-1: new device\n"
                  "Nov 20 host kernel: NVRM: Xid (PCI:0000:3b:00): 13, pid=8, again\n"
                  "[  3.0] NVRM: Xid (PCI:0000:3b:00): 999, unheard of\n"
                  "[  4.0] NVRM: Xid (PCI:\n[ 5.0] NVRM: Xid (PCI:0): no number\n[ 6.0] NVRM: Xid (")
    r = doctor(t, "Xid 13", "--kernel-log", log, env=cpu)
    t.check("Xid 13", r.status == 0 and r.has("kernel_log.xid", "warning", "pid=8, again", xid=13, count=2)
            and r.has("kernel_log.xid", "note", xid=999) and len(r.of("kernel_log.xid")) == 2, r)
    log = w.write("log79", b"\x00\xff\xfe binary\n[1] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n")
    r = doctor(t, "Xid 79", "--kernel-log", log, env=cpu)
    t.check("Xid 79", r.status == 1 and r.has("kernel_log.xid", "wrong", "fallen off the bus", xid=79), r)
    r = doctor(t, "an empty log", "--kernel-log", "/dev/null", env=cpu)
    t.check("an empty log", r.status == 0 and r.has("kernel_log.xid", "ok", "no Xid"), r)
    for path in ("/no/such/log", w.folder):
        r = doctor(t, "no log", "--kernel-log", path, env=cpu)
        t.check("no log", r.status == 0 and r.has("kernel_log.closed", "warning", "cannot be read"), r)


def test_library(t, w):
    """The command with other libraries beside it than its own."""
    lib = os.path.dirname(os.path.realpath(LIBRARY))
    tree = w.make_folder("tree", "bin")
    moved = shutil.copy(TOOL, tree)

    def look(name, env=None):
        status, out, err = run([moved, "doctor", "--json"], {"WARPDNN_DEVICE": "cpu", **(env or {})})
        r = Report(status, out, err, 0)
        t.check(f"{name}: quiet", err == "", err)
        return r

    r = look("no library")
    t.check("no library", r.status == 2 and r.has("library.file", "wrong", "missing; looked for"), r)
    w.stand_in("tree/lib")
    r = look("another library")
    t.check("another library", r.status == 2 and r.has("library.file", "wrong", "not WarpDNN"), r)
    shutil.copy(LIBRARY, w.path("tree/lib/libcudnn.so.9"))
    r = look("no CPU module")
    t.check("no CPU module", r.status == 0 and r.has("library.cpu_module", "warning", "no CPU module")
            and r.has("library.checker", "warning"), r)
    r = look("an empty name", {"WARPDNN_CPU_MODULE": ""})
    t.check("an empty name", r.has("library.cpu_module", "note", "is empty"), r)
    if os.path.exists(os.path.join(lib, "libwarpdnn_cpu.so")):
        build = r.of("library.file")[0]["facts"]["build"].encode()
        with open(os.path.join(lib, "libwarpdnn_cpu.so"), "rb") as file:
            module = file.read()
        w.write("tree/lib/libwarpdnn_cpu.so", module.replace(build, b"0" * len(build)), 0o755)
        r = look("a module of another build")
        t.check("a module of another build", r.status == 1 and r.has("library.cpu_module", "wrong", "another build")
                and r.has("handle.log", "note", "another build"), r)
        w.write("tree/lib/libwarpdnn_cpu.so", module, 0o755)
        r = look("a whole tree")
        t.check("a whole tree", r.status == 0 and r.has("library.cpu_module", "ok"), r)
    w.write("tree/lib/libwarpdnn_cpu.so", "text", 0o755)
    r = look("a broken module")
    t.check("a broken module", r.status == 1 and r.has("library.cpu_module", "wrong", "cannot be opened"), r)
    w.write("tree/lib/libcudnn.so.9", b"\x7fELF", 0o755)
    r = look("a broken library")
    t.check("a broken library", r.status == 2 and r.has("library.file", "wrong"), r)


def main():
    t = tool.Checks()
    tool.stop_without(t)
    for part in (test_here, test_arguments, test_fake_driver, test_coverage, test_bad_driver, test_places,
                 test_ugly_places, test_python, test_environment, test_health, test_kernel_log, test_library):
        with tool.World() as w:
            part(t, w)
    return t.finish()


if __name__ == "__main__":
    sys.exit(main())
