#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every operation test on the fake driver, with the engines' kernels in the emulator, also those that
# have not run on a device yet. Where the emulator is not built, this runs the host side of the
# engines, whose values nobody looks at.
# shellcheck source=tests/fake_driver/operations.sh
. "$(dirname "$0")/operations.sh"
export FAKECUDA_LAUNCHED="$launches"
[ -f "$build/libemulator.so" ] || export WARPDNN_TEST_VALUES=0
run_all '*'
# what blocks that meet take there is for these where they do not
export WARPDNN_ENGINES='bn_*_chip,bn_*_cluster,bn_*_vector' WARPDNN_TEST_SAMPLE=3
for program in "$build"/ops_norm_test "$build"/ops_norm_gpu_test; do
    [ ! -x "$program" ] || run "$program"
done
# and what goes through rings of lines there is for these
export WARPDNN_ENGINES='resample_*_walk,resample_*_vector'
for program in "$build"/ops_resample_engines_test "$build"/ops_resample_test; do
    [ ! -x "$program" ] || run "$program"
done
if [ ! -f "$build/libemulator.so" ]; then
    echo "$passed cases were launched, their values not looked at"
    skipped=$((skipped + passed))
    passed=0
fi
# Tables whose every row some case launches. A build without them has no kernels to name.
for table in "${WARPDNN_SOURCE:-.}"/src/ops/norm/bn_*_kernels.def; do
    # shellcheck disable=SC2013 # symbols have no spaces
    for symbol in $(sed -n 's/^WD_KERNEL(\([^,]*\),.*/\1/p' "$table"); do
        grep -qx "wd_$symbol" "$launches" && continue
        echo "no case launched $symbol"
        failed=$((failed + 1))
    done
done
finish
