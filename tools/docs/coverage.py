#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/api_coverage.md: how often each computing function ran in passing tests, by type and
layout of its first tensor and by device.

    coverage.py --record LOG.json --device CPU|GPU [--build build]   run tests/ops and golden, count
    coverage.py --write docs/api_coverage.md CPU.json [GPU.json]     make the page
    coverage.py --check docs/api_coverage.md                         no function without a case

The counts come from the library's own log (one line an executed operation) while the tests of
tests/ops run; a program that fails counts nothing."""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

# Every computing function that is implemented, with its directions as operation names.
FUNCTIONS = {
    "cudnnConvolutionForward": ["conv_fprop"],
    "cudnnConvolutionBackwardData": ["conv_dgrad"],
    "cudnnConvolutionBackwardFilter": ["conv_wgrad"],
    "cudnnConvolutionBackwardBias": ["bias_grad"],
    "cudnnConvolutionBiasActivationForward": ["conv_fused"],
    "cudnnIm2Col": ["im2col"],
    "cudnnPoolingForward": ["pool_forward"],
    "cudnnPoolingBackward": ["pool_backward"],
    "cudnnActivationForward": ["pointwise"],
    "cudnnActivationBackward": ["pointwise"],
    "cudnnSoftmaxForward": ["softmax_forward"],
    "cudnnSoftmaxBackward": ["softmax_backward"],
    "cudnnBatchNormalizationForwardInference": ["bn_inference"],
    "cudnnBatchNormalizationForwardTraining": ["bn_training"],
    "cudnnBatchNormalizationForwardTrainingEx": ["bn_training"],
    "cudnnBatchNormalizationBackward": ["bn_backward"],
    "cudnnBatchNormalizationBackwardEx": ["bn_backward"],
    "cudnnAddTensor": ["pointwise"],
    "cudnnOpTensor": ["pointwise"],
    "cudnnScaleTensor": ["pointwise"],
    "cudnnSetTensor": ["pointwise"],
    "cudnnTransformTensor": ["pointwise"],
    "cudnnTransformTensorEx": ["transform"],
    "cudnnTransformFilter": ["transform"],
    "cudnnReduceTensor": ["reduce"],
    "cudnnDropoutForward": ["dropout_forward"],
    "cudnnDropoutBackward": ["dropout_backward"],
    "cudnnLRNCrossChannelForward": ["lrn_forward"],
    "cudnnLRNCrossChannelBackward": ["lrn_backward"],
    "cudnnDivisiveNormalizationForward": ["divnorm_forward"],
    "cudnnDivisiveNormalizationBackward": ["divnorm_backward"],
    "cudnnSpatialTfGridGeneratorForward": ["grid_forward"],
    "cudnnSpatialTfGridGeneratorBackward": ["grid_backward"],
    "cudnnSpatialTfSamplerForward": ["sampler_forward"],
    "cudnnSpatialTfSamplerBackward": ["sampler_backward"],
    "cudnnBackendExecute": ["conv_fprop", "conv_dgrad", "conv_wgrad", "pointwise", "matmul",
                            "reduce"],
}
LINE = re.compile(r"(cudnn\w+): (\w+) on the ([CG])PU by (\w+), workspace \d+ bytes(.*)$")
TENSOR = re.compile(r", \w+ ([\w-]+?)(x\d+)?\[([\d,]*)\] strides \[([-\d,]*)\]")


def layout(vector, dims, strides):
    """NCHW, NHWC, VECT or strided, from packed strides; what is both counts as NCHW."""
    if vector:
        return "VECT"
    def packed(order):
        expected = 1
        for d in order:
            if dims[d] != 1 and strides[d] != expected:
                return False
            expected *= dims[d]
        return True
    rank = len(dims)
    if packed(range(rank - 1, -1, -1)):
        return "NCHW"
    if rank > 2 and packed([1] + list(range(rank - 1, 1, -1)) + [0]):
        return "NHWC"
    return "strided"


def count_log(path, counts):
    with open(path, errors="replace") as log:
        for line in log:
            match = LINE.search(line)
            tensor = TENSOR.search(match.group(5)) if match else None
            if not tensor or not tensor.group(3):
                continue
            dims = [int(x) for x in tensor.group(3).split(",")]
            strides = [int(x) for x in tensor.group(4).split(",")]
            dtype = tensor.group(1) + (tensor.group(2) or "")
            key = (match.group(1), match.group(2), dtype,
                   layout(tensor.group(2), dims, strides))
            counts["|".join(key)] += 1


def record(args):
    counts = collections.Counter()
    folder = os.path.join(args.build, "tests")
    programs = sorted(p for p in os.listdir(folder)
                      if p.startswith(("ops_", "api_backend")) and p.endswith("_test")
                      and not p.endswith("_cpu_test"))  # those repeat the others on one engine
    failed = []
    for program in programs:
        with tempfile.TemporaryDirectory() as scratch:
            log = os.path.join(scratch, "log")
            environment = dict(os.environ, WARPDNN_DEVICE=args.device.lower(),
                               CUDNN_LOGLEVEL_DBG="3", CUDNN_LOGDEST_DBG=log)
            result = subprocess.run([os.path.join(folder, program)], env=environment,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if result.returncode == 0 and os.path.exists(log):
                count_log(log, counts)
            elif result.returncode != 0:
                failed.append(program)
    with open(args.record, "w") as out:
        json.dump(dict(sorted(counts.items())), out, indent=0)
        out.write("\n")
    print(f"{sum(counts.values())} executions in {len(programs) - len(failed)} programs"
          + (f"; failed, not counted: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def table(out, function, op, devices):
    """Rows: types; columns: layout x device."""
    types = sorted({k.split("|")[2] for _, c in devices for k in c
                    if k.startswith(f"{function}|{op}|")})
    layouts = ["NCHW", "NHWC", "strided", "VECT"]
    shown = [l for l in layouts if any(c.get(f"{function}|{op}|{t}|{l}") for _, c in devices
                                       for t in types)]
    name = function if function != "cudnnBackendExecute" else f"{function}: {op}"
    out.append(f"\n### {name}\n")
    if not types:
        out.append("none\n")
        return False
    heads = [f"{l} {d}" for l in shown for d, _ in devices]
    out.append("| type | " + " | ".join(heads) + " |")
    out.append("|---|" + "---|" * len(heads))
    for t in types:
        cells = []
        for l in shown:
            for _, c in devices:
                n = c.get(f"{function}|{op}|{t}|{l}", 0)
                cells.append(str(n) if n else " ")
        out.append(f"| {t} | " + " | ".join(cells) + " |")
    return True


def write(args):
    devices = []
    for path in args.inputs:
        with open(path) as f:
            devices.append((os.path.basename(path).split(".")[0].upper(), json.load(f)))
    out = ["<!-- made by tools/docs/coverage.py; do not edit -->",
           "# What the tests cover", "",
           "Executions in passing programs of `tests/ops` and the backend's tests, by function, type and",
           "layout of the first tensor, and device. Each is judged against an exact answer in double, run",
           "twice (bitwise equal), and on the GPU replayed from a captured graph."]
    complete = True
    for function, ops in FUNCTIONS.items():
        for op in ops:
            complete &= table(out, function, op, devices)
    with open(args.write, "w") as f:
        f.write("\n".join(out) + "\n")
    return 0 if complete else 1


def check(args):
    with open(args.check) as f:
        text = f.read()
    missing = []
    for function, ops in FUNCTIONS.items():
        for op in ops:
            name = function if function != "cudnnBackendExecute" else f"{function}: {op}"
            section = text.split(f"### {name}\n", 1)
            if len(section) < 2 or section[1].lstrip().startswith("none"):
                missing.append(name)
    for name in missing:
        print(f"no passing case of {name}")
    print(f"{sum(len(o) for o in FUNCTIONS.values()) - len(missing)} passed, {len(missing)} failed")
    return 1 if missing else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record")
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--build", default="build")
    parser.add_argument("--write")
    parser.add_argument("--check")
    parser.add_argument("inputs", nargs="*")
    args = parser.parse_args()
    if args.record:
        return record(args)
    if args.write:
        return write(args)
    if args.check:
        return check(args)
    parser.print_help()
    return 2


if __name__ == "__main__":
    sys.exit(main())
