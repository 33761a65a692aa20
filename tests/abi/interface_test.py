# SPDX-License-Identifier: Apache-2.0
"""Runs abi_check.py, whole, on the library of the build folder WARPDNN_BUILD (build/ by default).
Builds with sanitizers say nothing about the interface and are skipped."""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import abi_check  # noqa: E402

BUILD = os.environ.get("WARPDNN_BUILD") or os.path.join(abi_check.ROOT, "build")


def is_sanitized():
    try:
        with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
            return bool(re.search(r"^WARPDNN_SANITIZE:\w+=.+$", cache.read(), re.M))
    except OSError:
        return False


if is_sanitized():
    print("skipped: %s is built with sanitizers" % BUILD)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)
sys.argv = [sys.argv[0], "--library", os.path.join(BUILD, "lib", "libcudnn.so.9")]
sys.exit(abi_check.main())
