#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""warpdnn doctor on the machines that it must be right about: with a GPU, without one, with an old driver,
with NVIDIA's library first on the path; as this build, and as the doctor of a build with kernels, compiled
here. Text, JSON and exit status agree. And device files: missing, closed, in a container, of WSL."""
import os
import shutil
import signal
import subprocess
import sys
import time

import warpdnn_doctor_test as base
import warpdnn_tool as tool
from warpdnn_doctor_test import doctor, fake
from warpdnn_tool import BUILD, LIBRARY, SOURCE, TOOL, run

WARPDNN = os.path.join(SOURCE, "tools", "warpdnn")
NOBODY = 65534


def flags(version, archs):
    return ["-std=c11", "-D_GNU_SOURCE=", '-DWD_VERSION="0"', "-DWD_WITH_CUDA=1", f"-DWD_CUDA_VERSION={version}",
            f'-DWD_CUDA_ARCHS="{archs}"', '-DWARPDNN_FROM_BIN_LIBRARY="../lib/warpdnn"',
            '-DWARPDNN_FROM_BIN_LIBEXEC="../libexec/warpdnn"', "-I" + WARPDNN,
            "-I" + os.path.join(SOURCE, "include"), "-I" + os.path.join(SOURCE, "src"),
            "-I" + os.path.join(BUILD, "generated")]


def cuda_doctor(w, version, archs="sm_80 sm_90a compute_90"):
    """The command of a build by this nvcc, in a tree of its own beside this build's library."""
    sources = [os.path.join(WARPDNN, name) for name in sorted(os.listdir(WARPDNN))
               if name.endswith(".c") and name != "checker.c"]
    tree = f"nvcc{version}"
    w.make_folder(tree, "bin")
    w.make_folder(tree, "lib")
    lib = os.path.dirname(os.path.realpath(LIBRARY))
    shutil.copy(os.path.realpath(LIBRARY), w.path(tree, "lib", "libcudnn.so.9"))
    for name in ("libwarpdnn_cpu.so", "libwarpdnn_run.so"):
        if os.path.exists(os.path.join(lib, name)):
            shutil.copy(os.path.join(lib, name), w.path(tree, "lib"))
    empty = w.write("empty.c", "int warpdnn_test_nothing;\n")
    program = w.path(tree, "bin", "warpdnn")
    subprocess.run([tool.CC, "-w", "-o", program, empty, *flags(version, archs), *sources, "-ldl"], check=True)
    return program


def agree(t, name, env, status, verdict, words, program=TOOL):
    """The text says the same as the JSON, by the same exit status."""
    r = doctor(t, name, env=env, program=program)
    t.check(f"{name}: status {status}, {verdict}", r.status == status and r.data["verdict"] == verdict, r)
    got, out, err = run([program, "doctor"], env)
    flat = " ".join(out.split())
    t.check(f"{name}: text", got == status and out.splitlines()[-1].startswith(f"{verdict}: ") and not err
            and all(word in flat for word in words), (got, out, err))
    got, brief, _ = run([program, "doctor", "--brief"], env)
    t.check(f"{name}: --brief", got == status and ("  ok" not in brief and "  note" not in brief)
            and (status > 0) == ("  wrong" in brief), brief)
    return r


def test_four_machines(t, w):
    nothing = {"LD_LIBRARY_PATH": w.make_folder("nothing")}
    agree(t, "a GPU", fake(), 0, "fine",
          ["serves CUDA 13.0", "compute capability 9.0", "a plain program: cudnnCreate and a first operation work on GPU 0"])
    if not any(os.path.exists(f"/dev/{name}") for name in ("nvidiactl", "nvidia0", "dxg")):
        agree(t, "no GPU", nothing, 0, "fine", ["there is no CUDA driver", "handles compute on the CPU",
                                               "has no NVIDIA device", "NVML cannot be opened"])
    agree(t, "an old driver", fake(version=base.NEEDED - 1000), 2, "unusable",
          [f"serves CUDA {base.NEEDED // 1000 - 1}.0; WarpDNN needs a driver for CUDA {base.NEEDED // 1000}.0",
           "install a newer driver, or build WarpDNN with nvcc"])
    if os.path.exists(tool.CUDA_LIBRARY):
        real = os.path.realpath(tool.CUDA_LIBRARY)
        r = agree(t, "NVIDIA's first on the path", {**fake(), "LD_LIBRARY_PATH": os.path.dirname(real)}, 0, "fine",
                  ["LD_LIBRARY_PATH: ", f"gets {real}: not WarpDNN", "start it by `warpdnn run`", "work on GPU 0"])
        t.check("NVIDIA's first: its version is told", r.has("libcudnn.file", "ok", "cuDNN 9.", warpdnn=False, path=real,
                                                           where="LD_LIBRARY_PATH"), r)
        r = doctor(t, "NVIDIA's preloaded", env={**fake(), "LD_PRELOAD": real})
        t.check("NVIDIA's preloaded: ours is what is asked", r.status == 0
                and r.has("handle.default", "ok", device="gpu") and r.has("libcudnn.plain", "note", path=real), r)
    else:
        t.skip("NVIDIA's library is not installed")


