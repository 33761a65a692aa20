# SPDX-License-Identifier: Apache-2.0
"""Neutral facts of a C header set: what it declares, as sorted lines of text.

extract(folder) compiles every public header of a folder alone with clang and returns a dictionary
from "kind name" to "home | value": enumerators with values, enums and structs with sizes, fields
with types and offsets, typedefs, functions with types, macros with types and values, and which of
them are marked as deprecated. "home" is the first header of HEADERS that shows the name when it is
included alone. The wording, order and comments of a header leave no trace here, so two header sets
are interface-equal when their dictionaries are equal.

Needs clang for the syntax tree; sizes, offsets and macro values come from a small program that the
same compiler builds.
"""

import json
import os
import re
import subprocess
import tempfile

HEADERS = ["cudnn_version.h", "cudnn_graph.h", "cudnn_backend.h", "cudnn_ops.h", "cudnn_cnn.h",
           "cudnn_adv.h", "cudnn.h"]

# Function-like macros are compared by what they yield for these arguments.
MACRO_SAMPLES = {
    1: [("0",), ("1",), ("999",), ("1000",), ("2003",), ("5004",)],
    2: [("0", "0"), ("2000", "3"), ("5000", "4"), ("3000", "999")],
}


class ExtractionError(Exception):
    """The compiler refused a header, or said something this module does not understand."""


def run(command, **kwargs):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, **kwargs)
    if done.returncode != 0:
        raise ExtractionError("%s\n%s" % (" ".join(command), done.stderr.strip()[:4000]))
    return done.stdout


def clean_type(text):
    """One spelling for one type: "struct (unnamed ... at FILE:1:2)" must not name a file."""
    text = re.sub(r"\((unnamed|anonymous)[^)]*\)", "(unnamed)", text)
    return re.sub(r"\s+", " ", text).strip()


def is_deprecated(node):
    return any(child.get("kind") == "DeprecatedAttr" for child in node.get("inner", []))


def location_file(node, state):
    """The file of a declaration. clang prints a file only where it differs from the one before,
    so the whole tree is walked in its printed order."""
    def visit(value):
        if isinstance(value, dict):
            for key, item in value.items():
                if key == "file" and isinstance(item, str):
                    state["file"] = item
                elif key != "includedFrom":
                    visit(item)
        elif isinstance(value, list):
            for item in value:
                visit(item)

    visit(node.get("loc", {}))
    home = state["file"]
    for key, item in node.items():
        if key not in ("loc", "includedFrom"):
            visit(item)
    return home


def enum_constants(node):
    value = -1
    for child in node.get("inner", []):
        if child["kind"] != "EnumConstantDecl":
            continue
        stack = [entry for entry in child.get("inner", []) if entry["kind"] != "DeprecatedAttr"
                 and not entry["kind"].endswith("Comment")]
        value += 1
        while stack:
            entry = stack.pop()
            if "value" in entry and entry["kind"] == "ConstantExpr":
                value = int(entry["value"])
                break
            stack.extend(entry.get("inner", []))
        yield child["name"], value, is_deprecated(child)


def tree_of(folder, header, flags, clang):
    with tempfile.TemporaryDirectory() as scratch:
        source = os.path.join(scratch, "one.c")
        with open(source, "w", encoding="ascii") as out:
            out.write('#include "%s"\n' % header)
        text = run([clang, "-std=c11", "-Wno-everything", "-DCUDNN_WARN_DEPRECATED", "-I", folder,
                    "-fsyntax-only", "-Xclang", "-ast-dump=json"] + flags + [source])
    return json.loads(text)


def declarations(folder, header, flags, clang):
    """Everything that the folder's own headers declare when one of them is included."""
    real = os.path.realpath(folder)
    found = {}
    enums = {}
    state = {"file": ""}
    for node in tree_of(folder, header, flags, clang).get("inner", []):
        path = location_file(node, state)
        if os.path.realpath(os.path.dirname(path)) != real:
            continue
        if not os.path.basename(path).startswith(("cudnn", "warpdnn")):
            continue
        note = " deprecated" if is_deprecated(node) else ""
        name = node.get("name", "")
        if node["kind"] == "EnumDecl":
            enums[node["id"]] = [name, list(enum_constants(node))]
        elif node["kind"] == "TypedefDecl":
            found["typedef " + name] = clean_type(node["type"]["qualType"]) + note
            owner = json.dumps(node)
            for identity, enum in enums.items():
                if not enum[0] and '"%s"' % identity in owner:
                    enum[0] = name
        elif node["kind"] == "RecordDecl":
            if not name:
                raise ExtractionError("%s: a struct without a tag" % path)
            if not node.get("completeDefinition"):
                found.setdefault("struct " + name, "incomplete")
                continue
            found["struct " + name] = "complete"
            for child in node.get("inner", []):
                if child["kind"] == "FieldDecl":
                    found["field %s.%s" % (name, child["name"])] = clean_type(
                        child["type"]["qualType"])
        elif node["kind"] == "FunctionDecl":
            found["function " + name] = clean_type(node["type"]["qualType"]) + note
        elif node["kind"] == "VarDecl":
            found["variable " + name] = clean_type(node["type"]["qualType"]) + note
    for name, constants in enums.values():
        for constant, value, deprecated in constants:
            found["enumerator " + constant] = "%s %d%s" % (name, value,
                                                           " deprecated" if deprecated else "")
        if name:
            found["enum " + name] = ""
    return found


