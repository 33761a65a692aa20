#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# consume.sh PREFIX: build and run a small program against an installed WarpDNN, once through
# find_package and once through pkg-config, and see that the library it loads is that one.
set -eu
prefix=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

generator=''
command -v ninja >/dev/null && generator=-GNinja
# shellcheck disable=SC2086 # empty or one word
cmake -S "$here" -B "$work/cmake" $generator -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/cmake" >/dev/null
"$work/cmake/consumer" "$prefix"

found=$(find "$prefix" -name warpdnn.pc)
PKG_CONFIG_PATH=$(dirname "$found")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # a list of flags
${CC:-cc} "$here/consumer.c" -o "$work/consumer" $(pkg-config --cflags --libs warpdnn)
"$work/consumer" "$prefix"

# The README's first program, as it stands there.
awk '/^```/ { inside = 0 } inside; /^```c$/ { inside = 1 }' "$here/../../README.md" >"$work/first.c"
# shellcheck disable=SC2046 # a list of flags
${CC:-cc} -Wall -Werror "$work/first.c" -o "$work/first" $(pkg-config --cflags --libs warpdnn)
printed=$(WARPDNN_DEVICE=cpu "$work/first")
[ "$printed" = '0 2 0 4' ] || { echo "consume: the README's program printed $printed" >&2; exit 1; }

# The command that was installed with it.
"$prefix/bin/warpdnn" run --device cpu -- "$work/consumer" "$prefix"
"$prefix/bin/warpdnn" doctor --brief
