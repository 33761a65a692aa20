#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every operation test on the fake driver, with the definitions' host twins alone: one of twelve cases,
# since the CPU's handle runs the same code on all of them.
# shellcheck source=tests/fake_driver/operations.sh
. "$(dirname "$0")/operations.sh"
run_some 12 none "$build"/ops_*_test
finish
