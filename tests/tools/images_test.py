#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library has of machine code: every packed image unpacks to a cubin of its own size, in which the frames that only
debuggers read are empty, and with them whatever would be written into them when it is loaded. Needs a build with GPU kernels."""
import glob
import lzma
import os
import struct
import sys

HEAD = struct.Struct("<QQ")  # gpu/packed.h
SECTION = struct.Struct("<IIQQQQIIQQ")
REL = (4, 9)
FILTERS = [{"id": lzma.FILTER_LZMA2, "dict_size": 4 << 20}]


def sections(image):
    """(name, type, size, the section that a table of relocations is for) of each."""
    if image[:4] != b"\x7fELF":
        raise ValueError("no ELF")
    table, = struct.unpack_from("<Q", image, 0x28)
    count, names = struct.unpack_from("<HH", image, 0x3C)
    rows = [SECTION.unpack_from(image, table + i * SECTION.size) for i in range(count)]
    begin = rows[names][4]
    for row in rows:
        at = begin + row[0]
        yield image[at:image.index(b"\0", at)].decode(), row[1], row[5], row[7]


def fault_of(path):
    with open(path, "rb") as file:
        packed = file.read()
    image = lzma.decompress(packed[HEAD.size:], lzma.FORMAT_RAW, filters=FILTERS)
    if len(image) != HEAD.unpack_from(packed)[0]:
        return f"{len(image)} bytes"
    found = list(sections(image))
    frames = [i for i, s in enumerate(found) if s[0] == ".debug_frame"]
    for name, kind, size, of in found:
        if size and (name == ".debug_frame" or (kind in REL and of in frames)):
            return f"{name} has {size} bytes"
    return None


def main():
    images = glob.glob(os.path.join(os.environ.get("WARPDNN_BUILD", "build"), "kernels", "*.cubin.packed"))
    if not images:
        print("0 passed, 0 failed, 1 skipped")
        return 0
    faults = {path: fault_of(path) for path in sorted(images)}
    for path, fault in faults.items():
        if fault:
            print(f"{path}: {fault}")
    failed = sum(fault is not None for fault in faults.values())
    print(f"{len(faults) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
