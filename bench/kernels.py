#!/usr/bin/env python3
"""kernels.py --bin build/bin: products alone, as a share of what the machine gives.

For every shape of matrix in the base and big models of the paper and in Whisper tiny: a graph of so many products, one after
the other, with weights of their own that no cache holds them, run with 1 to 512 rows. As in a model, rows come from the kernel
before, so they are in a cache. Up to 8 rows, the rate at which weights are read, against the rate of reading memory; from 24 rows,
multiply-adds, against the peak. The time is that of the products' spans in a trace. Calibrated before and after each line.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
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
    """The rows of a product are those of the input plus the first column of the product before."""
    random = np.random.default_rng(1)
    weights = [numpy_helper.from_array(np.array([value], np.int64), name) for name, value in (("first", 0), ("last", 1), ("axis", 1))]
    nodes, rows = [], "x"
    for i in range(copies):
        if i:
            nodes.append(helper.make_node("Slice", [f"y{i - 1}", "first", "last", "axis"], [f"s{i}"]))
            nodes.append(helper.make_node("Add", ["x", f"s{i}"], [f"x{i}"]))
            rows = f"x{i}"
        nodes.append(helper.make_node("MatMul", [rows, f"w{i}"], [f"y{i}"]))
        weights.append(numpy_helper.from_array(random.standard_normal((k, n), np.float32) / k, f"w{i}"))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", k])]
    outputs = [helper.make_tensor_value_info(f"y{copies - 1}", TensorProto.FLOAT, ["rows", n])]
    graph = helper.make_graph(nodes, "products", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def measure(args, artifact, k, copies, rows, folder):
    """Seconds that the products of a call take, the median of several calls."""
    inputs, trace = folder / "inputs.npz", folder / "trace.json"
    np.savez(inputs, x=np.random.default_rng(2).standard_normal((rows, k), np.float32))
    repeat = args.repeat or (15 if rows <= 24 else 5)
    command = [args.bin / "transept", "bench", artifact, "--inputs", inputs, "--threads", args.threads, "--warmup", 1, "--json",
               "--repeat", repeat, "--trace", trace]  # fmt: skip
    subprocess.run(pinned(command, args.threads), check=True, stdout=subprocess.DEVNULL)
    events = json.loads(trace.read_text())
    if events["otherData"]["dropped_spans"]:
        sys.exit("kernels.py: the trace is not complete; use a smaller --repeat")
    # Per thread and call; threads work on a product together.
    times = {}
    for event in events["traceEvents"]:
        if event["ph"] == "X" and event["name"].startswith("contract"):
            times.setdefault(event["tid"], []).append(1e-6 * event["dur"])
    calls = [[sum(spans[i : i + copies]) for i in range(copies, len(spans), copies)] for spans in times.values()]
    return statistics.median(map(max, zip(*calls)))


def shape(text):
    k, n = text.split("x")
    return int(k), int(n)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="fp32", choices=BYTES)
    parser.add_argument("--models", default=",".join(SHAPES))
    parser.add_argument("--shapes", help="instead of models' matrices: 512x2048,384x384")
    parser.add_argument("--rows", default=",".join(map(str, READING + COMPUTING)))
    parser.add_argument("--megabytes", type=int, default=128, help="of weights in a graph")
    parser.add_argument("--repeat", type=int, help="calls that are counted")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    shapes = [each for model in args.models.split(",") for each in SHAPES[model]]
    if args.shapes:
        shapes = list(map(shape, args.shapes.split(",")))
    records = []
    print("| k × n | rows | GB/s | share of the memory | GFLOP/s | share of the peak |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(["cc", "-O3", "-march=native", "-ffp-contract=fast", "-pthread", HERE / "calibrate.c", "-o", folder / "calibrate"], check=True)

        def calibrate():
            return json.loads(subprocess.check_output(pinned([folder / "calibrate", args.threads], args.threads), text=True))

        for k, n in dict.fromkeys(shapes):
            copies = max(1, (args.megabytes << 20) // (k * n * BYTES[args.precision]))
            write_graph(folder / "products.onnx", k, n, copies)
            artifact = folder / "products.tsp"
            subprocess.run([args.bin / "transept", "compile", folder / "products.onnx", "-o", artifact, "--precision", args.precision, "-q"], check=True)
            for rows in map(int, args.rows.split(",")):
                before = calibrate()
                seconds = measure(args, artifact, k, copies, rows, folder)
                limits = [statistics.mean(both) for both in zip(before.values(), calibrate().values())]
                limits = dict(zip(before, limits))
                rate = 1e-9 * k * n * copies * BYTES[args.precision] / seconds
                flops = 2e-9 * rows * k * n * copies / seconds
                record = {"k": k, "n": n, "rows": rows, "gbytes_per_s": rate, "gflops": flops, "memory": rate / limits["gbytes_per_s"],
                          "peak": flops / limits[PEAKS[args.precision]] if PEAKS[args.precision] in limits else None, "calibration": limits}  # fmt: skip
                records.append(record)
                memory = f"{rate:.1f} | {100 * record['memory']:.0f} %" if rows <= max(READING) else " | "
                peak = f"{flops:.0f} | {100 * record['peak']:.0f} %" if rows > max(READING) and record["peak"] else " | "
                print(f"| {k} × {n} | {rows} | {memory} | {peak} |", flush=True)
    if args.out:
        args.out.write_text(json.dumps({**machine(), "precision": args.precision, "threads": args.threads, "products": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
