# SPDX-License-Identifier: Apache-2.0
"""Can the ABI checks fail? Each is shown a copy of the headers, of the list of declarations, or of a
small library, with one thing broken, and must complain of exactly that; and must not complain of
the unbroken original."""

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import abi_check  # noqa: E402
import symbols  # noqa: E402
import toolchain  # noqa: E402
from report import Report  # noqa: E402

INCLUDE = os.path.join(abi_check.ROOT, "include")
DECLARATIONS = os.path.join(abi_check.ROOT, "abi", "declarations.txt")
NAMES = os.path.join(abi_check.ROOT, "abi", "exported_symbols.txt")

# Broken declarations: (header, what to replace, by what, what the complaint must contain). They do
# not hide each other, so one copy carries all of them.
DECLARATION_MUTANTS = [
    ("cudnn_graph.h", r"(CUDNN_DATA_HALF\s*= )2,", r"\g<1>22,", "enumerator CUDNN_DATA_HALF: found"),
    ("cudnn_graph.h", r"\n    CUDNN_POINTWISE_TAN\b[^\n]*", "",
     "enumerator CUDNN_POINTWISE_TAN: missing"),
    ("cudnn_graph.h", r"CUDNN_DATA_INT8x4 CUDNN_DEPRECATED_ENUM", "CUDNN_DATA_INT8x4",
     "enumerator CUDNN_DATA_INT8x4: found"),
    ("cudnn_graph.h", r"int64_t numerator;([^}]*)int64_t denominator;",
     r"int64_t denominator;\1int64_t numerator;", "field cudnnFractionStruct.numerator: found"),
    ("cudnn_graph.h", r"int reserved\[15\]", "int reserved[14]", "field cudnnDebugStruct.reserved: "),
    ("cudnn_graph.h", r"#define CUDNN_DIM_MAX 8", "#define CUDNN_DIM_MAX 9",
     "macro CUDNN_DIM_MAX: found"),
    ("cudnn_graph.h", r"/ 1000 \* 1000", "/ 100 * 100", "macro CUDNN_STATUS_CATEGORY(999): "),
    ("cudnn_graph.h", r"typedef void \*cudnnBackendDescriptor_t", "typedef char "
     "*cudnnBackendDescriptor_t", "typedef cudnnBackendDescriptor_t: found"),
    ("cudnn_ops.h", r"(cudnnGetTensorSizeInBytes\([^;]*)size_t \*", r"\1int *",
     "function cudnnGetTensorSizeInBytes: found"),
    ("cudnn_ops.h", r"CUDNN_DEPRECATED (cudnnStatus_t CUDNNWINAPI cudnnAddTensor\()", r"\1",
     "function cudnnAddTensor: found"),
    ("cudnn_ops.h", r"const (cudnnSpatialTransformerDescriptor_t stDesc,\s*const void \*dgrid)",
     r"\1", "function cudnnSpatialTfGridGeneratorBackward: found"),
    ("cudnn_cnn.h", r"CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnIm2Col\([^;]*;", "",
     "function cudnnIm2Col: missing"),
    ("cudnn_cnn.h", r"#define CUDNN_CNN_PATCH 0", "#define CUDNN_CNN_PATCH 0\n"
     "int cudnnInvented(void);", "function cudnnInvented: found"),
    ("cudnn_adv.h", r"(#define CUDNN_ADV_PATCH 0)", r"\1\n#define LOOSE_NAME 1",
     "macro LOOSE_NAME: found"),
    ("cudnn_adv.h", r"cudnnStatus_t CUDNNWINAPI cudnnAdvVersionCheck\(void\);", "",
     "function cudnnAdvVersionCheck: found"),
    ("cudnn.h", r'(#include "cudnn_cnn.h")', "\\1\ncudnnStatus_t CUDNNWINAPI "
     "cudnnAdvVersionCheck(void);", "function cudnnAdvVersionCheck: found cudnn.h"),
]
# Broken headers, each alone: (compiler, header, what, by what, complaint).
HEADER_MUTANTS = [
    ("gcc", "cudnn_adv.h", r'#include "cudnn_ops.h"', "", "cudnn_adv.h, no toolkit"),
    ("gcc", "cudnn_ops.h", r"#pragma GCC diagnostic ignored[^\n]*", "", "DCUDNN_WARN_DEPRECATED"),
    ("gcc", "cudnn_graph.h", r"(#define CUDNN_DEPRECATED_ENUM) __attribute__[^\n]*", r"\1",
     "does not warn"),
    ("g++", "cudnn_ops.h", r"cudnnSetTensor\(cudnnHandle_t handle", "cudnnSetTensor(cudnnHandle_t "
     "template", "g++ -std=c++17 cudnn_ops.h"),
    ("gcc", "cudnn_cnn.h", r"cudnnIm2Col\(", "cudnnIm2Col(int = 0, ", "gcc -std=c11 cudnn_cnn.h"),
    ("gcc", "cudnn_graph.h", r"\n#include <stdint.h>", "", "cudnn_graph.h, no toolkit"),
]
TOOLKIT_MUTANTS = [
    ("gcc", "cudnn_graph.h", r"#if !defined\(__LIBRARY_TYPES_H__\)", "#if 1", "toolkit"),
    ("gcc", "cudnn_graph.h", r"typedef struct CUstream_st \*cudaStream_t",
     "typedef struct other *cudaStream_t", "toolkit last, forced"),
]


