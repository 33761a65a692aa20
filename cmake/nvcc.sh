#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# nvcc.sh REPORT NVCC ARGS...: run nvcc, keep what it says (ptxas -v) in REPORT, and show warnings
# and errors.
report=$1
shift
if "$@" >"$report" 2>&1; then
    grep -E 'warning|Warning' "$report" >&2
    exit 0
fi
cat "$report" >&2
rm -f "$report"
exit 1
