#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is what we declare and export the cuDNN 9.19 interface, no more and no less?

  declarations  our headers against abi/declarations.txt, the neutral list of what 9.19 declares:
                enumerators, sizes, offsets, types, macros, deprecation; and the list against
                NVIDIA's own headers, where a toolkit is installed
  headers       each header alone: C11, C++17, gcc, clang, with a toolkit, without, and with our
                declarations in place of it, with and without deprecation warnings; no warning
  symbols       a built library's names, version nodes and dependencies (with --library); and
                programs that use every function link to it, from our headers and from NVIDIA's

Usage: abi_check.py [--library FILE] [--only PART]... [--include DIR] [--declarations FILE]
                    [--symbols FILE] [--toolkit DIR|none] [--write]

--write makes abi/declarations.txt from the toolkit's headers. The last line is "N passed, N failed"
with ", N skipped" where parts could not run; in CI (CI=true) a missing toolkit, library or compiler
is a failure.
"""

import argparse
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import facts  # noqa: E402
import symbols  # noqa: E402
import toolchain  # noqa: E402
from report import Report  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OWN_HEADER = "warpdnn.h"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LANGUAGES = {"gcc": ("c", "-std=c11"), "clang": ("c", "-std=c11"),
             "g++": ("c++", "-std=c++17"), "clang++": ("c++", "-std=c++17")}
# What cudnn_graph.h declares in place of an absent toolkit.
STAND_INS = {
    "enum libraryPropertyType_t", "typedef libraryPropertyType", "typedef libraryPropertyType_t",
    "enumerator MAJOR_VERSION", "enumerator MINOR_VERSION", "enumerator PATCH_LEVEL",
    "struct CUgraph_st", "struct CUstream_st", "typedef cudaGraph_t", "typedef cudaStream_t",
}


def is_extension(name):
    return name.split(" ", 1)[1].lower().startswith("warpdnn")


def release_of(found):
    return found.get("macro CUDNN_VERSION", "").split(" | ")[-1]


def assertions(listed):
    """A C program of static assertions that holds where a header set agrees with the list."""
    lines = ['#include "cudnn.h"', "#include <stddef.h>", "#define SAME __builtin_types_compatible_p"]
    checks = []
    for name in sorted(listed):
        kind, rest = name.split(" ", 1)
        value = listed[name].split(" | ", 1)[1].replace(" deprecated", "")
        if kind == "enumerator":
            checks.append("%s == %s" % (rest, value.split()[-1]))
        elif kind in ("enum", "struct") and value.startswith("size"):
            checks.append("sizeof(%s%s) == %s" % ("struct " if kind == "struct" else "", rest,
                                                  value.split()[1]))
        elif kind == "field":
            record, field = rest.split(".")
            checks.append("offsetof(struct %s, %s) == %s" % (record, field, value.split()[1]))
        elif kind == "function":
            checks.append("SAME(__typeof__(%s), %s)" % (rest, value))
        elif kind == "typedef" and not value.startswith("enum"):
            checks.append("SAME(%s, %s)" % (rest, value))
        elif kind == "macro" and re.match(r"(int|unsigned) ", value):
            checks.append("(%s) == %s" % (rest, value.split()[1]))
    lines += ['_Static_assert(%s, "%s");' % (check, check.replace('"', "'")) for check in checks]
    lines.append("int main(void) { return 0; }")
    return "\n".join(lines) + "\n", len(checks)


def check_declarations(report, options, in_ci):
    with open(options.declarations, encoding="ascii") as text:
        listed = facts.parse(text.read())
    sets = [("our headers", options.include, facts.HEADERS + [OWN_HEADER], listed)]
    report.check(len(listed) > 1300, "%s: only %d facts" % (options.declarations, len(listed)))
    toolkit = options.toolkit
    if not toolkit:
        report.skip("no CUDA toolkit with NVIDIA's cudnn.h: our headers are held against the list "
                    "only", fail=in_ci)
    if toolchain.available(["clang"]):
        with tempfile.TemporaryDirectory() as scratch:
            bare = toolchain.without_toolkit("clang", "c", scratch)
            found = facts.extract(options.include, bare, sets[0][2])
            report.same("our headers without a toolkit", listed, found,
                        lambda name: is_extension(name) or name in STAND_INS)
        if toolkit:
            found = facts.extract(options.include, ["-I", toolkit], sets[0][2])
            report.same("our headers with a toolkit", listed, found, is_extension)
            theirs = facts.extract(toolkit)
            if release_of(theirs) == release_of(listed):
                report.same("NVIDIA's headers", listed, theirs)
            else:
                report.skip("the toolkit's cuDNN is %s, the list is of %s"
                            % (release_of(theirs), release_of(listed)), fail=in_ci)
    else:
        report.skip("no clang to read declarations with; static assertions alone", fail=in_ci)
    program, count = assertions(listed)
    for compiler in toolchain.available(["gcc", "clang"]):
        for folder in [options.include] + ([toolkit] if toolkit else []):
            command = [compiler, "-std=c11", "-Wno-deprecated-declarations", "-fsyntax-only", "-x",
                       "c", "-I", folder, "-"]
            status, _, log = toolchain.run(command, program)
            if status == 0:
                report.good(count)
            else:
                for line in [line for line in log.splitlines() if "error:" in line][:12]:
                    report.bad("%s, assertions: %s" % (compiler, line))


def header_variants(options, compiler, language, scratch):
    """(name, text before the header, text after it, flags) of the ways to include a header."""
    bare = toolchain.without_toolkit(compiler, language, scratch)
    yield "no toolkit", "", "", bare
    yield "no toolkit, forced", "#define WARPDNN_NO_CUDA_HEADERS\n", "", bare
    if options.toolkit:
        runtime = "#include <cuda_runtime_api.h>\n"
        kit = bare + ["-isystem", options.toolkit]
        yield "toolkit", "", "", kit
        yield "toolkit first", runtime, "", kit
        yield "toolkit last, forced", "#define WARPDNN_NO_CUDA_HEADERS\n", runtime, kit
        yield "toolkit first, forced", "#define WARPDNN_NO_CUDA_HEADERS\n" + runtime, "", kit


def check_headers(report, options, in_ci, compilers=tuple(LANGUAGES)):
    headers = facts.HEADERS + [OWN_HEADER]
    found = {name for name in os.listdir(options.include) if name.endswith(".h")}
    report.check(found == set(headers), "%s holds %s, expected %s"
                 % (options.include, sorted(found), sorted(headers)))
    for compiler in compilers:
        language, standard = LANGUAGES[compiler]
        if not toolchain.available([compiler]):
            report.skip("no " + compiler, fail=in_ci)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            for name, before, after, flags in header_variants(options, compiler, language, scratch):
                base = [compiler, standard] + STRICT + flags + ["-I", options.include,
                                                                "-fsyntax-only", "-x", language]
                for header in headers:
                    text = '%s#include "%s"\n%sint main(void);\n' % (before, header, after)
                    for define in ([], ["-DCUDNN_WARN_DEPRECATED"]):
                        status, _, log = toolchain.run(base + define + ["-"], text)
                        report.check(status == 0, "%s %s %s, %s %s: %s" % (
                            compiler, standard, header, name, " ".join(define), log[:600]))
                use = ('%s#include "cudnn.h"\n%sint main(void) { return cudnnAddTensor(NULL, NULL, '
                       'NULL, NULL, NULL, NULL, NULL) == CUDNN_STATUS_ALLOC_FAILED; }\n'
                       % (before, after))
                quiet = toolchain.run(base + ["-"], use)
                warned = toolchain.run(base + ["-DCUDNN_WARN_DEPRECATED", "-"], use)
                report.check(quiet[0] == 0, "%s, %s: legacy use is not silent: %s"
                             % (compiler, name, quiet[2][:600]))
                report.check(warned[0] != 0 and "cudnnAddTensor" in warned[2] and
                             "CUDNN_STATUS_ALLOC_FAILED" in warned[2],
                             "%s, %s: CUDNN_WARN_DEPRECATED does not warn" % (compiler, name))


def linking_program(names, own):
    """A program, in C and in C++, that refers to every function and says which library it got."""
    lines = ["#include <stdio.h>", '#include "cudnn.h"'] + (['#include "warpdnn.h"'] if own else [])
    lines += ["typedef void (*any_t)(void);", "static any_t volatile all[] = {"]
    lines += ["    (any_t)%s," % name for name in names]
    lines += ["};", "int main(void)", "{",
              "    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) if (!all[i]) return 2;",
              '    printf("%zu\\n", cudnnGetVersion());', "    return 0;", "}"]
    return "\n".join(lines) + "\n"


def check_linking(report, options):
    """Programs built from either header set find every function under the node they ask for."""
    with open(options.declarations, encoding="ascii") as text:
        listed = facts.parse(text.read())
    names = [name.split()[1] for name in listed if name.startswith("function ")]
    with open(os.path.join(options.include, OWN_HEADER), encoding="ascii") as text:
        code = re.sub(r"/\*.*?\*/", "", text.read(), flags=re.S)
    own = sorted(set(re.findall(r"\b(warpdnn\w+)\(", code)))
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "lib")
        os.mkdir(folder)
        library = os.path.realpath(options.library)
        for name in ("libcudnn.so", "libcudnn.so.9"):
            os.symlink(library, os.path.join(folder, name))
        for compiler, (language, standard) in LANGUAGES.items():
            if not toolchain.available([compiler]):
                continue
            for who, include in (("our", options.include), ("NVIDIA's", options.toolkit)):
                if not include:
                    continue
                wanted = names + (own if who == "our" else [])
                source = os.path.join(scratch, "all." + ("c" if language == "c" else "cc"))
                with open(source, "w", encoding="ascii") as out:
                    out.write(linking_program(wanted, who == "our"))
                program = os.path.join(scratch, "all")
                command = [compiler, standard, "-w", "-I", include, source, "-o", program, "-L",
                           folder, "-lcudnn", "-Wl,--disable-new-dtags,-rpath," + folder]
                status, _, log = toolchain.run(command)
                what = "%s, %s headers" % (compiler, who)
                report.check(status == 0, "%s: does not link: %s" % (what, log[:250]))
                if status != 0:
                    continue
                status, text, log = toolchain.run([program])
                report.check(status == 0 and text.strip() == release_of(listed).split()[-1],
                             "%s: ran with status %s and said '%s' '%s'; expected %s"
                             % (what, status, text.strip(), log.strip(), release_of(listed)))
                got = {(name, node) for name, node in re.findall(
                    r"UND (cudnn\w+|warpdnn\w+)@(\S+)", symbols.readelf(program, "--dyn-syms"))}
                report.check(got == {(name, symbols.OWN_NODE if name in own else symbols.NODE)
                                     for name in wanted}, "%s: version nodes differ" % what)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("Usage: ")[1].split("\n\n")[0])
    parser.add_argument("--library")
    parser.add_argument("--only", action="append", choices=["declarations", "headers", "symbols"])
    parser.add_argument("--include", default=os.path.join(ROOT, "include"))
    parser.add_argument("--declarations", default=os.path.join(ROOT, "abi", "declarations.txt"))
    parser.add_argument("--symbols", default=os.path.join(ROOT, "abi", "exported_symbols.txt"))
    parser.add_argument("--toolkit")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    in_ci = os.environ.get("CI") == "true"
    if options.toolkit is None:
        options.toolkit = toolchain.find_toolkit(options.include)
    elif options.toolkit == "none":
        options.toolkit = None
    report = Report()
    parts = options.only or ["declarations", "headers", "symbols"]
    try:
        if options.write:
            if not options.toolkit:
                sys.exit("abi_check.py --write: there is no toolkit with NVIDIA's cudnn.h")
            with open(options.declarations, "w", encoding="ascii") as out:
                out.write("# What the public C headers of cuDNN 9.19 declare: kind name | first "
                          "header that shows it | value.\n# Written by tests/abi/abi_check.py "
                          "--write; compared by tests/abi/abi_check.py.\n")
                out.write("\n".join(facts.lines(facts.extract(options.toolkit))) + "\n")
            return 0
        if options.library and symbols.is_sanitized(options.library):
            report.skip("a build with sanitizers says nothing about the interface")
            return report.finish()
        if "declarations" in parts:
            check_declarations(report, options, in_ci)
        if "headers" in parts:
            check_headers(report, options, in_ci)
        if "symbols" in parts:
            if options.library:
                symbols.check(report, options.library, options.symbols,
                              os.path.join(options.include, OWN_HEADER))
                check_linking(report, options)
            else:
                report.skip("no --library to look at", fail=in_ci)
    except (facts.ExtractionError, OSError) as error:
        report.bad(str(error))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
