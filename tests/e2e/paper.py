"""The 2017 paper's model as checks of compiled artifacts: attention, masks, positions, caches, and what memory they take.

Figures are those of scaled dot-product attention by hand, computed here in double precision. Float inputs of the models
are the graph's; the compiler is free in everything but the answer.
"""

import json
import os
import re

import numpy as np
import tinyonnx
from tool import expect, expect_success

TOLERANCE = 2e-6
KEYS = np.array([[1, 0], [0, 1], [1, 1]], "f4")
VALUES = np.array([[10, 0], [0, 10], [10, 10]], "f4")
NO_MASK_0 = (8.022242, 5.988879)
CAUSAL = ((10.0, 0.0), (3.302385, 6.697615), (7.517449, 7.517449))
MASKED_AFTER_0 = (4.011121, 0.0)  # what a mask applied after the softmax gives
HEADS = 2
MASK_KINDS = ("lowest", "minus infinity", "-1e9", "-1e4", "where", "trilu", "range")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Graph:
    """Nodes and weights of a small model, in order."""

    def __init__(self):
        self.nodes, self.weights = [], {}

    def add(self, kind, *inputs, **attributes):
        names = [i if isinstance(i, str) else self.weight(i) for i in inputs]
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(tinyonnx.node(kind, names, [name], name, **attributes))
        return name

    def weight(self, array, name=None):
        name = name or f"w{len(self.weights)}"
        self.weights[name] = np.asarray(array)
        return name

    def write(self, path, inputs, outputs):
        """`outputs` maps values to the names they get."""
        nodes = self.nodes + [tinyonnx.node("Identity", [value], [name], f"to_{name}") for value, (name, _, _) in outputs]
        content = tinyonnx.model(nodes, inputs, [output for _, output in outputs], self.weights)
        return tinyonnx.write(path, content)


def causal_bias(graph, kind, scores, length):
    """Scores [.., L, L] with the future excluded, as exporters write it; the last two kinds make the mask for any length."""
    future = np.triu(np.ones((length or 1, length or 1), bool), 1)
    lowest = {"lowest": np.finfo("f4").min, "minus infinity": -np.inf, "-1e9": -1e9, "-1e4": -1e4}
    if kind in lowest:
        return graph.add("Add", scores, np.where(future, np.float32(lowest[kind]), np.float32(0)))
    if kind == "where":
        return graph.add("Where", ~future, scores, np.array(-np.inf, "f4"))
    size = graph.add("Gather", graph.add("Shape", scores), np.array(-1, "i8"), axis=0)
    if kind == "trilu":
        square = graph.add("Concat", *[graph.add("Unsqueeze", size, np.array([0], "i8"))] * 2, axis=0)
        ones = graph.add("Expand", np.array(-1e9, "f4"), square)
        return graph.add("Add", scores, graph.add("Trilu", ones, np.array(1, "i8"), upper=1))
    positions = graph.add("Range", np.array(0, "i8"), size, np.array(1, "i8"))
    rows = graph.add("Unsqueeze", positions, np.array([1], "i8"))
    columns = graph.add("Unsqueeze", positions, np.array([0], "i8"))
    return graph.add("Where", graph.add("LessOrEqual", columns, rows), scores, np.array(-3.4e38, "f4"))


def attention(scale="scores", mask=None, after=False, weights=True, padding=False):
    """softmax(Q·Kᵀ/√d)·V of q, k, v [batch, 2 heads, length, 2]; with `after`, the mistake of masking probabilities."""
    graph, root = Graph(), np.float32(np.sqrt(2))
    q, k = "q", graph.add("Transpose", "k", perm=[0, 1, 3, 2])
    if scale == "query":
        q = graph.add("Mul", q, np.array(1 / root, "f4"))
    elif scale == "both":
        factor = graph.add("Sqrt", np.array(1 / root, "f4"))
        q, k = graph.add("Mul", q, factor), graph.add("Mul", k, factor)
    scores = graph.add("MatMul", q, k)
    if scale == "scores":
        scores = graph.add("Div", scores, np.array(root, "f4"))
    if mask and not after:
        scores = causal_bias(graph, mask, scores, 3)
    if padding:
        kept = graph.add("Unsqueeze", graph.add("Cast", "mask", to=9), np.array([1, 2], "i8"))
        scores = graph.add("Where", kept, scores, np.array(np.finfo("f4").min, "f4"))
    shares = graph.add("Softmax", scores, axis=-1)
    if after:
        shares = graph.add("Mul", shares, np.tril(np.ones((3, 3), "f4")))
    dims = ["batch", HEADS, "length", 2]
    outputs = [(graph.add("MatMul", shares, "v"), ("y", "f4", dims))]
    if weights:
        outputs.append((shares, ("shares", "f4", ["batch", HEADS, "length", "length"])))
    inputs = [(name, "f4", dims) for name in "qkv"] + ([("mask", "i8", ["batch", "length"])] if padding else [])
    return graph, inputs, outputs


