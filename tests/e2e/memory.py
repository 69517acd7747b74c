"""A process holds what the plan says: weights, arena, scratch and reserved caches, and little else; steps allocate nothing."""

import json
import os
import re
import subprocess

import numpy as np
import tinyonnx
from tool import expect, expect_success, read

MANIFEST = 1 << 19  # what manifest, tokenizer and search of such a small model take beside the plan
HERE = os.path.dirname(os.path.abspath(__file__))


def bench(tool, artifact, *flags):
    result = tool.run("transept", "bench", artifact, "--repeat", "1", "--json", *flags)
    expect_success(result, f"bench {' '.join(flags)}")
    figures = json.loads(result.stdout)
    return figures["weight_bytes"] + figures["reserved_bytes"], figures["resident_bytes"], figures["weight_bytes"]


def check_resident(tool, root, tmp):
    """Within a tenth and half a megabyte, apart from what the program and its libraries take in a process with next to no model."""
    nothing, artifact = os.path.join(tmp, "linear.tsp"), os.path.join(tmp, "g2p.tsp")
    source = tinyonnx.write(os.path.join(tmp, "linear.onnx"), tinyonnx.linear_model()[0])
    expect_success(tool.compile(source, nothing), "compile")
    expect_success(tool.compile(os.path.join(root, "models/g2p"), artifact), "compile")
    np.savez(os.path.join(tmp, "x.npz"), x=np.zeros((1, 24), "f4"))
    planned, program, _ = bench(tool, nothing, "--inputs", os.path.join(tmp, "x.npz"))
    expect(planned < 1 << 20 < program, f"a plan of {planned} bytes, {program} resident")
    for batch, beams in (("1", "1"), ("32", "4")):
        planned, resident, _ = bench(tool, artifact, "--batch", batch, "--num-beams", beams)
        what = f"batch {batch}, {beams} beams: {resident - program} bytes resident, {planned} planned"
        expect(resident - program <= 1.1 * planned + MANIFEST, what)
        # What is planned is used: a plan that promises more than it needs would prove nothing.
        expect(resident - program >= 0.5 * planned, what)


def check_allocations(tool, root, tmp):
    """A call of many steps allocates as often as one of few: a step allocates nothing, search included."""
    artifact, counter = os.path.join(tmp, "m.tsp"), os.path.join(tmp, "count.so")
    expect_success(tool.compile(os.path.join(root, "tests/models/marian-tiny"), artifact), "compile")
    source = os.path.join(HERE, "countAllocations.c")
    subprocess.run(["cc", "-std=c11", "-O1", "-shared", "-fPIC", source, "-o", counter], check=True, capture_output=True)
    for beams in ("1", "4"):
        counts = {}
        for tokens in ("8", "40"):
            flags = ("--num-beams", beams, "--tokens", tokens, "--source", "12", "--batch", "3", "--threads", "1")
            result = tool.run("transept", "bench", artifact, *flags, env={**os.environ, "LD_PRELOAD": counter})
            expect_success(result, f"bench {' '.join(flags)}")
            counts[tokens] = int(re.search(r"^allocations: (\d+)$", result.stderr, re.MULTILINE).group(1))
        expect(counts["8"] > 1000, f"the counter does not count: {counts}")
        expect(counts["8"] == counts["40"], f"{beams} beams: allocations by tokens generated: {counts}")


# What is known before the first step; nothing else may decide a size in it.
CALL_SYMBOLS = {"rows", "batch", "source", "capacity", "blocks", "specials", "topk"}


def check_step(tool, root, tmp):
    """In a step no size depends on step state, and a dispatch that writes a cache is an append, which reads none."""
    dumps = os.path.join(tmp, "dumps")
    source = os.path.join(root, "tests/models/marian-tiny")
    expect_success(tool.run("transept", "compile", source, "--stop-after", "plan", "--dump-ir", dumps, "-q"), "compile")
    text = read(os.path.join(dumps, next(name for name in os.listdir(dumps) if name.endswith("-plan.mlir")))).decode()

    def body(kind, name):
        start = text.index(f"{kind} @{name} ")
        return text[start : text.index("\n  }", start)]

    step = body("kernel.program", "step")
    symbols = set(re.findall(r'"(\w+)"', re.search(r"symbols \[([^]]*)\]", step).group(1)))
    expect(symbols <= CALL_SYMBOLS, f"sizes depend on {sorted(symbols - CALL_SYMBOLS)}")
    cache = re.search(r'(%\d+) = kernel.buffer "state" "cache.self"', step).group(1)
    uses = []
    for kernel, buffers in re.findall(r"kernel.dispatch @(\S+?)\(([^)]*)\)", step):
        if cache not in buffers.split(", "):
            continue
        function = body("kernel.func", kernel)
        uses += re.findall(r"^    kernel\.(\w+)", function, re.MULTILINE)
        if uses[-1] != "cache_append":
            written = re.search(r" outs\(([^)]*)\)", function).group(1).split(", ")
            expect(f"%arg{buffers.split(', ').index(cache)}" not in written, f"{kernel} writes the cache")
    layers = len(uses) // 2
    expect(layers > 0 and uses == ["cache_append", "attend_cache"] * layers, f"the cache is used by {uses}")


def check_sessions(tool, root, tmp):
    """Sessions share the weights: four of them hold less than a second copy beside what one holds."""
    artifact = os.path.join(tmp, "g2p.tsp")
    expect_success(tool.compile(os.path.join(root, "models/g2p"), artifact), "compile")
    peak = {}
    for sessions in ("1", "4"):
        command = [tool.path("transept"), "translate", artifact, "--sessions", sessions, "--batch", "2", "-q"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdin.write(b"internationalization\n" * 200)
            process.stdin.flush()
            for _ in range(200):
                process.stdout.readline()
            # Not what wait4() reports: that counts the memory of this program, too, before exec.
            with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                peak[sessions] = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
            process.stdin.close()
        expect(process.returncode == 0, f"{sessions} sessions: exit {process.returncode}")
    weights = bench(tool, artifact, "--tokens", "1")[2]
    more = peak["4"] - peak["1"]
    expect(0 < more < weights, f"three more sessions hold {more} bytes more, the weights have {weights}: {peak}")


def tests(tool, root):
    yield "step and caches", lambda tmp: check_step(tool, root, tmp)
    yield "allocations", lambda tmp: check_allocations(tool, root, tmp)
    yield "memory of sessions", lambda tmp: check_sessions(tool, root, tmp)
    yield "resident memory", lambda tmp: check_resident(tool, root, tmp)
