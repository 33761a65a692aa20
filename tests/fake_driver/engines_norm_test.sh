#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The tests of norms on the fake driver, with the engines' kernels in the emulator.
# shellcheck source=tests/fake_driver/operations.sh
. "$(dirname "$0")/operations.sh"
with_engines
run_some 6 '*' "$build"/ops_bn_*_test "$build"/ops_norm*_test
run_some 1 '*' "$build"/ops_norm_rows_many_test
# what blocks that meet take there is for these where they do not
run_some 18 'bn_*_chip,bn_*_cluster,bn_*_vector' "$build"/ops_norm_test "$build"/ops_norm_gpu_test
# blocks that walk down channels, which bn_chip or bn_grid have of shapes so small
run_some 18 'bn_*_cluster' "$build"/ops_norm_gpu_test
finish_engines norm
