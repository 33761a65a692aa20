#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints src/ops/rng/rng_radii_table.inc, but for its first lines and before clang-format.

Of 2^13 intervals of equal probability, the radius of a pair of normal numbers in fp16: the root of the mean of -2 ln u in the
interval, where what rounding took from the squares so far is given to the next one, so that no place of the distribution is
rounded to one side. SCALE makes up for what fp16 does to the pair's variance. The first four intervals are the tail.
"""
import math
import struct

COUNT = 8192
TAIL = 4
SCALE = 1.000007
IN_LINE = 10


def integral(u):
    """Of -2 ln u from 0."""
    return -2.0 * (u * math.log(u) - u) if u > 0 else 0.0


def main():
    codes, owed = [0x8000] * COUNT, 0.0
    for k in range(COUNT - 1, TAIL - 1, -1):
        mean = (integral((k + 1) / COUNT) - integral(k / COUNT)) * COUNT
        wanted = mean * SCALE * SCALE + owed
        packed = struct.pack("<e", math.sqrt(wanted))
        owed = wanted - struct.unpack("<e", packed)[0] ** 2
        codes[k] = struct.unpack("<H", packed)[0]
    words = [f"0x{codes[i + 1]:04x}{codes[i]:04x}," for i in range(0, COUNT, 2)]
    for i in range(0, len(words), IN_LINE):
        print(" ".join(words[i : i + IN_LINE]))


if __name__ == "__main__":
    main()
