# SPDX-License-Identifier: Apache-2.0
"""What the tests of the warpdnn command share: the build's programs, small C programs and stand-in
libraries compiled on the spot, and the counting of checks."""
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.realpath(os.environ.get("WARPDNN_BUILD", os.path.join(SOURCE, "build")))
TOOL = os.path.join(BUILD, "bin", "warpdnn")
LIBRARY = os.path.join(BUILD, "lib", "libcudnn.so.9")
FAKE_DRIVER = os.path.join(BUILD, "tests", "libfakecuda.so")
CC = os.environ.get("CC") or "cc"
CUDA_LIBRARY = "/usr/local/cuda/lib64/libcudnn.so.9"  # NVIDIA's own, where it is installed

# A libcudnn.so.9 that is not ours: it answers as tests/clients/plain.c asks, and does nothing.
STAND_IN = """
#include <stddef.h>
size_t cudnnGetVersion(void) { BODY return VERSION; }
int cudnnCreate(void **h) { *h = 0; return 0; }
int cudnnDestroy(void *h) { return 0; }
int cudnnCreateTensorDescriptor(void **t) { *t = 0; return 0; }
int cudnnDestroyTensorDescriptor(void *t) { return 0; }
int cudnnSetTensor4dDescriptor(void *t, int a, int b, int n, int c, int h, int w) { return 0; }
int cudnnSetTensor(void *h, void *t, void *y, const void *v) { return 0; }
"""


class Checks:
    """Counts; a failed check prints what it saw."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, name, good, seen=""):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAIL {name}\n     {str(seen)[:3000]}")

    def skip(self, name):
        self.skipped += 1
        print(f"skip {name}")

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed"
              + (f", {self.skipped} skipped" if self.skipped else ""))
        return 1 if self.failed or not self.passed else 0


def clean_environment():
    """This environment without what would change the outcome."""
    return {key: value for key, value in os.environ.items()
            if not key.startswith(("WARPDNN_", "FAKECUDA_", "CUDNN_"))
            and key not in ("LD_PRELOAD", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX")}


class World:
    """A folder to build in, gone at the end."""

    def __init__(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="warpdnn-test-"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for root, folders, _ in os.walk(self.folder):
            for name in folders:
                path = os.path.join(root, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(self.folder)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def make_folder(self, *parts):
        os.makedirs(self.path(*parts), exist_ok=True)
        return self.path(*parts)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(self.path(name), mode)
        return self.path(name)

    def compile(self, output, text, *flags):
        """A program (or library, by the flags) from C text."""
        os.makedirs(os.path.dirname(self.path(output)), exist_ok=True)
        source = self.write(output + ".c", text)
        subprocess.run([CC, "-w", "-o", self.path(output), source, *flags], check=True)
        return self.path(output)

    def library(self, output, text, soname):
        """A shared library whose names carry the version node that libcudnn's do."""
        node = self.write(output + ".map", f"{soname} {{ global: *; }};\n")
        return self.compile(output, text, "-shared", "-fPIC", f"-Wl,-soname,{soname}",
                            f"-Wl,--version-script={node}")

    def stand_in(self, folder, version=91300, body=""):
        """Another libcudnn.so.9 in a folder of its own."""
        text = STAND_IN.replace("VERSION", str(version)).replace("BODY", body)
        return self.library(os.path.join(folder, "libcudnn.so.9"), text, "libcudnn.so.9")


def run(command, env=None, timeout=60, **more):
    """What a command answers: (status, stdout, stderr)."""
    environment = clean_environment()
    environment.update(env or {})
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=timeout, **more)
    return (result.returncode, result.stdout.decode(errors="replace"),
            result.stderr.decode(errors="replace"))


def needs():
    """Why these tests cannot run, or an empty text."""
    if not os.access(TOOL, os.X_OK):
        return f"{TOOL} is not built"
    if not shutil.which(CC):
        return f"there is no compiler ({CC})"
    return ""


def stop_without(checks):
    """Ends the test where something that it needs is missing; a missing program is a failure."""
    why = needs()
    if not why:
        return
    if "compiler" in why:
        checks.skip(why)
        print("0 passed, 0 failed, 1 skipped")
        sys.exit(0)
    checks.check(why, False)
    sys.exit(checks.finish())
