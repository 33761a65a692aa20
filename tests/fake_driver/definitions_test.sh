#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every operation test on the fake driver, with the definitions' host twins alone: a third of the cases,
# since the CPU's handle runs the same code on all of them.
# shellcheck source=tests/fake_driver/operations.sh
. "$(dirname "$0")/operations.sh"
export WARPDNN_TEST_SAMPLE=3
run_all none "$build"/ops_*_test
finish
