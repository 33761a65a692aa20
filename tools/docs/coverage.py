#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/api_coverage.md: how often each computing function ran in passing tests, by type and
layout of its leading tensor and by device.

    coverage.py --record cpu.json --device CPU [--build build]   run tests/ops and the backend's
    coverage.py --record gpu.json --device GPU [--build build]   the same, on a GPU
    coverage.py --write docs/api_coverage.md     make the page, from docs/coverage/{cpu,gpu}.json
    coverage.py --check docs/api_coverage.md     no cell is empty, the page is what its records say

The counts come from the library's own log (one line an executed operation) while the tests run; a
program that fails counts nothing. Every function has every type and every layout: a cell is a
count, or n/a with the reason why the API has no such call (NOT_APPLICABLE), or, on the GPU,
"not yet" where the CPU's record has it and the GPU's has not. An empty cell is an error."""
import argparse
import collections
import concurrent.futures
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
    "cudnnNormalizationForwardInference": ["bn_inference"],
    "cudnnNormalizationForwardTraining": ["bn_training"],
    "cudnnNormalizationBackward": ["bn_backward"],
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
                            "reduce", "resample_forward", "resample_backward", "concat", "reshape",
                            "rng", "norm_inference", "norm_training", "norm_backward", "gen_stats",
                            "bn_finalize", "bn_bwd_weights"],
}
# The tensor that leads where it is not the first one: filters have no strides, A of an addition
# repeats, the value that is set is no tensor, a seed is one number.
LEADING = {"conv_dgrad": "dy", "cudnnAddTensor": "y", "cudnnSetTensor": "y", "concat": "x0",
           "rng": "y"}

FLOATS = ["fp32", "fp64", "fp16", "bf16"]
PLAIN_INTEGERS = ["int8", "uint8", "int32"]
VECTORS = ["int8x4", "uint8x4", "int8x32"]
INTEGERS = PLAIN_INTEGERS + VECTORS
TYPES = FLOATS + INTEGERS
LAYOUTS = ["NCHW", "NHWC", "strided", "VECT"]
PLAIN_LAYOUTS = LAYOUTS[:3]

# What the API does not have: (pattern of "function: operation", types, layouts, reason). The first
# row that fits gives the reason.
NOT_APPLICABLE = [
    (".*", VECTORS, PLAIN_LAYOUTS, "vectors of channels have a layout of their own"),
    (".*", FLOATS + PLAIN_INTEGERS, ["VECT"], "the type has no vectors of channels"),
    ("cudnn(?!Dropout).*Backward.*|.*(_dgrad|_wgrad|resample_backward|norm_backward|_bwd_weights)",
     INTEGERS, LAYOUTS,
     "gradients are floating-point numbers"),
    ("cudnn(Softmax|BatchNormalization|Normalization|LRN|Divisive|SpatialTf).*", INTEGERS, LAYOUTS,
     "the function is documented for floating-point types"),
    (".*bn_finalize", INTEGERS, LAYOUTS, "sums of channels are floating-point numbers"),
    (".*bn_finalize", FLOATS, ["NHWC", "strided"], "one number a channel has one layout"),
    (".*(conv_fprop|conv_fused)", ["int32"], LAYOUTS,
     "int32 is what sums of 8-bit products go out in; no image of it is convolved"),
    ("cudnnTransformFilter.*", TYPES, ["strided"], "a filter descriptor has an order, no strides"),
    ("cudnnTransformFilter.*", ["int32"], LAYOUTS, "no filter descriptor takes int32"),
    ("cudnnBackendExecute: matmul", VECTORS, ["VECT"], "matrices have no channels"),
    ("cudnnBackendExecute: reshape", VECTORS, ["VECT"],
     "vectors of channels have no order in memory of their own"),
    (".*(GridGenerator).*", FLOATS, ["NHWC", "strided"],
     "theta and the grid are packed arrays without a tensor descriptor"),
]
DEVICES = ["CPU", "GPU"]
LINE = re.compile(r"(cudnn\w+): (\w+) on the ([CG])PU by (\w+), workspace \d+ bytes(.*)$")
TENSOR = r", %s ([\w-]+?)(x\d+)?\[([\d,]*)\] strides \[([-\d,]*)\]"


def layout(op, vector, dims, strides):
    """NCHW, NHWC, VECT or strided, from packed strides; what is both counts as NCHW. Matrices row
    after row count as NCHW, column after column as NHWC."""
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
    if op == "matmul":
        columns = [rank - 2, rank - 1] + list(range(rank - 3, -1, -1))
        return "NHWC" if packed(columns) else "strided"
    if rank > 2 and packed([1] + list(range(rank - 1, 1, -1)) + [0]):
        return "NHWC"
    return "strided"


def count_log(path, counts):
    with open(path, errors="replace") as log:
        for line in log:
            match = LINE.search(line)
            if not match:
                continue
            leading = LEADING.get(match.group(1), LEADING.get(match.group(2), r"\w+"))
            tensor = re.search(TENSOR % leading, match.group(5))
            if not tensor or not tensor.group(3):
                continue
            dims = [int(x) for x in tensor.group(3).split(",")]
            strides = [int(x) for x in tensor.group(4).split(",")]
            dtype = tensor.group(1) + (tensor.group(2) or "")
            key = (match.group(1), match.group(2), dtype,
                   layout(match.group(2), tensor.group(2), dims, strides))
            counts["|".join(key)] += 1


def count_program(program, device):
    """The exit status of one program, and the counts of its log."""
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        log = os.path.join(scratch, "log")
        environment = dict(os.environ, WARPDNN_DEVICE=device,
                           CUDNN_LOGLEVEL_DBG="3", CUDNN_LOGDEST_DBG=log)
        result = subprocess.run([program], env=environment, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        if result.returncode == 0 and os.path.exists(log):
            count_log(log, counts)
    return result.returncode, counts


def record(args):
    counts = collections.Counter()
    folder = os.path.join(args.build, "tests")
    programs = sorted(p for p in os.listdir(folder)
                      if p.startswith(("ops_", "api_backend")) and p.endswith("_test")
                      and not p.endswith("_cpu_test"))  # those repeat the others on one engine
    failed = []
    # processes, since logs are long and threads would read them one at a time
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        runs = pool.map(count_program, [os.path.join(folder, p) for p in programs],
                        [args.device.lower()] * len(programs))
        for program, (status, own) in zip(programs, runs):
            counts.update(own)
            if status != 0:
                failed.append(program)
    with open(args.record, "w") as out:
        json.dump(dict(sorted(counts.items())), out, indent=0)
        out.write("\n")
    print(f"{sum(counts.values())} executions in {len(programs) - len(failed)} programs"
          + (f"; failed, not counted: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def sections():
    """Each function with each of its directions: heading, prefix of its keys."""
    for function, ops in FUNCTIONS.items():
        for op in ops:
            name = f"{function}: {op}" if len(ops) > 1 else function
            yield name, f"{function}|{op}|", f"{function}: {op}"


def cell(counts, device, name, key, dtype, lay, reasons):
    n = counts[device].get(key, 0)
    if n:
        return str(n)
    if device == "GPU" and counts["CPU"].get(key):
        return "not yet"
    for pattern, types, layouts, reason in NOT_APPLICABLE:
        if dtype in types and lay in layouts and re.fullmatch(pattern, name):
            if reason not in reasons:
                reasons.append(reason)
            return f"n/a ({reasons.index(reason) + 1})"
    return ""


def page(folder):
    """The page as text, from the records in a folder."""
    counts = {}
    for device in DEVICES:
        path = os.path.join(folder, device.lower() + ".json")
        counts[device] = {}
        if os.path.exists(path):
            with open(path) as f:
                counts[device] = json.load(f)
    reasons = []
    out = []
    for name, prefix, full in sections():
        heads = [f"{lay} {device}" for lay in LAYOUTS for device in DEVICES]
        out += [f"\n### {name}\n", "| type | " + " | ".join(heads) + " |",
                "|---|" + "---|" * len(heads)]
        for dtype in TYPES:
            cells = [cell(counts, device, full, f"{prefix}{dtype}|{lay}", dtype, lay, reasons)
                     for lay in LAYOUTS for device in DEVICES]
            out.append(f"| {dtype} | " + " | ".join(cells) + " |")
    top = ["<!-- made by tools/docs/coverage.py; do not edit -->",
           "# What the tests cover", "",
           "Executions in passing programs of `tests/ops` and the backend's tests, by function, type",
           "and layout of the leading tensor, and device. Each is judged against an exact answer in",
           "double, run twice (bitwise equal), and on the GPU replayed from a captured graph. Matrices",
           "row after row stand under NCHW, column after column under NHWC.", "",
           "`not yet`: the CPU's record has it, the GPU's has not. `n/a`: the API has no such call,",
           "because", ""]
    top += [f"{i + 1}. {reason}" for i, reason in enumerate(reasons)]
    return "\n".join(top + out) + "\n"


def records_of(path):
    return os.path.join(os.path.dirname(path), "coverage")


def write(args):
    with open(args.write, "w") as f:
        f.write(page(records_of(args.write)))
    return 0


def check(args):
    """Every function has a section, every cell of it something; how many the GPU still lacks."""
    with open(args.check) as f:
        text = f.read()
    full = empty = missing = waiting = 0
    for name, _, _ in sections():
        section = text.split(f"\n### {name}\n", 1)
        lines = section[1].split("\n### ", 1)[0].splitlines() if len(section) == 2 else []
        rows = {line.split("|")[1].strip(): [c.strip() for c in line.split("|")[2:-1]]
                for line in lines if line.startswith("| ")}
        heads = rows.pop("type", [])
        if heads != [f"{lay} {device}" for lay in LAYOUTS for device in DEVICES]:
            print(f"{name}: not its columns")
            missing += 1
            continue
        for dtype in TYPES:
            for head, value in zip(heads, rows.get(dtype, [""] * len(heads))):
                if not value:
                    print(f"no passing case of {name}, {dtype}, {head}")
                    empty += 1
                else:
                    full += 1
                    waiting += value == "not yet"
    if text != page(records_of(args.check)):
        print(f"{args.check} is not what its records say: coverage.py --write {args.check} makes it")
        missing += 1
    if waiting:
        print(f"warning: {waiting} cells are not recorded on the GPU yet")
    print(f"{full} passed, {empty + missing} failed")
    return 1 if empty or missing else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record")
    parser.add_argument("--device", default="CPU", choices=["CPU", "GPU"])
    parser.add_argument("--build", default="build")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--write")
    parser.add_argument("--check")
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
