#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lint steps of tools/lint, shown what they must refuse and what they must let pass."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
HEAD = "/* SPDX-License-Identifier: Apache-2.0\n *\n * A file of a test, with some words on what it is for. */\n"

# (path, what it includes, allowed)
INCLUDES = [
    ("src/api/a.c", "base/b.h", True),
    ("src/api/a.c", "plan/p.h", True),
    ("src/ops/conv/c.c", "graph/g.h", True),
    ("src/ops/conv/c.c", "ops/engine.h", True),
    ("src/ops/conv/c.c", "ops/pool/pool_def.h", True),
    ("src/ops/conv/c.c", "ops/pool/pool_args.h", True),
    ("src/ops/conv/c.cu", "gpu/u.h", True),
    ("src/base/b.c", "cudnn.h", True),
    ("src/base/b.c", "build_id.h", True),
    ("tests/unit/u_test.c", "plan/p.h", True),
    ("src/base/b.c", "graph/g.h", False),
    ("src/graph/g.c", "ops/engine.h", False),
    ("src/plan/p.c", "api/a.h", False),
    ("src/gpu/u.c", "cpu/c.h", False),
    ("src/cpu/c.c", "gpu/u.h", False),
    ("src/gpu/u.c", "../cpu/c.h", False),
    ("src/ops/conv/c.c", "ops/pool/pool.h", False),
    ("src/ops/conv/c.c", "nowhere.h", False),
    ("src/misc/m.c", "base/b.h", False),
    ("include/cudnn.h", "base/b.h", False),
    ("examples/e.c", "base/b.h", False),
    ("tools/warpdnn/t.c", "base/b.h", False),
    ("tests/api/t_test.c", "graph/g.h", False),
    ("tests/ops/conv_oracle.c", "ops/pool/pool_def.h", False),
]
HEADERS = ["src/api/a.h", "src/plan/p.h", "src/graph/g.h", "src/gpu/u.h", "src/cpu/c.h", "src/base/b.h",
           "src/ops/engine.h", "src/ops/pool/pool.h", "src/ops/pool/pool_def.h",
           "src/ops/pool/pool_args.h", "include/cudnn.h"]

# (path, content, allowed)
FILES = [
    ("src/base/a.c", HEAD + "int a;\n", True),
    ("src/base/long.c", HEAD + "\n" * 900, True),
    ("src/ops/data.def", HEAD + "ROW(1)\n" * 2000, True),
    ("tools/a.py", "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n"
                   '"""What this script is for."""\n', True),
    ("docs/a.md", "No head is needed here.\n", True),
    ("src/base/a.c", "int a;\n", False),
    ("src/base/a.c", "/* SPDX-License-Identifier: Apache-2.0 */\n#include <stdio.h>\n", False),
    ("src/base/long.c", HEAD + "\n" * 1100, False),
    ("src/base/a.c", HEAD + "int a; \n", False),
    ("src/base/a.c", HEAD + "\tint a;\n", False),
    ("src/base/a.c", HEAD + "int a;", False),
    ("docs/a.md", "See /wor" + "k/somewhere.\n", False),
]


def write(root, path, content):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as file:
        file.write(content)


def passes(script, root):
    run = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "lint", script), root],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return run.returncode == 0, run.stdout


def main():
    passed = failed = skipped = 0

    def check(what, got, output, allowed):
        nonlocal passed, failed
        if got == allowed:
            passed += 1
        else:
            failed += 1
            print(f"{what}: {'passes' if got else 'is refused'}, and should not\n{output}")

    for path, name, allowed in INCLUDES:
        with tempfile.TemporaryDirectory() as root:
            for header in HEADERS:
                write(root, header, HEAD)
            write(root, path, HEAD + f'#include "{name}"\n')
            check(f"{path} includes {name}", *passes("floors.py", root), allowed)
    for path, content, allowed in FILES:
        if not shutil.which("git"):  # which files there are is git's to say
            skipped += 1
            continue
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "init", "-q", root], check=True)
            write(root, path, content)
            check(f"{path} of {len(content)} characters", *passes("files.py", root), allowed)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
