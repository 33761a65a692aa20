#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch on the library, as tests/run.py runs it: skipped (and counted) without a GPU or PyTorch.
set -u
if [ "${WARPDNN_DEVICE:-}" != gpu ] || ! python3 -c 'import torch' 2>/dev/null; then
    echo "PyTorch on a GPU is not here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
unset WARPDNN_DEVICE
exec python3 "$WARPDNN_SOURCE/tests/clients/torch_train.py" "$WARPDNN_BUILD/lib/libcudnn.so.9"
