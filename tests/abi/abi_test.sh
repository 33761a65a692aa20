#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The interface of the built library, as tests/run.py runs it: declarations, headers, symbols.
exec python3 "$WARPDNN_SOURCE/tests/abi/abi_check.py" --library "$WARPDNN_BUILD/lib/libcudnn.so.9"
