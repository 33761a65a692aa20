#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The golden answers against the built library, as tests/run.py runs it: the descriptor record and the
# numeric record on the CPU, or (WARPDNN_DEVICE=gpu) the numeric one on the GPU. A record that is not
# there is a failure.
set -u
golden=$WARPDNN_BUILD/tests/golden
library=$WARPDNN_BUILD/lib/libcudnn.so.9
records=$WARPDNN_SOURCE/tests/golden
counts=$(mktemp) || exit 1
trap 'rm -f "$counts"' EXIT

# compare RECORD DEVICE: show what differs, and keep the counts of the last line.
compare() {
    output=$("$golden" compare "$records/$1" "$library" --device "$2" 2>&1)
    status=$?
    printf '%s\n' "$output"
    last=$(printf '%s\n' "$output" | tail -n 1)
    case $last in
    *' passed, '*' failed'*) printf '%s\n' "$last" >>"$counts" ;;
    *) status=1 && printf '0 passed, 1 failed\n' >>"$counts" ;;
    esac
    return $status
}

result=0
if [ "${WARPDNN_DEVICE:-}" = gpu ]; then
    compare numeric_9.19.txt gpu || result=1
else
    compare descriptors_9.19.txt none || result=1
    compare numeric_9.19.txt cpu || result=1
fi
awk '{ p += $1; f += $3; s += $5 }
     END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$counts"
exit $result
