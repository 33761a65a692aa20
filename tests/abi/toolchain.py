# SPDX-License-Identifier: Apache-2.0
"""Compilers for the ABI tests: which are installed, and include paths with and without a CUDA
toolkit, wherever the machine keeps it."""

import os
import shutil
import subprocess

TOOLKIT_FILES = ("cuda_runtime_api.h", "library_types.h", "driver_types.h")


def run(command, text=None):
    """(exit status, stdout, stderr) of a command that reads text."""
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def available(names):
    return [name for name in names if shutil.which(name)]


def find_toolkit(own):
    """The include folder of an installed toolkit that has NVIDIA's cudnn.h, or None. Folders with
    our own headers do not count."""
    candidates = [os.path.join(os.environ[name], "include") for name in ("CUDA_HOME", "CUDA_PATH")
                  if os.environ.get(name)]
    candidates += ["/usr/local/cuda/include", "/usr/include", "/usr/include/x86_64-linux-gnu",
                   "/usr/local/include"]
    for folder in candidates:
        header = os.path.join(folder, "cudnn_graph.h")
        if not os.path.isfile(header) or os.path.realpath(folder) == os.path.realpath(own):
            continue
        with open(header, encoding="utf-8", errors="replace") as text:
            if "WARPDNN_NO_CUDA_HEADERS" not in text.read():
                return folder
    return None


def system_folders(compiler, language):
    """The folders that the compiler searches for <...>."""
    status, _, log = run([compiler, "-v", "-x", language, "-E", "-"], "")
    if status != 0:
        raise OSError("%s -v fails: %s" % (compiler, log))
    folders = []
    inside = False
    for line in log.splitlines():
        if line.startswith("#include <"):
            inside = True
        elif line.startswith("End of search list"):
            break
        elif inside:
            folders.append(line.strip())
    return folders


def without_toolkit(compiler, language, scratch):
    """Flags that hide a toolkit which lies in the compiler's own include folders: such a folder is
    replaced by one of links to everything in it but the toolkit's headers."""
    flags = ["-nostdinc"]
    for number, folder in enumerate(system_folders(compiler, language)):
        if any(os.path.exists(os.path.join(folder, name)) for name in TOOLKIT_FILES):
            mirror = os.path.join(scratch, "%s-%d" % (os.path.basename(compiler), number))
            if not os.path.isdir(mirror):
                os.mkdir(mirror)
                for entry in os.listdir(folder):
                    if entry not in TOOLKIT_FILES:
                        os.symlink(os.path.join(folder, entry), os.path.join(mirror, entry))
            folder = mirror
        flags += ["-isystem", folder]
    return flags
