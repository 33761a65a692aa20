#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pack_image makes of the build's PTX still means the same, as a reader of PTX of the test's own finds
(ptx_text.py): every register that is read holds what the same instruction wrote. And that reader finds the
faults that are planted in such text.

One function of every SHARE, in all modules; all of them if WARPDNN_TEST_ALL=1 (a minute or two). Needs a
build with GPU kernels; without one the test is skipped."""
import collections
import glob
import os
import random
import re
import subprocess
import sys
import tempfile

import ptx_text
import warpdnn_tool as tool
from ptx_text import Wrong

KERNELS = os.path.join(tool.BUILD, "kernels")
PACK = os.path.join(KERNELS, "pack_image")
SHARE = 1 if os.environ.get("WARPDNN_TEST_ALL", "0") not in ("", "0") else 10
PLANTED = 24  # functions that get faults
# Pattern, what it becomes; the group alone is changed, at its first place in a small module.
EDITS = (
    (r",(\d+);", "99"), (r"\b(add\.s32)", "sub.s32"), (r"\b(setp\.lt\.s32)", "setp.lt.u32"),
    (r"\.maxntid (\d+)", "64"), (r"\.minnctapersm (\d+)", "9"), (r"\.param \.align (\d+)", "4"),
    (r"\.shared \.align (\d+)", "32"), (r"\.shared[^;]*\[(\d+)\]", "4"), (r"\.param[^;]*\[(\d+)\]", "4096"),
    (r"\.entry (wd_)", "wd_x"), (r"@()%", "!"), (r"\bbra (\$0);", "$1"), (r"\]\s*;\s*([a-z][^;{}]*;)", ""),
    (r"\+(\d+)\]", "2"), (r"\.reg \.b32 %r<(\d+)>", "1"), (r"\.reg (\.b32) %r<", ".u32"),
    (r"\.target (sm_90)", "sm_80"), (r"%tid\.(x)", "y"), (r"%(tid)\.x", "ctaid"), (r"(\.pragma [^;]*;)", ""),
    (r"\.global[^;{]*\{(\d+)", "77"), (r"\.version (\S+)", "8.0"), (r"\[(_1)\]", "_0"), (r"(\bret;)", ""),
    (r"(\.visible) \.entry", ""), (r"(\$0:)", ""), (r"\b(bra)\b", "brx"), (r",(0f[0-9A-F]+);", "0f3F800001"))


def shrunk(path, folder):
    out = os.path.join(folder, "shrunk.ptx")
    done = subprocess.run([PACK, "--text", path, out], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Wrong(f"pack_image: {done.stderr.strip()}")
    return read(out)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def fault(one, other):
    """What the reader finds: nodes that differ, registers, or nothing."""
    try:
        ptx_text.same_nodes(one, other)
    except Wrong:
        return "nodes"
    try:
        ptx_text.same_registers(one, other)
    except Wrong:
        return "registers"
    return ""


def walks_differ(one, other, dice):
    """Does a random walk through both functions at once read a register that other nodes wrote last?"""
    for _ in range(60):
        node, wrote, other_wrote = 0, {}, {}
        for _ in range(1500):
            for ours, theirs in zip(one.reads[node], other.reads[node]):
                if wrote.get(ours) != other_wrote.get(theirs):
                    return True
            if not one.maybe[node] or dice.random() < 0.5:
                for place, (ours, theirs) in enumerate(zip(one.writes[node], other.writes[node])):
                    wrote[ours] = other_wrote[theirs] = node, place
            if not one.leads[node]:
                break
            node = dice.choice(one.leads[node])
    return False


def again(function, body):
    """The function with another body."""
    result = ptx_text.Function(function.name, function.parameters, function.scopes[0])
    result.parse(body, 0)
    return result


def peers(function):
    """By type the names of numbered registers of the whole function, where there is more than one."""
    times = collections.Counter(function.names)
    found = collections.defaultdict(list)
    for name, what in function.scopes[1].items():
        if isinstance(what, int) and times[name] == 1 and name[-1].isdigit():
            found[function.types[what]].append(name)
    return {kind: names for kind, names in found.items() if len(names) > 1}


def operands(function):
    """[(place in the body, name, type)] of the operands that are such registers."""
    kind_of = {name: kind for kind, names in peers(function).items() for name in names}
    return [(start - function.start + name.start(), name.group(), kind_of[name.group()])
            for start, end in filter(None, function.spans)
            for name in ptx_text.NAME.finditer(function.text[start:end]) if name.group() in kind_of]


def one_operand(function, body, dice):
    """The body with another register of its type for one operand."""
    start, name, kind = dice.choice(operands(function))
    new = dice.choice([peer for peer in peers(function)[kind] if peer != name])
    return body[:start] + new + body[start + len(name):]


def renamed(body, names):
    return ptx_text.NAME.sub(lambda match: names.get(match.group(), match.group()), body)


def two_registers(function, dice):
    """Two registers of one type that are near each other, where there are such."""
    places = operands(function)
    while True:
        here = dice.randrange(len(places))
        names = {name for _, name, kind in places[here:here + 40] if kind == places[here][2]}
        if len(names) > 1:
            return dice.sample(sorted(names), 2)


def plant(t, pairs):
    """Faults of registers. What a walk shows to be one must be found; others may be none."""
    dice = random.Random(11)
    planted = collections.Counter()
    changed = collections.Counter()
    unseen = collections.Counter()  # faults that no walk came by
    missed, refused = [], []
    for original, small in pairs:
        for kind in ("operand",) * 6 + ("shared",) * 4 + ("swapped",):
            function = original if kind == "shared" else small
            body = function.text[function.start:]
            body = body[:ptx_text.skip_body(body, 0)]
            if kind == "operand":
                new = one_operand(function, body, dice)
            else:
                a, b = two_registers(function, dice)
                new = renamed(body, {a: b} if kind == "shared" else {a: b, b: a})
            new = again(function, new)
            found = fault(original, new)
            planted[kind] += 1
            if kind == "swapped":
                if found:
                    refused.append((original.name, found))
            elif walks_differ(original, new, dice):
                changed[kind] += 1
                if found != "registers":
                    missed.append((original.name, kind, found))
            elif found:
                unseen[kind] += 1
    print(f"planted {dict(planted)}, of them change the meaning {dict(changed)}, missed {len(missed)}; "
          f"others that are found {dict(unseen)}")
    t.check("faults of registers are found", not missed, missed)
    t.check("names that change places are no fault", not refused, refused)
    t.check("enough of them are faults", changed["operand"] * 2 > planted["operand"]
            and changed["shared"] * 5 > planted["shared"], (planted, changed))


def edit(t, modules):
    """Faults of anything else, each in the first module that has a place for it."""
    for pattern, new in EDITS:
        for original, text in modules:
            match = re.search(pattern, text)
            if match and match.group(1) != new:
                text = text[:match.start(1)] + new + text[match.end(1):]
                try:
                    same_module(original, text, lambda number: True)
                    t.check(f"{pattern} -> {new} is found", False)
                except Wrong as why:
                    t.check("found", "not understood" not in str(why), (pattern, new, why))
                break
        else:
            t.check(f"{pattern} has a place", False)


SMALL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n) {
    .reg .pred %%p<4>; .reg .b32 %%r<9>;
    ld.param.u32 %%r0, [n];
    setp.eq.u32 %%p0|%%p1, %%r0, 5;
%s
    ret;
}
"""
# Two bodies, and what of the second is a fault.
BODIES = (
    ("add.s32 %r1, %r0, 1; add.s32 %r2, %r1, 1; st.u32 [%r2], %r1;",
     "add.s32 %r0, %r0, 1; add.s32 %r2, %r0, 1; st.u32 [%r2], %r0;", ""),
    ("add.s32 %r1, %r0, 1; st.u32 [%r0], %r1;", "add.s32 %r0, %r0, 1; st.u32 [%r0], %r0;", "registers"),
    # what a guarded instruction leaves alone is still there
    ("mov.u32 %r1, 1; @%p0 mov.u32 %r1, 2; st.u32 [%r0], %r1;",
     "mov.u32 %r3, 1; @%p0 mov.u32 %r3, 2; st.u32 [%r0], %r3;", ""),
    ("mov.u32 %r1, 1; mov.u32 %r2, 7; @%p0 mov.u32 %r2, 2; st.u32 [%r0], %r2;",
     "mov.u32 %r2, 1; mov.u32 %r1, 7; @%p0 mov.u32 %r2, 2; st.u32 [%r0], %r2;", "registers"),
    # what nobody reads is written nevertheless
    ("mov.u32 %r1, 1; mov.u32 %r2, 7; st.u32 [%r0], %r1;",
     "mov.u32 %r1, 1; mov.u32 %r1, 7; st.u32 [%r0], %r1;", "registers"),
    ("ld.v2.u32 {%r1, %r2}, [%r0]; st.u32 [%r0], %r1;", "ld.v2.u32 {%r1, %r1}, [%r0]; st.u32 [%r0], %r1;",
     "registers"),
    ("shfl.sync.up.b32 %r1|%p2, %r0, 1, 0, -1; @%p0 st.u32 [%r0], %r1;",
     "shfl.sync.up.b32 %r1|%p0, %r0, 1, 0, -1; @%p0 st.u32 [%r0], %r1;", "registers"),
    ("@%p1 bra L; @%p0 bra L; st.u32 [%r0], 1; L:", "@%p0 bra L; @%p0 bra L; st.u32 [%r0], 1; L:", "registers"),
    # around a loop
    ("mov.u32 %r1, 0; L: add.s32 %r2, %r0, 1; st.u32 [%r2], %r1; add.s32 %r1, %r1, 1; @%p0 bra L;",
     "mov.u32 %r1, 0; L: add.s32 %r2, %r0, 1; st.u32 [%r2], %r1; add.s32 %r2, %r1, 1; @%p0 bra L;", "registers"),
    ("L: add.s32 %r2, %r0, 1; st.u32 [%r0], %r2; @%p0 bra L;",
     "L: add.s32 %r0, %r0, 1; st.u32 [%r0], %r0; @%p0 bra L;", "registers"),
    # nothing was written on one path
    ("@%p0 bra L; mov.u32 %r1, 1; L: st.u32 [%r0], %r1;",
     "@%p0 bra L; mov.u32 %r2, 1; L: st.u32 [%r0], %r2;", ""),
    ("add.s32 %r2, %r0, 1; @%p0 bra L; mov.u32 %r1, 1; L: st.u32 [%r0], %r1;",
     "add.s32 %r1, %r0, 1; @%p0 bra L; mov.u32 %r1, 1; L: st.u32 [%r0], %r1;", "registers"),
    # names of a block hide others
    ("{ .reg .b32 %r1; mov.u32 %r1, 1; st.u32 [%r0], %r1; }", "{ .reg .b32 x; mov.u32 x, 1; st.u32 [%r0], x; }", ""),
    ("mov.u32 %r1, 3; { .reg .b32 %r2; mov.u32 %r2, 1; } st.u32 [%r0], %r1;",
     "mov.u32 %r1, 3; { .reg .b32 %r2; mov.u32 %r1, 1; } st.u32 [%r0], %r1;", "registers"),
    ("@%p0 bra L; bra M; L: M:", "@%p0 bra A; bra A; A:", ""),
    ("@%p0 bra L; L: bra M; M:", "@%p0 bra L; bra M; L: M:", "nodes"),
)


