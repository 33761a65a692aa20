#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on WarpDNN: trains a small convolutional network (convolutions, batch norm, pooling, a
transposed and a grouped convolution) on a GPU, once on PyTorch's own cuDNN and once with WarpDNN
preloaded, from the same seed, and compares the losses step by step.

    torch_train.py LIBCUDNN     the whole test; last line `N passed, N failed`
    torch_train.py --train      one training in this process, losses as JSON
"""
import json
import os
import subprocess
import sys

STEPS = 60
COMPARED = 20
TOLERANCE = 0.02  # of the first loss; sums in another order drift apart as training goes on


def loaded_library():
    """Paths of the libcudnn files mapped into this process."""
    with open("/proc/self/maps") as maps:
        return sorted({line.split()[-1] for line in maps if "libcudnn" in line})


def executions():
    """Operations that WarpDNN ran in this process; -1 where it is not loaded."""
    import ctypes

    for path in loaded_library():
        try:
            statistics = ctypes.CDLL(path).warpdnnGetStatistics
        except (OSError, AttributeError):
            continue
        words = (ctypes.c_uint64 * 16)()
        return words[3] if statistics(words) == 0 else -1
    return -1


def train():
    import torch
    from torch import nn

    torch.manual_seed(7)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, groups=4), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(256, 10)).cuda()
    images = torch.randn(64, 3, 32, 32, device="cuda")
    labels = torch.randint(0, 10, (64,), device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps({"losses": losses, "libraries": loaded_library(), "executions": executions()}))


def run(preload):
    environment = dict(os.environ)
    environment.pop("LD_PRELOAD", None)
    if preload:
        environment["LD_PRELOAD"] = preload
    result = subprocess.run([sys.executable, __file__, "--train"], env=environment,
                            capture_output=True, text=True)
    if result.returncode != 0:
        print(result.stderr[-2000:])
        return None
    return json.loads(result.stdout.strip().splitlines()[-1])


def main():
    library = os.path.realpath(sys.argv[1])
    theirs = run(None)
    ours = run(library)
    checks = {
        "PyTorch trains on its own cuDNN": theirs is not None,
        "PyTorch trains on WarpDNN": ours is not None,
    }
    if theirs and ours:
        # PyTorch opens its own libcudnn.so.9 by path as well; its parts come only when it is used
        checks["its own cuDNN is not WarpDNN's"] = theirs["executions"] == -1
        checks["WarpDNN did the work"] = ours["executions"] > 10 * STEPS
        checks["nothing of the other library worked"] = \
            not any("libcudnn_" in path for path in ours["libraries"])
        worst = max(abs(a - b) for a, b in list(zip(theirs["losses"], ours["losses"]))[:COMPARED])
        checks["the losses follow each other"] = worst <= TOLERANCE * theirs["losses"][0]
        checks["the loss falls"] = ours["losses"][-1] < 0.8 * ours["losses"][0]
        print(f"first and last loss: cuDNN {theirs['losses'][0]:.4f} {theirs['losses'][-1]:.4f}, "
              f"WarpDNN {ours['losses'][0]:.4f} {ours['losses'][-1]:.4f}; worst difference in "
              f"{COMPARED} steps {worst:.5f}")
        print(f"WarpDNN executed {ours['executions']} operations")
    for name, passed in checks.items():
        print("ok  " if passed else "FAIL", name)
    failed = sum(not passed for passed in checks.values())
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--train"]:
        train()
        sys.exit(0)
    if len(sys.argv) != 2:
        print(__doc__)
        sys.exit(2)
    sys.exit(main())