def paper_inputs():
    """The same keys and values in each head."""
    return {name: np.tile(array, (1, HEADS, 1, 1)) for name, array in (("q", KEYS), ("k", KEYS), ("v", VALUES))}


def run(tool, tmp, artifact, **inputs):
    files = [os.path.join(tmp, name) for name in ("x.npz", "y.npz")]
    np.savez(files[0], **inputs)
    expect_success(tool.run("transept", "run", artifact, "--inputs", files[0], "--outputs", files[1]), "run")
    with np.load(files[1]) as outputs:
        return {name: outputs[name] for name in outputs.files}


def build(tool, tmp, graph, inputs, outputs, *flags):
    artifact = os.path.join(tmp, "m.tsp")
    expect_success(tool.compile(graph.write(os.path.join(tmp, "m.onnx"), inputs, outputs), artifact, *flags), "compile")
    return artifact


def near(got, want, what, tolerance=TOLERANCE):
    difference = np.abs(np.asarray(got, "f8") - want).max()
    expect(difference <= tolerance, f"{what}: {np.asarray(got).tolist()}, expected {np.asarray(want).tolist()}")


def check_attention(tool, tmp, scale, mask, weights):
    artifact = build(tool, tmp, *attention(scale, mask, weights=weights), "--report", os.path.join(tmp, "report.json"))
    with open(os.path.join(tmp, "report.json"), encoding="utf-8") as file:
        sites = json.load(file)["attention"]
    # A site stays in pieces where its weights are wanted, and for a mask that is a constant of one length.
    whole = not weights and mask in (None, "trilu", "range")
    expect(sites["sites"] == 1 and sites["fused"] >= whole, f"attention: {sites}")
    one = paper_inputs()
    got = run(tool, tmp, artifact, **one)
    keys = KEYS.astype("f8")
    scores = keys @ keys.T / np.sqrt(2)
    shares = softmax(np.where(np.triu(np.ones((3, 3), bool), 1), -np.inf, scores) if mask else scores)
    near(got["y"][0, 0], shares @ VALUES, "output")
    if mask:
        near(got["y"][0, 0], CAUSAL, "the paper's figures")
        expect(np.abs(got["y"][0, 0, 0] - MASKED_AFTER_0).max() > 1, "masked after the softmax")
    else:
        near(got["y"][0, 0, 0], NO_MASK_0, "the paper's figures")
    if weights:
        near(got["shares"][0, 0], shares, "weights")
        future = got["shares"][0, 0][np.triu(np.ones((3, 3), bool), 1)]
        expect(not mask or not future.any(), f"weights of the future are {future.tolist()}")
    # Each head and row by itself.
    batch = run(tool, tmp, artifact, **{name: np.tile(array, (3, 1, 1, 1)) for name, array in one.items()})
    expect(all((block == got["y"][0, 0]).all() for row in batch["y"] for block in row), "other values in a batch")


def check_masked_after(tool, tmp):
    """A graph that makes the mistake keeps it, and no other graph gets it: fusion must not take one for the other."""
    artifact = build(tool, tmp, *attention(mask="where", after=True))
    got = run(tool, tmp, artifact, **paper_inputs())
    near(got["y"][0, 0, 0], MASKED_AFTER_0, "output of the graph")
    near(got["shares"][0, 0, 0].sum(), 0.401112, "sum of its weights")


def check_padding(tool, tmp):
    """Padding weighs exactly 0, whatever lies there, and the row is the row without it."""
    artifact = build(tool, tmp, *attention(padding=True))
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((2, 2, 5, 2)).astype("f4") for _ in range(3))
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "i8")
    k[0, :, 3:], v[0, :, 3:] = 1e3, 1e6
    got = run(tool, tmp, artifact, q=q, k=k, v=v, mask=mask)
    scores = np.where(mask[:, None, None] != 0, q.astype("f8") @ k.astype("f8").swapaxes(2, 3) / np.sqrt(2), -np.inf)
    near(got["y"], softmax(scores) @ v, "output", 5e-6)
    expect(not got["shares"][0, :, :, 3:].any(), "padding has weights")
    short = run(tool, tmp, artifact, **{name: array[:1, :, :3] for name, array in (("q", q), ("k", k), ("v", v))}, mask=mask[:1, :3])
    expect(short["y"].tobytes() == got["y"][:1, :, :3].tobytes(), "other bits without padding")