def small_bodies(t):
    for first, second, expected in BODIES:
        one, other = (ptx_text.Module(SMALL % body).functions[0] for body in (first, second))
        t.check(second, fault(one, other) == expected and not fault(one, one), fault(one, other))
    for body in ("frob.u32 %r1, %r0;", "st.u32 [%r0], %r9;", "bra L;", "L: L:", "mov.u32 [%r0], %r0;",
                 "mov.u32 5, %r0;", ".frob 1;", "brx.idx %r0, L; L:"):
        try:
            ptx_text.Module(SMALL % body)
            t.check(f"{body} is refused", False)
        except Wrong:
            t.passed += 1


def same_module(original, small, wanted):
    """Raises Wrong unless both texts mean the same; else the pairs of their functions."""
    one, other = ptx_text.Module(original, wanted), ptx_text.Module(small, wanted)
    ptx_text.same_items(one, other)
    for pair in zip(one.functions, other.functions):
        ptx_text.same_function(*pair)
    return list(zip(one.functions, other.functions))


# What the compiler seldom writes, or never: guards, pairs of predicates, jumps to anywhere. d: a register
# that is written, s: one that is read; of p, r or rd.
RANDOM = ("add.s32 d:r, s:r, s:r", "setp.lt.s32 d:p|d:p, s:r, s:r", "setp.eq.s32 d:p, s:r, 0", "mov.u32 d:r, s:r",
          "mov.b64 d:rd, {s:r, s:r}", "mov.b64 {d:r, d:r}, s:rd", "ld.global.v2.u32 {d:r, d:r}, [s:rd]",
          "st.global.u32 [s:rd+4], s:r", "selp.b32 d:r, s:r, s:r, s:p", "add.s32 d:r, s:r, 1",
          "shfl.sync.up.b32 d:r|d:p, s:r, 1, 0, -1", "atom.global.add.u32 d:r, [s:rd], s:r",
          "@s:p bra L", "@!s:p bra L", "@s:p bra L", "bra L", "{ .reg .b32 %r1; mov.u32 %r1, s:r; mov.u32 d:r, %r1; }")
