#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints src/ops/rng/rng_logarithm_table.inc, but for its first lines and the indentation.

Of 64 intervals, the number 1 within one of them: 1 / c of the centre c, and -2 ln c. The first begins with the upper
word FIRST of a double.
"""
import struct
from fractions import Fraction

FIRST = 0x3FE62000
WIDTH = 1 << 14
LINE = 98  # characters


def double_of(word):
    """The double with this upper word, and 0 in its lower one."""
    return struct.unpack("d", struct.pack("Q", word << 32))[0]


def log_of(x):
    """ln x, rounded once."""
    value = Fraction(x)
    t = (value - 1) / (value + 1)
    total, power = Fraction(0), t
    for n in range(1, 60, 2):
        total += power / n
        power *= t * t
    return float(2 * total)


def main():
    line = ""
    for i in range(64):
        low, high = double_of(FIRST + i * WIDTH), double_of(FIRST + (i + 1) * WIDTH)
        inverse = 1.0 / (1.0 if low < 1.0 < high else (low + high) / 2)
        row = f"{{{inverse!r}, {2 * log_of(inverse)!r}}},"
        if len(line) + len(row) > LINE:
            print(line.rstrip())
            line = ""
        line += row + " "
    print(line.rstrip())


if __name__ == "__main__":
    main()
