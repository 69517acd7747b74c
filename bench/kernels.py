#!/usr/bin/env python3
"""kernels.py --bin build/bin: products alone, as a share of what the machine gives.

For every shape of matrix in the base and big models of the paper and in Whisper tiny: a graph of so many products with
weights of their own that no cache holds them, run with 1 to 512 rows. Up to 8 rows, the rate at which weights are read, against
the rate of reading memory; from 24 rows, multiply-adds, against the peak. Calibrated before and after each shape.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from run import HERE, machine, pinned

SHAPES = {
    "base": [(512, 512), (512, 1536), (512, 2048), (2048, 512), (512, 37000)],
    "big": [(1024, 1024), (1024, 3072), (1024, 4096), (4096, 1024), (1024, 37000)],
    "whisper-tiny": [(384, 384), (384, 1152), (384, 1536), (1536, 384), (384, 51864)],
}
READING, COMPUTING = (1, 4, 8), (24, 96, 512)
BYTES = {"fp32": 4, "bf16": 2, "int8": 1, "int8-weights": 1}
PEAKS = {"fp32": "gflops", "bf16": "bf16_gflops", "int8": "int8_gflops", "int8-weights": "gflops"}


def write_graph(path, k, n, copies):
    random = np.random.default_rng(1)
    nodes, inputs, outputs, weights = [], [], [], []
    for i in range(copies):
        nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"y{i}"]))
        inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, ["rows", k]))
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, ["rows", n]))
        weights.append(numpy_helper.from_array(random.standard_normal((k, n), np.float32), f"w{i}"))
    graph = helper.make_graph(nodes, "products", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def measure(args, artifact, k, copies, rows, folder):
    """Median seconds of a call, medians of processes that take turns with nothing."""
    inputs = folder / "inputs.npz"
    x = np.random.default_rng(2).standard_normal((rows, k), np.float32)
    np.savez(inputs, **{f"x{i}": x for i in range(copies)})
    command = [args.bin / "transept", "bench", artifact, "--inputs", inputs, "--threads", args.threads, "--warmup", 1, "--json",
               "--repeat", 15 if rows <= 24 else 5]  # fmt: skip
    result = json.loads(subprocess.check_output(pinned(command, args.threads), text=True))
    return 1e-3 * result["call_milliseconds"]["p50"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="fp32", choices=BYTES)
    parser.add_argument("--models", default=",".join(SHAPES))
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    records = []
    print("| k × n | rows | GB/s | share of the memory | GFLOP/s | share of the peak |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(["cc", "-O3", "-march=native", "-ffp-contract=fast", "-pthread", HERE / "calibrate.c", "-o", folder / "calibrate"], check=True)

        def calibrate():
            return json.loads(subprocess.check_output(pinned([folder / "calibrate", args.threads], args.threads), text=True))

        for k, n in dict.fromkeys(shape for model in args.models.split(",") for shape in SHAPES[model]):
            copies = max(1, (128 << 20) // (k * n * BYTES[args.precision]))
            write_graph(folder / "products.onnx", k, n, copies)
            artifact = folder / "products.tsp"
            subprocess.run([args.bin / "transept", "compile", folder / "products.onnx", "-o", artifact, "--precision", args.precision, "-q"], check=True)
            for rows in READING + COMPUTING:
                before = calibrate()
                seconds = measure(args, artifact, k, copies, rows, folder)
                limits = [statistics.mean(both) for both in zip(before.values(), calibrate().values())]
                limits = dict(zip(before, limits))
                rate = 1e-9 * k * n * copies * BYTES[args.precision] / seconds
                flops = 2e-9 * rows * k * n * copies / seconds
                record = {"k": k, "n": n, "rows": rows, "gbytes_per_s": rate, "gflops": flops, "memory": rate / limits["gbytes_per_s"],
                          "peak": flops / limits[PEAKS[args.precision]] if PEAKS[args.precision] in limits else None, "calibration": limits}  # fmt: skip
                records.append(record)
                memory = f"{rate:.1f} | {100 * record['memory']:.0f} %" if rows in READING else " | "
                peak = f"{flops:.0f} | {100 * record['peak']:.0f} %" if rows in COMPUTING and record["peak"] else " | "
                print(f"| {k} × {n} | {rows} | {memory} | {peak} |", flush=True)
    if args.out:
        args.out.write_text(json.dumps({**machine(), "precision": args.precision, "threads": args.threads, "products": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