COUNTS = {"p": 9, "r": 30, "rd": 12}


def random_function(number, dice):
    length = dice.randrange(10, 80)
    labels = [dice.randrange(length) for _ in range(length // 8 + 1)]
    recent = {kind: [f"%{kind}{i}" for i in (2, 3)] for kind in COUNTS}
    lines = [f".visible .entry k{number}() {{", ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %rd<12>;"]

    def register(match):
        way, kind = match.groups()
        if way == "d":
            while (name := f"%{kind}{dice.randrange(2, COUNTS[kind])}") in written:
                pass
            written.append(name)
            return name
        return dice.choice(recent[kind][-4:] if dice.random() < 0.9 else recent[kind])

    for place in range(length):
        lines += [f"L{i}:" for i, where in enumerate(labels) if where == place]
        written = []
        line = re.sub(r"([ds]):(\w+)", register, dice.choice(RANDOM))
        line = line.replace("bra L", f"bra L{dice.randrange(len(labels))}")
        if line[0] not in "@{" and dice.random() < 0.3:
            line = dice.choice(("@", "@!")) + dice.choice(recent["p"]) + " " + line
        for name in written:
            recent[name.strip("%0123456789")].append(name)
        lines.append(line if line[0] == "{" else line + ";")
    return "\n".join([*lines, "ret;", "}"])


def random_functions(t, folder):
    dice = random.Random(12)
    text = "\n".join([*SMALL.split("\n")[:3], *(random_function(i, dice) for i in range(400))])
    path = os.path.join(folder, "random.ptx")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    try:
        t.passed += len(same_module(text, shrunk(path, folder), lambda number: True))
    except Wrong as why:
        t.check("random functions", False, why)


def main():
    paths = sorted(glob.glob(os.path.join(KERNELS, "*.ptx")))
    if not paths:
        print("0 passed, 0 failed, 1 skipped")
        return 0
    t = tool.Checks()
    for_faults, little = [], []
    with tempfile.TemporaryDirectory() as folder:
        random_functions(t, folder)
        for path in paths:
            name = os.path.basename(path)
            offset = sum(name.encode())
            try:
                original, small = read(path), shrunk(path, folder)
                pairs = same_module(original, small, lambda number: (number + offset) % SHARE == 0)
                t.passed += max(len(pairs), 1)
            except Wrong as why:
                t.check(name, False, why)
                continue
            for_faults += [pair for pair in pairs if 50 < len(pair[0].kinds) < 600 and peers(pair[1])][:2]
            if len(original) < 200_000:
                little.append((original, small))
    t.check("functions for faults", len(for_faults) >= PLANTED // 2 or SHARE > 1, len(for_faults))
    small_bodies(t)
    if for_faults:
        plant(t, for_faults[::max(len(for_faults) // PLANTED, 1)][:PLANTED])
        edit(t, little)
    return t.finish()


if __name__ == "__main__":
    sys.exit(main())