def options_for(include=INCLUDE, declarations=DECLARATIONS, toolkit=None, library=None):
    return argparse.Namespace(include=include, declarations=declarations, toolkit=toolkit,
                              symbols=NAMES, library=library)


def complaints(check):
    """What a check says to a fresh report: (number of failures, everything it printed)."""
    inner = Report()
    inner_output = io.StringIO()
    with contextlib.redirect_stdout(inner_output):
        try:
            check(inner)
        except Exception as error:  # pylint: disable=broad-except
            inner.bad(str(error))
    return inner.failed, inner_output.getvalue()


def replace_in(folder, header, pattern, by):
    path = os.path.join(folder, header)
    with open(path, encoding="ascii") as text:
        before = text.read()
    after = re.sub(pattern, by, before, count=1)
    if after == before:
        raise ValueError("nothing in %s matches %s: the mutant is out of date" % (header, pattern))
    with open(path, "w", encoding="ascii") as text:
        text.write(after)


def test_declarations(report):
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "include")
        shutil.copytree(INCLUDE, folder)
        for header, pattern, by, _ in DECLARATION_MUTANTS:
            replace_in(folder, header, pattern, by)
        _, said = complaints(lambda inner: abi_check.check_declarations(
            inner, options_for(include=folder), False))
        for _, _, _, expected in DECLARATION_MUTANTS:
            report.check(expected in said, "no complaint '%s' of broken headers in:\n%s"
                         % (expected, said))
        report.check("clang, assertions" in said and "gcc, assertions" in said,
                     "the static assertions hold for broken headers:\n" + said)

        failed, said = complaints(lambda inner: abi_check.check_declarations(
            inner, options_for(), True))
        report.check(failed == 1 and "no CUDA toolkit" in said,
                     "CI without a toolkit must fail once:\n" + said)

        toolkit = toolchain.find_toolkit(INCLUDE)
        if not toolkit:
            report.skip("no toolkit: whether NVIDIA's side is compared cannot be shown")
            return
        mutant = os.path.join(scratch, "list.txt")
        with open(DECLARATIONS, encoding="ascii") as text:
            kept = [line for line in text if not line.startswith("function cudnnCreate ")]
        with open(mutant, "w", encoding="ascii") as text:
            text.write("".join(kept))
        _, said = complaints(lambda inner: abi_check.check_declarations(
            inner, options_for(declarations=mutant, toolkit=toolkit), False))
        for who in ("NVIDIA's headers", "our headers with a toolkit", "our headers without a"):
            report.check(re.search("FAILED: %s.*function cudnnCreate: found" % who, said),
                         "%s: no complaint of a name that the list lacks:\n%s" % (who, said))


def test_headers(report):
    toolkit = toolchain.find_toolkit(INCLUDE)
    if not toolkit:
        report.skip("no toolkit: mutants of its stand-ins are not shown")
    for compiler, header, pattern, by, expected in HEADER_MUTANTS + (
            TOOLKIT_MUTANTS if toolkit else []):
        if not toolchain.available([compiler]):
            report.skip("no " + compiler)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = os.path.join(scratch, "include")
            shutil.copytree(INCLUDE, folder)
            replace_in(folder, header, pattern, by)
            kit = toolkit if expected.startswith("toolkit") else None
            failed, said = complaints(lambda inner: abi_check.check_headers(
                inner, options_for(include=folder, toolkit=kit), False, [compiler]))
            report.check(failed and expected in said, "%s without '%s': no complaint '%s' in:\n%s"
                         % (header, pattern, expected, said))
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "include")
        shutil.copytree(INCLUDE, folder)
        with open(os.path.join(folder, "stray.h"), "w", encoding="ascii"):
            pass
        _, said = complaints(lambda inner: abi_check.check_headers(
            inner, options_for(include=folder), False, []))
        report.check("stray.h" in said, "no complaint of a stray header:\n" + said)