def check_positions(tool, tmp, interleaved):
    """Sinusoids made in the graph from the length of its input, at any length."""
    graph, depth = Graph(), 4
    size = graph.add("Gather", graph.add("Shape", "x"), np.array(1, "i8"), axis=0)
    positions = graph.add("Cast", graph.add("Range", np.array(0, "i8"), size, np.array(1, "i8")), to=1)
    rates = graph.add("Exp", (-np.log(1e4) * np.arange(0, depth, 2) / depth).astype("f4"))
    angles = graph.add("Mul", graph.add("Unsqueeze", positions, np.array([1], "i8")), rates)
    parts = [graph.add("Sin", angles), graph.add("Cos", angles)]
    if interleaved:
        parts = [graph.add("Unsqueeze", part, np.array([-1], "i8")) for part in parts]
        table = graph.add("Reshape", graph.add("Concat", *parts, axis=-1), np.array([-1, depth], "i8"))
    else:
        table = graph.add("Concat", *parts, axis=-1)
    dims = ["batch", "length", depth]
    artifact = build(tool, tmp, graph, [("x", "f4", dims)], [(graph.add("Add", "x", table), ("y", "f4", dims))])
    for length in (1, 2, 16):
        angle = np.arange(length)[:, None] / 1e4 ** (np.arange(0, depth, 2) / depth)
        want = np.stack([np.sin(angle), np.cos(angle)], -1) if interleaved else np.concatenate([np.sin(angle), np.cos(angle)], -1)
        got = run(tool, tmp, artifact, x=np.zeros((2, length, depth), "f4"))["y"]
        near(got, np.broadcast_to(want.reshape(length, depth), got.shape), f"{length} positions")
        if length > 1:
            figures = np.array([0.841471, 0.540302, 0.010000, 0.999950])
            near(got[0, 1], figures if interleaved else figures[[0, 2, 1, 3]], "the paper's figures")


class Export:
    """An export directory of the base model's decoder: 6 layers, 8 heads of 64; its layers share weights to stay small."""

    DEPTH, HEADS, LAYERS, WORDS, POSITIONS = 512, 8, 6, 32, 256

    def __init__(self, graph):
        self.graph = graph
        rng = np.random.default_rng(7)
        self.table = graph.weight((0.1 * rng.standard_normal((self.WORDS, self.DEPTH))).astype("f4"), "shared")
        self.places = graph.weight(rng.standard_normal((self.POSITIONS, self.DEPTH)).astype("f4"), "positions")
        self.square = graph.weight((rng.standard_normal((self.DEPTH, self.DEPTH)) / 22).astype("f4"), "projection")
        self.ones, self.zeros = graph.weight(np.ones(self.DEPTH, "f4"), "ones"), graph.weight(np.zeros(self.DEPTH, "f4"), "zeros")

    def embed(self, ids):
        size = self.graph.add("Gather", self.graph.add("Shape", ids), np.array(1, "i8"), axis=0)
        places = self.graph.add("Gather", self.places, self.graph.add("Range", np.array(0, "i8"), size, np.array(1, "i8")))
        return self.graph.add("Add", self.graph.add("Gather", self.table, ids), places)

    def heads(self, x, perm):
        split = self.graph.add("Reshape", self.graph.add("MatMul", x, self.square), np.array([0, 0, self.HEADS, -1], "i8"))
        return self.graph.add("Transpose", split, perm=perm)

    def attend(self, x, memory, exclude):
        query, value = self.heads(x, [0, 2, 1, 3]), self.heads(memory, [0, 2, 1, 3])
        scores = self.graph.add("MatMul", query, self.heads(memory, [0, 2, 3, 1]))
        scores = exclude(self.graph.add("Mul", scores, np.array(0.125, "f4")))
        mixed = self.graph.add("MatMul", self.graph.add("Softmax", scores, axis=-1), value)
        joined = self.graph.add("Reshape", self.graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), np.array([0, 0, self.DEPTH], "i8"))
        out = self.graph.add("MatMul", joined, self.square)
        return self.graph.add("LayerNormalization", self.graph.add("Add", x, out), self.ones, self.zeros)

    def unpadded(self, mask):
        kept = self.graph.add("Unsqueeze", self.graph.add("Cast", mask, to=9), np.array([1, 2], "i8"))
        return lambda scores: self.graph.add("Where", kept, scores, np.array(np.finfo("f4").min, "f4"))


