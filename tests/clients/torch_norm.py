#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's batch norm, grid_sample and affine_grid on WarpDNN against PyTorch's own kernels.

    warpdnn run -- python3 torch_norm.py      each call with cuDNN switched on and off

Batch norm in training, evaluation and backward, fp32 and fp16, both layouts; grid_sample and
affine_grid forward and backward. With cuDNN on, WarpDNN has to have run the call where PyTorch gives
it to cuDNN at all. Last line `N passed, N failed`."""
import sys

import torch
import torch.nn.functional as F
from torch_train import executions

# Relative to the largest element; fp16 outputs are rounded once on either side.
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3}
passed = failed = 0


def check(good, what):
    global passed, failed
    passed += good
    failed += not good
    if not good:
        print(f"FAIL {what}")


def compare(what, dtype, call, ours=True):
    """`call` gives tensors; with cuDNN on they come from WarpDNN."""
    torch.manual_seed(1)
    with torch.backends.cudnn.flags(enabled=False):
        wanted = call()
    torch.manual_seed(1)
    before = executions()
    with torch.backends.cudnn.flags(enabled=True, deterministic=True):
        got = call()
    torch.cuda.synchronize()
    if ours:
        check(executions() > before, f"{what}: WarpDNN ran nothing")
    for name, one in wanted.items():
        other = got[name]
        size = one.double().abs().max().item()
        off = (one.double() - other.double()).abs().max().item()
        check(off <= TOLERANCE[dtype] * max(size, 1e-3), f"{what}: {name} is off by {off:g} of {size:g}")


def batch_norm(shape, dtype, layout, training):
    def call():
        x = torch.randn(shape, device="cuda").to(dtype)
        dy = torch.randn(shape, device="cuda").to(dtype)
        if layout:
            x = x.contiguous(memory_format=layout)
            dy = dy.contiguous(memory_format=layout)
        x.requires_grad_()
        norm = torch.nn.BatchNorm2d(shape[1], device="cuda").train(training)
        with torch.no_grad():
            norm.weight.uniform_(0.5, 1.5)
            norm.bias.uniform_(-0.5, 0.5)
            norm.running_mean.uniform_(-0.1, 0.1)
            norm.running_var.uniform_(0.8, 1.2)
        y = norm(x)
        y.backward(dy)
        return {"y": y.detach(), "dx": x.grad, "dweight": norm.weight.grad, "dbias": norm.bias.grad,
                "running_mean": norm.running_mean, "running_var": norm.running_var}
    return call


def grid_sample(shape, out, dtype):
    def call():
        x = torch.randn(shape, device="cuda").to(dtype).requires_grad_()
        grid = (torch.rand(shape[0], *out, 2, device="cuda") * 2.2 - 1.1).to(dtype).requires_grad_()
        y = F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True)
        y.backward(torch.randn(y.shape, device="cuda").to(dtype))
        return {"y": y.detach(), "dx": x.grad, "dgrid": grid.grad}
    return call


def affine_grid(shape, dtype):
    def call():
        theta = torch.randn(shape[0], 2, 3, device="cuda").to(dtype).requires_grad_()
        if torch.backends.cudnn.enabled:  # F.affine_grid has kernels of its own
            grid = torch.cudnn_affine_grid_generator(theta, *shape)
        else:
            grid = F.affine_grid(theta, shape, align_corners=True)
        grid.backward(torch.randn(grid.shape, device="cuda").to(dtype))
        return {"grid": grid.detach(), "dtheta": theta.grad}
    return call


def main():
    for dtype in (torch.float32, torch.float16):
        for layout in (None, torch.channels_last):
            for training in (True, False):
                for shape in ((8, 32, 28, 28), (4, 61, 11, 13), (16, 256, 7, 7)):
                    name = f"batch_norm {'training' if training else 'evaluation'} {shape} {dtype} {layout}"
                    # evaluation needs a gradient here, which PyTorch computes with kernels of its own
                    compare(name, dtype, batch_norm(shape, dtype, layout, training), ours=training)
    for shape, out in (((2, 3, 17, 19), (11, 13)), ((4, 64, 32, 32), (32, 32))):
        compare(f"grid_sample {shape}", torch.float32, grid_sample(shape, out, torch.float32))
    for shape in ((2, 3, 17, 19), (4, 8, 32, 32)):
        compare(f"affine_grid {shape}", torch.float32, affine_grid(shape, torch.float32))
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