def macros(folder, header, flags, clang):
    """name -> (parameter list or None, text) of the macros that the folder's headers define."""
    with tempfile.TemporaryDirectory() as scratch:
        source = os.path.join(scratch, "one.c")
        with open(source, "w", encoding="ascii") as out:
            out.write('#include "%s"\n' % header)
        text = run([clang, "-std=c11", "-Wno-everything", "-I", folder, "-E", "-dD"] + flags
                   + [source])
    real = os.path.realpath(folder)
    found = {}
    ours = False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            path = marker.group(1)
            ours = (os.path.realpath(os.path.dirname(path)) == real
                    and os.path.basename(path).startswith(("cudnn", "warpdnn")))
        elif ours and line.startswith("#undef "):
            found.pop(line.split()[1], None)
        elif ours and line.startswith("#define "):
            match = re.match(r"#define (\w+)(\([^)]*\))?\s*(.*)$", line)
            found[match.group(1)] = (match.group(2), match.group(3).strip())
    return found


PROBE_HEAD = """
#include <stddef.h>
#include <stdio.h>
#define SHOW(name, x) _Generic((x), \\
    int: show_int, unsigned: show_unsigned, long: show_long, unsigned long: show_ulong, \\
    double: show_double, float: show_double)(name, x)
static void show_int(const char *n, int v) { printf("%s|int %d\\n", n, v); }
static void show_unsigned(const char *n, unsigned v) { printf("%s|unsigned %u\\n", n, v); }
static void show_long(const char *n, long v) { printf("%s|long %ld\\n", n, v); }
static void show_ulong(const char *n, unsigned long v) { printf("%s|ulong %lu\\n", n, v); }
static void show_double(const char *n, double v) { printf("%s|double %.17g\\n", n, v); }
int main(void)
{
"""


def probe(folder, header, found, defined, flags, clang):
    """Sizes, offsets and macro values, asked of a compiled program."""
    body = []
    values = {}
    for name in found:
        kind, rest = name.split(" ", 1)
        if kind == "enum":
            body.append('    printf("%s|size %%zu %%s\\n", sizeof(%s), (%s)-1 < 0 ? "signed" : '
                        '"unsigned");' % (name, rest, rest))
        elif kind == "struct" and found[name] == "complete":
            body.append('    printf("%s|size %%zu align %%zu\\n", sizeof(struct %s), '
                        '_Alignof(struct %s));' % (name, rest, rest))
        elif kind == "field":
            record, field = rest.split(".")
            body.append('    printf("%s|offset %%zu size %%zu %s\\n", offsetof(struct %s, %s), '
                        'sizeof(((struct %s *)0)->%s));' % (name, found[name], record, field,
                                                            record, field))
    for name, (parameters, text) in defined.items():
        if parameters is None and not text:
            values["macro " + name] = "(empty)"
        elif parameters is None and (text.startswith(("__attribute__", "_Pragma", "[["))):
            values["macro " + name] = text
        elif parameters is None:
            body.append('    SHOW("macro %s", (%s));' % (name, name))
        else:
            count = parameters.count(",") + 1
            for sample in MACRO_SAMPLES[count]:
                call = "%s(%s)" % (name, ", ".join(sample))
                body.append('    SHOW("macro %s", %s);' % (call, call))
    with tempfile.TemporaryDirectory() as scratch:
        source = os.path.join(scratch, "probe.c")
        with open(source, "w", encoding="ascii") as out:
            out.write('#include "%s"\n%s%s\n    return 0;\n}\n' % (header, PROBE_HEAD,
                                                                   "\n".join(body)))
        program = os.path.join(scratch, "probe")
        run([clang, "-std=c11", "-Wno-everything", "-I", folder] + flags + [source, "-o", program])
        for line in run([program]).splitlines():
            name, value = line.split("|", 1)
            values[name] = value
    return values


def extract(folder, flags=(), headers=None, clang="clang"):
    """Facts of the headers in a folder: {"kind name": "home | value"}."""
    flags = list(flags)
    facts = {}
    for header in headers or HEADERS:
        found = declarations(folder, header, flags, clang)
        defined = macros(folder, header, flags, clang)
        found.update(probe(folder, header, found, defined, flags, clang))
        warned = macros(folder, header, flags + ["-DCUDNN_WARN_DEPRECATED"], clang)
        for name, (_, text) in warned.items():
            if name in defined and defined[name][1] != text:
                found["macro " + name] = "%s; with CUDNN_WARN_DEPRECATED: %s" % (
                    found["macro " + name], text)
        for name, value in found.items():
            facts.setdefault(name, "%s | %s" % (header, value))
    return facts


def lines(facts):
    """The facts as sorted text, one a line."""
    return ["%s | %s" % (name, facts[name]) for name in sorted(facts)]


def parse(text):
    """The inverse of lines(); lines that start with # are comments."""
    facts = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, rest = line.split(" | ", 1)
            facts[name] = rest
    return facts
