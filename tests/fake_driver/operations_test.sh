#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every operation test once more, on a GPU handle of the fake driver, captures and replays included:
# with the definitions' host twins, and with the engines' kernels in the emulator. A program that
# leaves memory, contexts or graphs behind has failed.
build=${WARPDNN_BUILD:-build}/tests
export WARPDNN_CUDA_DRIVER="$build/libfakecuda.so" WARPDNN_DEVICE=gpu FAKECUDA_REPORT=1
export FAKECUDA_DEVICES=1 FAKECUDA_MEMORY_MIB=16384
if [ ! -f "$WARPDNN_CUDA_DRIVER" ]; then
    echo "there is no $WARPDNN_CUDA_DRIVER"
    echo "0 passed, 1 failed"
    exit 1
fi
# Where the emulator is not built, values come from the definitions alone; the second round then runs
# the host side of the engines, whose values nobody looks at.
passed=0
failed=0
skipped=0
log=$(mktemp)
launches=$(mktemp)
trap 'rm -f "$log" "$launches"' EXIT
round() {
    for program in "$build"/ops_*_test; do
        [ -x "$program" ] || continue
        run "$program"
    done
}
run() {
    program=$1
    "$program" >"$log" 2>&1
    status=$?
    counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\1 \2/p' "$log" | tail -n 1)
    left=$(sed -n 's/.* failed, \([0-9]*\) skipped$/\1/p' "$log" | tail -n 1)
    set -- ${counts:-0 1}
    passed=$((passed + $1))
    failed=$((failed + $2))
    skipped=$((skipped + ${left:-0}))
    if [ "$status" -ne 0 ]; then
        [ "$2" -gt 0 ] || failed=$((failed + 1))
        echo "$program ends with status $status on the fake driver:"
        grep -v '^  rerun' "$log" | tail -n 20
    fi
}
export WARPDNN_ENGINES=none
round
# also those that have not run on a device yet
export WARPDNN_ENGINES='*' FAKECUDA_LAUNCHED="$launches"
judged=$passed
[ -f "$build/libemulator.so" ] || export WARPDNN_TEST_VALUES=0
round
if [ ! -f "$build/libemulator.so" ]; then
    echo "$((passed - judged)) cases more were launched, their values not looked at"
    passed=$judged
fi
# Tables whose every row some case launches. A build without them has no kernels to name.
for table in "${WARPDNN_SOURCE:-.}"/src/ops/norm/bn_*_kernels.def; do
    for symbol in $(sed -n 's/^WD_KERNEL(\([^,]*\),.*/\1/p' "$table"); do
        grep -qx "wd_$symbol" "$launches" && continue
        echo "no case launched $symbol"
        failed=$((failed + 1))
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
