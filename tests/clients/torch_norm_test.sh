#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# torch_norm.py under `warpdnn run`, as tests/run.py runs it: skipped (and counted) without a GPU or PyTorch.
set -u
if [ "${WARPDNN_DEVICE:-}" != gpu ] || ! python3 -c 'import torch' 2>/dev/null; then
    echo "PyTorch on a GPU is not here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
unset WARPDNN_DEVICE
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
# what `warpdnn run` says comes on standard error, after the script's last line
"$WARPDNN_BUILD/bin/warpdnn" run -- python3 "$WARPDNN_SOURCE/tests/clients/torch_norm.py" >"$counts"
status=$?
cat "$counts"
exit "$status"
