#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every operation test on the fake driver, with the definitions' host twins alone.
# shellcheck source=tests/fake_driver/operations.sh
. "$(dirname "$0")/operations.sh"
run_all none "$build"/ops_*_test
finish
