# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# For the scripts beside it: every operation test once more, on a GPU handle of the fake driver,
# captures and replays included. A program that leaves memory, contexts or graphs behind has failed.
# The counts are in passed, failed and skipped.
build=${WARPDNN_BUILD:-build}/tests
export WARPDNN_CUDA_DRIVER="$build/libfakecuda.so" WARPDNN_DEVICE=gpu FAKECUDA_REPORT=1
export FAKECUDA_DEVICES=1 FAKECUDA_MEMORY_MIB=16384
if [ ! -f "$WARPDNN_CUDA_DRIVER" ]; then
    echo "there is no $WARPDNN_CUDA_DRIVER"
    echo "0 passed, 1 failed"
    exit 1
fi
small=${WARPDNN_SOURCE:-.}/tests/gpu/small_list.txt
asked=${WARPDNN_TEST_SAMPLE:-}
passed=0
failed=0
skipped=0
log=$(mktemp)
launches=$(mktemp)
trap 'rm -f "$log" "$launches"' EXIT

run() {
    program=$1
    "$program" >"$log" 2>&1
    status=$?
    counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\1 \2/p' "$log" | tail -n 1)
    left=$(sed -n 's/.* failed, \([0-9]*\) skipped$/\1/p' "$log" | tail -n 1)
    # shellcheck disable=SC2086 # two numbers
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
# run_some N ENGINES PROGRAM...: the cases of the small list, and one of N of all (or of WARPDNN_TEST_SAMPLE,
# where that is given: 1 for every case)
run_some() {
    every=${asked:-$1}
    export WARPDNN_ENGINES="$2"
    shift 2
    for program in "$@"; do
        [ -x "$program" ] || continue
        if [ "$every" -gt 1 ] && grep -qF "$WARPDNN_ENGINES$(printf '\t')${program##*/}$(printf '\t')" "$small"; then
            export WARPDNN_TEST_SAMPLE=1 WARPDNN_TEST_CASES="$small"
            run "$program"
            unset WARPDNN_TEST_CASES
        fi
        export WARPDNN_TEST_SAMPLE="$every"
        run "$program"
    done
}
# Where the kernels are not emulated, the host side of engines runs, whose values nobody looks at.
with_engines() {
    export WARPDNN_TEST_LAUNCHES="$launches"
    [ -f "$build/emulated.txt" ] || export WARPDNN_TEST_VALUES=0
}
# finish_engines FAMILY...: some case launches each kernel of their tables, and so does some case of the
# small list. A build without kernels launches none.
finish_engines() {
    if ls "$build"/../kernels/*.packed >/dev/null 2>&1; then
        python3 "${WARPDNN_SOURCE:-.}/tests/gpu/small_list.py" --check "$launches" "$@" || failed=$((failed + 1))
    fi
    if [ ! -f "$build/emulated.txt" ]; then
        echo "$passed cases were launched, their values not looked at"
        skipped=$((skipped + passed))
        passed=0
    fi
    finish
}
finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
    exit
}