def write_base_export(folder):
    """One encoder layer, and the decoder without a cache: the compiler derives it."""
    os.mkdir(folder)
    encoder = Export(Graph())
    ids, mask = [(name, "i8", ["batch", "source"]) for name in ("input_ids", "attention_mask")]
    states = ("f4", ["batch", "source", Export.DEPTH])
    x = encoder.embed("input_ids")
    x = encoder.attend(x, x, encoder.unpadded("attention_mask"))
    encoder.graph.write(os.path.join(folder, "encoder_model.onnx"), [ids, mask], [(x, ("last_hidden_state", *states))])
    decoder = Export(Graph())
    x, unpadded = decoder.embed("input_ids"), decoder.unpadded("encoder_attention_mask")
    for _ in range(Export.LAYERS):
        x = decoder.attend(x, x, lambda scores: causal_bias(decoder.graph, "range", scores, None))
        x = decoder.attend(x, "encoder_hidden_states", unpadded)
    logits = decoder.graph.add("MatMul", x, decoder.graph.add("Transpose", decoder.table, perm=[1, 0]))
    inputs = [("encoder_attention_mask", *mask[1:]), ("input_ids", "i8", ["batch", "target"]), ("encoder_hidden_states", *states)]
    outputs = [(logits, ("logits", "f4", ["batch", "target", Export.WORDS]))]
    decoder.graph.write(os.path.join(folder, "decoder_model.onnx"), inputs, outputs)
    return folder


def check_cache_figure(tool, tmp):
    """2 · 6 layers · 128 positions · 512 = 786,432 values = 3.0 MiB, and the pool's blocks hold exactly that."""
    artifact = os.path.join(tmp, "base.tsp")
    expect_success(tool.compile(write_base_export(os.path.join(tmp, "base")), artifact), "compile")
    result = tool.run("transept", "inspect", artifact, "--plan", "--set", "batch=1,source=32,rows=1,capacity=128,blocks=8")
    expect_success(result, "inspect")
    line = next((line for line in result.stdout.splitlines() if "128 tokens" in line), "")
    expect("786432 values" in line.replace(",", "") and "3.0 MiB" in line, f"the plan says {line!r}")
    pool = next((line for line in result.stdout.splitlines() if "cache.self" in line), "")
    expect("3145728 bytes" in pool, f"eight blocks of 16 positions: {pool!r}")
    request = json.dumps({"input_ids": [3, 4, 5], "decoder_start_token_id": 1, "eos_token_id": 0, "pad_token_id": 1, "max_length": 40})
    result = tool.run("transept", "generate", artifact, stdin=request + "\n")
    expect_success(result, "generate")
    expect(json.loads(result.stdout)["hypotheses"][0]["ids"][0] == 1, f"the base model says {result.stdout!r}")


def check_linear_memory(tool, root, tmp):
    """No arena grows with the product of two lengths."""
    artifact = os.path.join(tmp, "m.tsp")
    expect_success(tool.compile(os.path.join(root, "tests/models/t2t-style"), artifact), "compile")
    sizes = []
    for length in (1024, 2048):
        flags = f"batch=1,source={length},target={length}"
        result = tool.run("transept", "inspect", artifact, "--plan", "--set", flags)
        expect_success(result, "inspect")
        sizes.append([int(size) for size in re.findall(r"arena .* = (\d+) bytes", result.stdout)])
    expect(len(sizes[0]) >= 2, f"arenas: {sizes}")
    expect(all(two <= 2.01 * one for one, two in zip(*sizes)), f"arenas at 1024 and 2048 positions: {sizes}")


def check_reference_forms(tool, root, tmp):
    """Tensor2Tensor's masks, norms, scales and timing signal: every site fused, no shape left to compute."""
    report = os.path.join(tmp, "report.json")
    source = os.path.join(root, "tests/models/t2t-style/full.onnx")
    expect_success(tool.compile(source, os.path.join(tmp, "m.tsp"), "--report", report), "compile")
    with open(report, encoding="utf-8") as file:
        page = json.load(file)
    expect(page["attention"]["fused"] == page["attention"]["sites"] >= 6, f"attention: {page['attention']}")
    expect(page["shape_ops_left"] == 0, f"{page['shape_ops_left']} shape ops left")


def tests(tool, root):
    for scale in ("query", "scores", "both"):
        for mask, weights in ((None, True), (None, False), ("lowest", True), ("range", False)):
            name = f"paper attention, scale on {scale}, {'causal' if mask else 'no'} mask, {'with' if weights else 'without'} weights"
            yield name, lambda tmp, s=scale, m=mask, w=weights: check_attention(tool, tmp, s, m, w)
    for mask in MASK_KINDS:
        yield f"paper mask {mask}", lambda tmp, m=mask: check_attention(tool, tmp, "scores", m, False)
    yield "paper mask after softmax", lambda tmp: check_masked_after(tool, tmp)
    yield "paper padding", lambda tmp: check_padding(tool, tmp)
    yield "paper positions interleaved", lambda tmp: check_positions(tool, tmp, True)
    yield "paper positions in two halves", lambda tmp: check_positions(tool, tmp, False)
    yield "paper cache figure", lambda tmp: check_cache_figure(tool, tmp)
    yield "paper linear memory", lambda tmp: check_linear_memory(tool, root, tmp)
    yield "paper reference forms", lambda tmp: check_reference_forms(tool, root, tmp)
