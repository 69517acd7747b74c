#!/usr/bin/env python3
"""The base model on a Vulkan device: tokens per second, kernel times, and the share of the memory's rate."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/e2e"))
import tinyonnx  # noqa: E402

# Of the base model, fp32: what a step reads of the decoder's layers and of the projection onto the vocabulary.
LAYERS, WIDTH, INNER, VOCABULARY = 6, 512, 2048, 37000
STEP_BYTES = 4 * (LAYERS * (6 * WIDTH * WIDTH + 2 * WIDTH * INNER) + WIDTH * VOCABULARY)
STREAM = 1 << 26  # elements that the calibration reads and writes


class Bench:
    def __init__(self, arguments, folder):
        self.tool, self.folder = arguments.bin / "transept", folder
        self.device = arguments.device
        self.end = time.monotonic() + arguments.seconds

    def run(self, *command):
        """The output, or None where time ran out or the command failed, which is said."""
        left = self.end - time.monotonic()
        if left <= 0:
            return None
        try:
            result = subprocess.run([self.tool, *map(str, command)], capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            return None
        if result.returncode:
            print(f"failed: {' '.join(map(str, command))}: {result.stderr.strip()}")
            return None
        return result.stdout

    def trace(self, *command):
        """Complete events of a run."""
        path = self.folder / "trace.json"
        if self.run(*command, "--device", self.device, "--trace", path) is None:
            return []
        with open(path, encoding="utf-8") as file:
            return [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]

    def stream_rate(self):
        """Bytes per second that a kernel reads and writes: y = x + x over a quarter of a gigabyte, the best of six calls."""
        model, artifact, values = (self.folder / name for name in ("stream.onnx", "stream.tsp", "x.npy"))
        graph = tinyonnx.model([tinyonnx.node("Add", ["x", "x"], ["y"])], [("x", np.float32, [STREAM])], [("y", np.float32, [STREAM])])
        model.write_bytes(graph)
        np.save(values, np.ones(STREAM, np.float32))
        if self.run("compile", model, "--target", "vulkan", "-o", artifact, "-q") is None:
            return None
        spans = self.trace("bench", artifact, "--input", f"x=@{values}", "--repeat", 5)
        parts = len(spans) // 6  # a call is split where a device takes fewer workgroups at once
        calls = [sum(span["dur"] for span in spans[i : i + parts]) for i in range(0, len(spans), parts)] if parts else []
        return 8 * STREAM / (min(calls) * 1e-6) if calls else None


def rows(bench, artifact, batches, tokens, stream):
    print("\n| batch | beams | tok/s, median (best) | ms per step | share of the memory's rate |\n|---|---|---|---|---|")
    for beams in (1, 4):
        for batch in batches:
            out = bench.run("bench", artifact, "--device", bench.device, "--batch", batch, "--num-beams", beams, "--tokens", tokens, "--repeat", 3, "--json")
            if out is None:
                print(f"| {batch} | {beams} | not measured | | |", flush=True)
                continue
            found = json.loads(out)
            step = found["call_milliseconds"]["p50"] / tokens  # with its part of the encoder
            share = f"{STEP_BYTES / (step * 1e-3) / stream:.0%}" if stream else ""
            rate = found["tokens_per_second"]
            print(f"| {batch} | {beams} | {rate['median']:.0f} ({rate['best']:.0f}) | {step:.3f} | {share} |", flush=True)


def kernels(bench, artifact, batch, tokens):
    spans = [s for s in bench.trace("bench", artifact, "--batch", batch, "--tokens", tokens, "--repeat", 1) if s["args"]["entry"] == "step"]
    if not spans:
        return
    total, count, node = collections.Counter(), collections.Counter(), {}
    for span in spans:
        total[span["name"]] += span["dur"]
        count[span["name"]] += 1
        node[span["name"]] = span["args"]["nodes"].split(",")[0]
    everything = sum(total.values())
    print(f"\nKernels of a step, batch {batch}, greedy:\n\n| kernel | first node | µs each | times | share |\n|---|---|---|---|---|")
    for name, microseconds in total.most_common(12):
        print(f"| {name} | {node[name]} | {microseconds / count[name]:.1f} | {count[name]} | {microseconds / everything:.0%} |")


def peer(model, batches, tokens):
    """ONNX Runtime, greedy, on the processor."""
    peers = pathlib.Path(__file__).with_name("peers.py")
    for batch in batches:
        command = [sys.executable, peers, "onnxruntime", "--model", model, "--batch", str(batch), "--tokens", str(tokens)]
        result = subprocess.run(command, input="\n\n\n", capture_output=True, text=True)
        lines = [json.loads(line) for line in result.stdout.splitlines()] if result.returncode == 0 else []
        if len(lines) < 4:
            print("\nONNX Runtime: not installed, or it failed")
            return
        best = max(line["tokens"] / line["seconds"] for line in lines[2:])
        print(f"\nONNX Runtime {lines[0]['version']}, processor, one thread, batch {batch}: {best:.0f} tok/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path, help="folder of export_random.py")
    parser.add_argument("bin", type=pathlib.Path, help="folder of the program transept")
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--batches", default="1,8,32,128")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=540, help="for everything on the device")
    arguments = parser.parse_args()
    batches = [int(batch) for batch in arguments.batches.split(",")]
    with tempfile.TemporaryDirectory(prefix="transept-vulkan-") as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        print(bench.run("devices"))
        artifact = bench.folder / "base.tsp"
        if bench.run("compile", arguments.model / "onnx", "--target", "vulkan", "-o", artifact, "-q") is None:
            sys.exit(1)
        stream = bench.stream_rate()
        print(f"Memory: {stream / 1e9:.1f} GB/s read and written. A step reads {STEP_BYTES / 1e6:.0f} MB of weights." if stream else "Memory: not measured")
        kernels(bench, artifact, batches[0], arguments.tokens)
        rows(bench, artifact, batches, arguments.tokens, stream)
        kernels(bench, artifact, batches[-1], arguments.tokens)
    peer(arguments.model, batches[:1], arguments.tokens)


if __name__ == "__main__":
    main()
