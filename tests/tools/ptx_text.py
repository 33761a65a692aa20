# SPDX-License-Identifier: Apache-2.0
"""PTX text as a list of nodes, and whether two texts of one module mean the same although names differ.

A node is an instruction, a .pragma or a declaration in a body. Two functions are the same if their nodes
are, one by one (opcode, immediates, shape and types of operands, symbols, where labels lead), and if each
register that is read was last written by the same nodes on all paths: the sets of reaching definitions
are equal. That suffices: of those definitions the last one on a path is the same in both texts, since
the path is. What is not known here is an error, never passed over.
"""
import re

COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.S)
NAME = re.compile(r"(?<![\w$.%])([A-Za-z_$%][\w$]*)")
HEAD = re.compile(r"\s*(\.(?:version|target|address_size)\b[^\n]*)\n")
OUTER = re.compile(r"\s*([^;{]*?)\s*([;{])")
FUNCTION = re.compile(r"((?:\.\w+\s*)*?)\.(entry|func)\s*(\([^)]*\))?\s*([\w$]+)\s*(\([^)]*\))?(.*)", re.S)
STATEMENT = re.compile(r"[\s;]*(?:([{}])|([\w$]+)\s*:(?!:)|([^;{}\s][^;]*);)")
INSTRUCTION = re.compile(r"(?:@(!?)\s*([\w$%]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)
REGISTERS = re.compile(r"\.reg\s+(\.\w+)\s+(.*)", re.S)
REGISTER = re.compile(r"\s*([\w$%]+)\s*(?:<\s*(\d+)\s*>)?\s*")
ENDS = {"ret", "exit", "trap"}
SPECIAL = {"%" + name for name in (
    "tid ntid ctaid nctaid laneid warpid nwarpid smid nsmid gridid clusterid nclusterid cluster_ctaid "
    "cluster_nctaid cluster_ctarank cluster_nctarank is_explicit_cluster clock clock_hi clock64 globaltimer "
    "lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt dynamic_smem_size total_smem_size").split()}
SPECIAL.add("WARP_SZ")
# By the first word of the opcode: what writes no register, and what writes its first operand, which is
# a register, two as in p|q, or a vector of them. Words in between are told apart by write_first.
NO_RESULT = set("""st red bra ret exit trap membar fence prefetch prefetchu discard applypriority
    griddepcontrol nanosleep cp call stmatrix brkpt pmevent setmaxnreg""".split())
RESULT = set("""abs activemask add addc and atom bfe bfi bfind bmsk brev clz cnot copysign cos createpolicy cvt
    cvta div dp2a dp4a elect ex2 fma fns getctarank isspacep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match
    max min mma mov movmatrix mul mul24 neg not or popc prmt rcp redux rem rsqrt sad selp set setp shf shfl shl
    shr sin slct sqrt sub subc szext tanh testp vote xor""".split())


class Wrong(Exception):
    """Text that is not understood, or two texts that differ."""


def write_first(opcode):
    words = opcode.split(".")
    if words[0] in ("bar", "barrier"):
        return "red" in words
    if words[0] == "mbarrier":
        if words[1] in ("init", "inval", "expect_tx", "complete_tx"):
            return False
        if words[1] in ("arrive", "arrive_drop", "test_wait", "try_wait", "pending_count"):
            return True
    elif words[0] in NO_RESULT:
        return False
    elif words[0] in RESULT:
        return True
    raise Wrong(f"unknown opcode {opcode}")


KNOWN = {}  # (opcode, shape): how many of the names are results


def results(opcode, shape):
    """How many of the names of an instruction, each an @ of its shape, are written."""
    key = opcode, shape
    if key not in KNOWN:
        count = 0
        if write_first(opcode):
            first = re.match(r"@(\|@)?(?=,|$)|\{@(,@)*\}(?=,|$)", shape)
            if not first:
                raise Wrong(f"{opcode} {shape}: no result")
            count = first.group().count("@")
        KNOWN[key] = count
    return KNOWN[key]


def split(text):
    """The names in the text, and its shape: the rest, without blanks."""
    parts = NAME.split(text)
    return parts[1::2], "".join("@".join(parts[::2]).split())


class Function:
    """One function: head holds its parameters; kinds[i] is all of node i but which registers it names,
    which are writes[i] and reads[i]; maybe[i]: it is guarded; leads[i]: the nodes that may follow."""

    def __init__(self, name, parameters, symbols):
        self.name, self.parameters, self.text, self.start = name, parameters, "", 0
        self.kinds, self.writes, self.reads, self.maybe, self.leads, self.spans = [], [], [], [], [], []
        self.types, self.names = [], []  # of registers
        self.scopes = [symbols, {}]
        self.labels = []
        self.jumps = []
        for number, parameter in enumerate(split(parameters)[0]):
            self.declare(parameter, f"parameter {number}")

    def declare(self, name, what):
        if name in self.scopes[-1] or name in SPECIAL or name == "_":
            raise Wrong(f"{self.name}: {name} is declared twice")
        self.scopes[-1][name] = what

    def find(self, name):
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        if name in SPECIAL or name == "_":
            return name
        raise Wrong(f"{self.name}: {name} is not declared")

    def parse(self, text, start):
        """The body that starts at text[start], behind its {; returns where it ends."""
        self.text, self.start = text, start
        self.labels.append({})
        while True:
            match = STATEMENT.match(text, start)
            if not match:
                raise Wrong(f"{self.name}: not understood: {text[start:start + 80]!r}")
            brace, label, statement = match.groups()
            start = match.end()
            if statement:
                self.spans.append(match.span(3))
                self.statement(statement)
            elif label:
                if label in self.labels[-1]:
                    raise Wrong(f"{self.name}: two labels {label}")
                self.labels[-1][label] = len(self.kinds)
            elif brace == "{":
                self.scopes.append({})
                self.labels = self.labels + [{}]
                self.add(("{",))
            else:
                if len(self.labels) == 1:
                    break
                self.scopes.pop()
                self.labels = self.labels[:-1]
                self.add(("}",))
        for node, label, scopes in self.jumps:
            target = next((scope[label] for scope in reversed(scopes) if label in scope), None)
            if target is None:
                raise Wrong(f"{self.name}: no label {label}")
            self.leads[node] += (target,)
        self.add(("end",), leads=())
        return start

    def add(self, kind, writes=(), reads=(), maybe=False, leads=None):
        if len(self.spans) <= len(self.kinds):
            self.spans.append(None)
        self.leads.append((len(self.kinds) + 1,) if leads is None else leads)
        self.kinds.append(kind)
        self.writes.append(writes)
        self.reads.append(reads)
        self.maybe.append(maybe)

    def statement(self, text):
        if text[0] != ".":
            self.instruction(text)
            return
        word = text.split(None, 1)[0]
        if word == ".reg":
            self.spans.pop()
            self.registers(text)
        elif word == ".pragma":
            self.add((text,))
        elif word in (".param", ".shared", ".local"):
            names, shape = split(text)
            if len(names) != 1:
                raise Wrong(f"{self.name}: not understood: {text}")
            self.declare(names[0], f"variable {len(self.kinds)}")
            self.add((shape,))
        else:
            raise Wrong(f"{self.name}: unknown directive {word}")

    def registers(self, text):
        match = REGISTERS.fullmatch(text)
        for item in match.group(2).split(",") if match else [""]:
            one = REGISTER.fullmatch(item)
            if not one:
                raise Wrong(f"{self.name}: not understood: {text}")
            name, count = one.groups()
            for full in [name] if count is None else [name + str(i) for i in range(int(count))]:
                self.declare(full, len(self.types))
                self.types.append(match.group(1))
                self.names.append(full)

    def instruction(self, text):
        match = INSTRUCTION.fullmatch(text)
        if not match:
            raise Wrong(f"{self.name}: not understood: {text}")
        negated, guard, opcode, rest = match.groups()
        names, shape = split(rest)
        word = opcode.split(".", 1)[0]
        leads = None
        if word == "bra":
            if shape != "@":
                raise Wrong(f"{self.name}: not understood: {text}")
            self.jumps.append((len(self.kinds), names[0], self.labels))
            names = ()
        if word in ENDS or word == "bra":
            leads = (len(self.kinds) + 1,) if guard else ()
        count = results(opcode, shape)
        kind, writes, reads = [opcode, shape, negated], [], []
        if guard:
            names = [*names, guard]
        for number, name in enumerate(names):
            what = self.find(name)
            if isinstance(what, int):
                if word == "call":
                    raise Wrong(f"{self.name}: a call with registers: {text}")
                (writes if number < count else reads).append(what)
                kind.append(self.types[what])
            elif number < count and what != "_":
                raise Wrong(f"{self.name}: no register is written: {text}")
            else:
                kind.append(what)
        if guard and kind[-1] != ".pred":
            raise Wrong(f"{self.name}: no predicate: {text}")
        self.add(tuple(kind), writes, reads, bool(guard), leads)


def skip_body(text, start):
    """Where the body ends whose { is before text[start]."""
    depth = 1
    for brace in re.compile("[{}]").finditer(text, start):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return brace.end()
    raise Wrong("a body has no end")


class Module:
    """A module: its items (heads, variables and functions' heads) and its functions, those that wanted(n)
    chooses by their number."""

    def __init__(self, text, wanted=lambda number: True):
        text = COMMENT.sub(lambda match: match.group() if match.group()[0] == '"' else " ", text)
        self.text = text = text.rstrip() + "\n"
        self.items, self.functions, self.bodies = [], [], 0
        self.symbols = {}
        start = 0
        while start < len(text) - 1:
            match = HEAD.match(text, start)
            if match:
                self.items.append(tuple(match.group(1).split()))
                start = match.end()
                continue
            match = OUTER.match(text, start)
            if not match:
                raise Wrong(f"not understood: {text[start:start + 80]!r}")
            function = FUNCTION.fullmatch(match.group(1))
            if function:
                start = self.function(function, match.group(2) == "{", match.end(), wanted)
            else:
                start = self.variable(match.start(1))

    def variable(self, start):
        end = self.text.index(";", start)
        names, shape = split(self.text[start:end])
        if not re.match(r"(\.extern|\.visible|\.weak)?\.(global|const|shared)\b", shape) or not names:
            raise Wrong(f"not understood: {self.text[start:end][:80]}")
        kept = shape.startswith(".") and shape.split(".")[1] in ("extern", "visible", "weak") \
            and not shape.startswith(".extern.shared")
        self.declare(names[0], kept)
        missing = set(names) - set(self.symbols)
        if missing:
            raise Wrong(f"{names[0]}: {missing} are not declared")
        self.items.append((shape, *(self.symbols[name] for name in names)))
        return end + 1

    def declare(self, name, kept):
        if name in self.symbols:
            raise Wrong(f"{name} is declared twice")
        self.symbols[name] = f"symbol {name}" if kept else f"symbol {len(self.symbols)}"

    def function(self, match, has_body, start, wanted):
        linkage, kind, results_, name, parameters, directives = match.groups()
        if name not in self.symbols:
            self.declare(name, kind == "entry" or bool(linkage.strip()))
        shapes = [split(part or "")[1] for part in (results_, parameters)]
        self.items.append(("".join(linkage.split()), kind, self.symbols[name], *shapes,
                           " ".join(directives.replace(",", " , ").split()), has_body))
        if not has_body:
            return start
        self.bodies += 1
        if not wanted(self.bodies - 1):
            return skip_body(self.text, start)
        function = Function(name, f"{results_ or ''},{parameters or ''}", self.symbols)
        self.functions.append(function)
        return function.parse(self.text, start)


def blocks_of(function):
    """[(first node, behind the last)] of the basic blocks, and of each the blocks that follow."""
    count = len(function.kinds)
    first = {0}
    for node, leads in enumerate(function.leads):
        if leads != (node + 1,):
            first.update(leads)
            if node + 1 < count:
                first.add(node + 1)
    starts = sorted(first)
    number = {start: block for block, start in enumerate(starts)}
    blocks = list(zip(starts, starts[1:] + [count]))
    return blocks, [[number[node] for node in function.leads[end - 1]] for _, end in blocks]


def reaching(function, blocks, follow):
    """For each register that a node reads, in order, the definitions that reach it: a set of bits, those of
    definitions by number and one above them for none; or ~n for definition n alone."""
    exposed = set()
    for start, end in blocks:
        written = set()
        for node in range(start, end):
            exposed.update(register for register in function.reads[node] if register not in written)
            if not function.maybe[node]:
                written.update(function.writes[node])
    total = sum(map(len, function.writes))
    # The value that a register has at the entry is a definition of its own, behind the others.
    defined = {register: 1 << total + i for i, register in enumerate(sorted(exposed))}
    entry = sum(defined.values())
    number, numbers = 0, []
    for writes in function.writes:
        numbers.append(number)
        for register in writes:
            if register in exposed:
                defined[register] |= 1 << number
            number += 1
    make, kill = [], []
    for start, end in blocks:
        made = {}
        killed = 0
        for node in range(start, end):
            for i, register in enumerate(function.writes[node]):
                if register in exposed:
                    bit = 1 << numbers[node] + i
                    if function.maybe[node]:
                        made[register] = made.get(register, 0) | bit
                    else:
                        made[register] = bit
                        killed |= defined[register]
        bits = 0
        for one in made.values():
            bits |= one
        make.append(bits)
        kill.append(killed)
    into = [0] * len(blocks)
    into[0] = entry
    todo, waits = [0], {0}
    seen = set()
    while todo:
        block = todo.pop()
        waits.discard(block)
        seen.add(block)
        out = make[block] | (into[block] & ~kill[block])
        for next_block in follow[block]:
            more = into[next_block] | out
            if more != into[next_block] or next_block not in seen:
                into[next_block] = more
                if next_block not in waits:
                    waits.add(next_block)
                    todo.append(next_block)
    found = []
    low = (1 << total) - 1
    for (start, end), bits in zip(blocks, into):
        now = {}

        def value(register):
            got = now.get(register)
            if got is None:
                got = bits & defined.get(register, 0)
                if got > low:
                    got = got & low | 1 << total
                now[register] = got
            return got

        for node in range(start, end):
            for register in function.reads[node]:
                found.append(value(register))
            for i, register in enumerate(function.writes[node]):
                one = numbers[node] + i
                now[register] = as_bits(value(register)) | 1 << one if function.maybe[node] else ~one
    return found


def as_bits(value):
    return 1 << ~value if value < 0 else value


def same_nodes(one, other):
    """Raises Wrong unless both functions are the same but for the registers they name."""
    if one.kinds != other.kinds or one.leads != other.leads:
        for node, pair in enumerate(zip(zip(one.kinds, one.leads), zip(other.kinds, other.leads))):
            if pair[0] != pair[1]:
                raise Wrong(f"{one.name}: node {node}: {pair[0]} became {pair[1]}")
        raise Wrong(f"{one.name}: {len(one.kinds)} nodes became {len(other.kinds)}")
    if [*map(len, one.writes)] != [*map(len, other.writes)]:
        raise Wrong(f"{one.name}: other operands are written")


def same_registers(one, other):
    """Raises Wrong unless in both, whose nodes are the same, what is read comes from the same nodes."""
    blocks, follow = blocks_of(one)
    ours, theirs = reaching(one, blocks, follow), reaching(other, blocks, follow)
    if ours == theirs:
        return
    place = 0
    for node, reads in enumerate(one.reads):
        for number, register in enumerate(reads):
            pair = as_bits(ours[place]), as_bits(theirs[place])
            if pair[0] != pair[1]:
                raise Wrong(f"{one.name}: node {node} ({' '.join(one.kinds[node][:2])}): "
                            f"{one.names[register]} became {other.names[other.reads[node][number]]}: definitions "
                            f"{where(one, pair[0])} became {where(one, pair[1])}")
            place += 1


def where(function, bits):
    """The nodes of the definitions, as text."""
    nodes = [str(node) for node, writes in enumerate(function.writes) for _ in writes] + ["none"]
    return [nodes[i] for i in range(bits.bit_length()) if bits >> i & 1][:20]


def same_function(one, other):
    same_nodes(one, other)
    same_registers(one, other)


def same_items(one, other):
    if one.items != other.items or one.bodies != other.bodies:
        pair = next((pair for pair in zip(one.items, other.items) if pair[0] != pair[1]), "their number")
        raise Wrong(f"items of the module differ: {str(pair)[:500]}")
