# SPDX-License-Identifier: Apache-2.0
"""What a built libcudnn.so.9 promises to the loader: names, version nodes, SONAME, dependencies,
and nothing that runs before the program asks for it. Reads the file with readelf."""

import os
import re

from toolchain import run

NODE = "libcudnn.so.9"
OWN_NODE = "WARPDNN_1"
MAY_NEED = r"(libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux-[\w-]+\.so\.\d)$"


def readelf(library, *flags):
    status, text, log = run(["readelf", "--wide"] + list(flags) + [library])
    if status != 0:
        raise OSError("readelf %s %s: %s" % (" ".join(flags), library, log.strip()))
    return text


def is_sanitized(library):
    """Sanitizers bring dependencies, constructors and names of their own."""
    return re.search(r" UND __(asan|tsan|ubsan)_", readelf(library, "--dyn-syms")) is not None


def exports(library):
    """{"name": "node kind"} of everything that the library defines for others."""
    found = {}
    for line in readelf(library, "--dyn-syms").splitlines():
        match = re.match(r"\s*\d+: [0-9a-f]+ +\S+ (\w+) +(\w+) +(\w+) +(\w+) (\S+)", line)
        if not match:
            continue
        kind, bind, visibility, section, name = match.groups()
        if section == "UND" or bind == "LOCAL" or (section == "ABS" and name in (NODE, OWN_NODE)):
            continue
        name, _, node = name.partition("@@")
        found[name] = " ".join([node or "no default node", kind, bind, visibility])
    return found


def nodes(library):
    """The version nodes that the library defines, its base version (the file's name) left out."""
    text = readelf(library, "-V").split(".gnu.version_d")
    if len(text) < 2:
        return set()
    text = text[1].split(".gnu.version_r")[0]
    return {name for flags, name in re.findall(r"Flags: (\S+) .*Name: (\S+)", text)
            if flags != "BASE"}


def check_starts_nothing(report, library, dynamic):
    """The compiler's own entry (frame_dummy of crtbegin) is the only one allowed in .init_array."""
    for tag, allowed in (("INIT_ARRAYSZ", "frame_dummy"), ("FINI_ARRAYSZ", "__do_global_dtors_aux"),
                         ("PREINIT_ARRAYSZ", None)):
        sizes = re.findall(r"\(%s\)\s+(\d+)" % tag, dynamic)
        entries = int(sizes[0]) // 8 if sizes else 0
        report.check(entries <= (1 if allowed else 0),
                     "%s: %s holds %d functions; the library must have no constructors and no "
                     "destructors" % (library, tag[:-2].lower(), entries))
    report.check("TEXTREL" not in dynamic, "%s: has text relocations" % library)
    names = re.findall(r" (\S+)$", readelf(library, "-s"), re.M)
    ours = [name for name in names if name.startswith(("_GLOBAL__sub_I", "__cxx_global_var_init"))]
    report.check(not ours, "%s: has static initialisers: %s" % (library, ours))


def check(report, library, names_file, own_header):
    library = os.path.realpath(library)
    dynamic = readelf(library, "-d")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    with open(names_file, encoding="ascii") as text:
        expected = {line.strip(): NODE for line in text if re.match(r"[A-Za-z_]", line)}
    report.check(len(expected) == 224, "%s: %d names, expected 224" % (names_file, len(expected)))
    with open(own_header, encoding="ascii") as text:
        code = re.sub(r"/\*.*?\*/", "", text.read(), flags=re.S)
    expected.update({name: OWN_NODE for name in re.findall(r"\b(warpdnn\w+)\(", code)})
    expected = {name: node + " FUNC GLOBAL DEFAULT" for name, node in expected.items()}
    report.same("exports", expected, exports(library))
    report.check(nodes(library) == {NODE, OWN_NODE},
                 "%s: version nodes are %s, expected %s and %s"
                 % (library, sorted(nodes(library)), NODE, OWN_NODE))
    soname = re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)
    report.check(soname == [NODE], "%s: SONAME is %s, expected %s" % (library, soname, NODE))
    for name in needed:
        report.check(re.match(MAY_NEED, name), "%s: needs %s; only libc, libm, libdl and "
                     "libpthread are allowed" % (library, name))
    report.check("RPATH" not in dynamic and "RUNPATH" not in dynamic,
                 "%s: has a run path" % library)
    check_starts_nothing(report, library, dynamic)
    stack = re.findall(r"GNU_STACK.*", readelf(library, "-l"))
    report.check(stack and "RWE" not in stack[0], "%s: asks for an executable stack" % library)
    through = sorted(set(re.findall(r"\b(?:cudnn|warpdnn)\w+(?=@)", readelf(library, "-r"))))
    report.check(not through, "%s: reaches its own functions through exported names, where another "
                 "libcudnn may answer: %s" % (library, through))