class Stub:
    """A library with the right names and nothing behind them, to be built right or wrong."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.soname = symbols.NODE
        with open(NAMES, encoding="ascii") as text:
            self.names = text.read().split()
        with open(os.path.join(INCLUDE, "warpdnn.h"), encoding="ascii") as text:
            self.own = sorted(set(re.findall(r"\b(warpdnn\w+)\(", text.read())))
        self.version = 91900
        self.code = ""
        self.flags = ["-Wl,-Bsymbolic", "-Wl,-z,now"]

    def build(self):
        lines = ["#include <stddef.h>", self.code]
        lines += ["int %s(void) { return 0; }" % name for name in self.names + self.own
                  if name != "cudnnGetVersion" and not re.search(r"\b%s\b" % name, self.code)]
        lines.append("size_t cudnnGetVersion(void) { return %d; }" % self.version)
        source = os.path.join(self.scratch, "stub.c")
        with open(source, "w", encoding="ascii") as out:
            out.write("\n".join(lines) + "\n")
        script = os.path.join(self.scratch, "stub.map")
        with open(script, "w", encoding="ascii") as out:
            out.write("%s { global: %s; };\n%s { global: %s; local: *; };\n"
                      % (symbols.NODE, "; ".join(self.names), symbols.OWN_NODE,
                         "; ".join(self.own)))
        library = os.path.join(self.scratch, "libcudnn.so.9")
        subprocess.run(["gcc", "-shared", "-fPIC", "-w", source, "-o", library,
                        "-Wl,-soname," + self.soname, "-Wl,--version-script=" + script]
                       + self.flags, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return library


def without(stub, name):
    stub.names.remove(name)


def with_dependency(stub):
    other = os.path.join(stub.scratch, "libother.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", other,
                    "-Wl,-soname,libother.so"], check=True)
    stub.flags += ["-Wl,--no-as-needed", other]


LIBRARY_MUTANTS = [
    (lambda s: without(s, "cudnnCreate"), "cudnnCreate: missing"),
    (lambda s: s.names.append("cudnnInvented"), "cudnnInvented: found"),
    (lambda s: s.own.append("warpdnnInvented"), "warpdnnInvented: found"),
    (lambda s: (without(s, "cudnnCreate"), s.own.append("cudnnCreate")), "cudnnCreate: found"),
    (lambda s: s.own.remove("warpdnnMalloc"), "warpdnnMalloc: missing"),
    (lambda s: setattr(s, "code", "int cudnnCreate = 1;"), "cudnnCreate: found libcudnn.so.9 OBJECT"),
    (lambda s: setattr(s, "code", "__attribute__((weak)) int cudnnCreate(void) { return 0; }"),
     "cudnnCreate: found libcudnn.so.9 FUNC WEAK"),
    (lambda s: setattr(s, "soname", "libcudnn.so"), "SONAME"),
    (with_dependency, "needs libother.so"),
    (lambda s: setattr(s, "code", "__attribute__((constructor)) static void begin(void) {}"),
     "init_array holds 2"),
    (lambda s: setattr(s, "code", "__attribute__((destructor)) static void end(void) {}"),
     "fini_array holds 2"),
    (lambda s: s.flags.append("-Wl,-rpath,/somewhere"), "run path"),
    (lambda s: s.flags.append("-Wl,-z,execstack"), "executable stack"),
    (lambda s: (s.flags.remove("-Wl,-Bsymbolic"), setattr(
        s, "code", "int cudnnDestroy(void); int cudnnCreate(void) { return cudnnDestroy(); }\n"
        "int cudnnDestroy(void) { return 0; }")), "through exported names"),
    (lambda s: setattr(s, "version", 90000), "said '90000'"),
]


def test_library(report):
    if not toolchain.available(["gcc"]):
        report.skip("no gcc to build stub libraries with")
        return
    for mutate, expected in [(lambda s: None, None)] + LIBRARY_MUTANTS:
        with tempfile.TemporaryDirectory() as scratch:
            stub = Stub(scratch)
            mutate(stub)
            options = options_for(library=stub.build())

            def check(inner, options=options):
                symbols.check(inner, options.library, options.symbols,
                              os.path.join(INCLUDE, abi_check.OWN_HEADER))
                abi_check.check_linking(inner, options)

            failed, said = complaints(check)
            if expected is None:
                report.check(not failed, "a good library is refused:\n" + said)
            else:
                report.check(failed and expected in said, "no complaint '%s' of a broken library "
                             "in:\n%s" % (expected, said))


def main():
    report = Report()
    test_declarations(report)
    test_headers(report)
    test_library(report)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
