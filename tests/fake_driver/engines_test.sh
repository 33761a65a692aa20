#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The operation tests but those of norms on the fake driver, with the engines' kernels in the emulator.
# shellcheck source=tests/fake_driver/operations.sh
. "$(dirname "$0")/operations.sh"
with_engines
for program in "$build"/ops_*_test; do
    case ${program##*/} in ops_norm* | ops_bn_*) ;; *) run_some 6 '*' "$program" ;; esac
done
# what goes through rings of lines there is for these
run_some 18 'resample_*_walk,resample_*_vector' "$build"/ops_resample_engines_test "$build"/ops_resample_test
finish_engines dropout lrn pointwise pooling reduce resample rng softmax spatial tensor