def test_cuda_build(t, w):
    doctors = {version: cuda_doctor(w, version) for version in (12080, 13000)}
    # nvcc, driver, capability; status, finding of the device: verdict, coverage, words
    rows = [(13000, 13000, 90, 0, "ok", "native", "natively (sm_90a)"),
            (13000, 13000, 86, 0, "ok", "native", "natively (sm_80)"),
            (13000, 13010, 120, 0, "note", "jit", "from PTX (compute_90)"),
            (13000, 13000, 75, 1, "wrong", "none", "do not cover it"),
            (13000, 12090, 90, 2, "ok", "native", "natively"),
            (12080, 12080, 90, 0, "ok", "native", "natively"),
            (12080, 12000, 90, 0, "ok", "native", "natively"),
            (12080, 12040, 100, 1, "wrong", "jit", "older than the nvcc that wrote it"),
            (12080, 13000, 100, 0, "note", "jit", "from PTX"),
            (12080, 11080, 80, 1, "ok", "native", "natively")]
    for nvcc, driver, capability, status, verdict, coverage, words in rows:
        name = f"nvcc {nvcc}, driver {driver}, capability {capability}"
        r = doctor(t, name, env=fake(version=driver, capability=capability), program=doctors[nvcc])
        t.check(f"{name}: the device", r.has("driver.device", verdict, words, coverage=coverage,
                                             capability=capability), r)
        old = driver < nvcc // 1000 * 1000
        t.check(f"{name}: the driver", r.has("driver.version", "wrong" if old else "ok", version=driver,
                                             needed=nvcc // 1000 * 1000), r)
        # this build's library has its own opinion of the driver: only what is wrong for the doctor counts
        wrong = [f for f in r.findings if f["verdict"] == "wrong" and not f["id"].startswith("handle.")]
        t.check(f"{name}: status", (status > 0) == bool(wrong), (status, str(r)))
    # where the loader finds a driver by itself
    os.symlink(tool.FAKE_DRIVER, w.path(w.make_folder("driver"), "libcuda.so.1"))
    for driver, verdict in ((13000, "ok"), (12040, "wrong")):
        # the definitions: engines' kernels do nothing on a fake driver without the emulator beside it
        found = {"LD_LIBRARY_PATH": w.path("driver"), "FAKECUDA_DEVICES": "1", "FAKECUDA_VERSION": str(driver),
                 "WARPDNN_ENGINES": "none"}
        r = doctor(t, f"a driver {driver} on the path", env=found, program=doctors[13000])
        t.check(f"a driver {driver} on the path", r.has("driver.version", verdict, version=driver)
                and (r.status > 0) == (verdict == "wrong"), r)
        if not base.WITH_CUDA:
            r = doctor(t, f"a build without kernels, a driver {driver}", env=found)
            t.check(f"a build without kernels, a driver {driver}: its GPU is of no use", r.status == 0
                    and r.has("driver.device", "warning", "no kernels for it")
                    and r.has("handle.default", "ok", device="cpu"), r)
    r = doctor(t, "no GPU, with kernels", env={"LD_LIBRARY_PATH": w.make_folder("nothing")}, program=doctors[13000])
    t.check("no GPU, with kernels", r.has("library.kernels", "ok", "nvcc 13.0 for sm_80 sm_90a compute_90"), r)


NODES = """
#include <stdio.h>
#include "doctor.h"
int main(void)
{
    struct doctor doctor = {.seconds = 5};
    int status;
    doctor_nodes(&doctor);
    report_print_text(&doctor.report, 0);
    status = report_status(&doctor.report);
    report_free(&doctor.report);
    return status;
}
"""


def test_device_files(t, w):
    os.chmod(w.folder, 0o755)
    folder, version = w.make_folder("dev"), w.path("version")
    program = w.compile("nodes", NODES, *flags(13000, ""), f'-DDOCTOR_DEVICE_FOLDER="{folder}"',
                        f'-DDOCTOR_MODULE_VERSION="{version}"',
                        *[os.path.join(WARPDNN, name + ".c") for name in ("doctor_nodes", "probe", "report", "text")])

    module = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23\nGCC\n"

    def look(name, nodes, status, *words, loaded=module, user=None):
        for old in os.listdir(folder):
            os.unlink(os.path.join(folder, old))
        for node, mode in nodes.items():
            os.chmod(w.write(f"dev/{node}", ""), mode)
        if os.path.exists(version):
            os.unlink(version)
        if loaded:
            w.write("version", loaded)
        more = {"preexec_fn": lambda: os.setuid(user)} if user is not None else {}
        got, out, err = run([program], timeout=30, **more)
        flat = " ".join(out.split())
        t.check(name, got == status and all(word in flat for word in words) and not err, (got, out, err))
        return flat

    every = {"nvidiactl": 0o666, "nvidia0": 0o666, "nvidia1": 0o666, "nvidia-uvm": 0o666}
    flat = look("all there", every, 0, "kernel module 580.95.05", "can be opened", f"{folder}/nvidia1")
    t.check("all there: no complaint", "wrong " not in flat.replace("0 wrong", ""), flat)
    look("others are left alone", {**every, "nvidia-caps": 0, "nvidia-modeset": 0, "nvidiax": 0, "null": 0}, 0)
    look("no GPU", {}, 0, f"{folder} has no NVIDIA device: this machine has no GPU", loaded="")
    look("a module without devices", {}, 1, "the kernel module is loaded, but", "pass the devices in")
    look("no uvm", {"nvidiactl": 0o666, "nvidia0": 0o666}, 1, "nvidia-uvm is missing", "nvidia-modprobe -u")
    look("WSL", {"dxg": 0o666}, 0, f"can be opened: {folder}/dxg", loaded="")
    for strange in ("x", "Kernel Module", "Kernel Module \n", b"\xff\x00" * 400, "Kernel Module " + 900 * "7"):
        look("a strange version file", every, 0, "can be opened", loaded=strange)
    look("WSL and nothing else", {"dxg": 0o666, "nvidia-smi": 0o666}, 0, loaded="")
    closed = {**every, "nvidia1": 0o600, "nvidiactl": 0o440}
    if os.geteuid() == 0:
        look("closed to a user", closed, 1, f"{folder}/nvidia1 (mode 0600) cannot be opened: Permission denied",
             f"{folder}/nvidiactl (mode 0440) cannot be opened: Permission denied", "group video or render",
             f"can be opened: {folder}/nvidia", user=NOBODY)
        look("closed, of WSL", {"dxg": 0o600}, 1, "dxg (mode 0600) cannot be opened", loaded="", user=NOBODY)
    else:
        look("closed to a user", {name: 0 if name == "nvidia1" else mode for name, mode in every.items()}, 1,
             f"{folder}/nvidia1 (mode 0000) cannot be opened: Permission denied", "group video or render")


def test_ends(t, w):
    """What takes no report, what is closed, what is interrupted."""
    cpu = {"WARPDNN_DEVICE": "cpu"}
    for words in (["--json"], [], ["--brief"]):
        status, _, err = run(["sh", "-c", 'exec "$0" doctor "$@" > /dev/full', TOOL, *words], cpu)
        t.check(f"a full disk {words}", status == 125 and "cannot be written: No space left" in err, (status, err))
    for closed in ("<&-", "2>&-", "<&- 2>&-"):
        status, out, _ = run(["sh", "-c", f'exec "$0" doctor {closed}', TOOL], cpu)
        t.check(f"closed streams {closed}", status == 0 and "cudnnCreate and a first operation work" in " ".join(out.split()),
                (status, out))
    status, _, _ = run(["sh", "-c", 'exec "$0" doctor >&-', TOOL], cpu)
    t.check("no output", status == 0, status)
    status, out, _ = run([TOOL, "doctor", "--help"])
    t.check("help says the statuses", all(word in out for word in ("0 where", "1 where", "2\nwhere", "125 where")), out)
    with open(os.path.join(SOURCE, "docs", "running.md"), encoding="utf-8") as text:
        paper = text.read()
    t.check("the paper says them too", "**Exit status.** 0: nothing is wrong" in paper and "125: " in paper)

    hang = w.compile("hang.so", base.BAD_DRIVER.replace("BODY", "signal(SIGTERM, SIG_IGN); for (;;) pause();"),
                     "-shared", "-fPIC")
    process = subprocess.Popen([TOOL, "doctor", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**tool.clean_environment(), "WARPDNN_CUDA_DRIVER": hang})

    def children():
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]

    def holds(pid):
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
                return hang in file.read()
        except OSError:
            return False

    deadline = time.monotonic() + 20
    probe = None
    while probe is None and time.monotonic() < deadline:
        probe = next((pid for pid in children() if holds(pid)), None)
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while probe and holds(probe) and time.monotonic() < deadline:
        time.sleep(0.01)
    t.check("^C takes the probe along", process.returncode == -signal.SIGINT and probe and not holds(probe),
            (process.returncode, probe))


def main():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    t = tool.Checks()
    tool.stop_without(t)
    r = doctor(t, "here", env={"WARPDNN_DEVICE": "cpu"})
    if r.has("library.kernels", "ok"):
        base.WITH_CUDA = True
        base.NEEDED = r.of("library.kernels")[0]["facts"]["driver_needed"]
    for part in (test_four_machines, test_cuda_build, test_device_files, test_ends):
        with tool.World() as w:
            part(t, w)
    return t.finish()


if __name__ == "__main__":
    sys.exit(main())
