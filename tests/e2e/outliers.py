"""A model with outlier channels and a wide vocabulary, and what narrow precisions make of it.

It is g2p with some channels of the values and of the feed-forward layers scaled by a power of two, and scaled back by the
matrix that reads them: in f32 every bit of the output stays. Its vocabulary goes on with mixtures of its words that lose to
the words themselves, so the answers stay as well.
"""

import json
import os
import shutil

import numpy as np
import onnx
from onnx import numpy_helper

from pronunciation import compile_model
from tool import expect, expect_error, expect_success, read

VOCABULARY = 32000
# So many channels of each product, so much larger than the others.
OUTLIERS, FACTOR = 4, np.float32(64)
READERS = {"v_proj": "out_proj", "fc1": "fc2"}


def graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def change(initializer, function):
    array = function(numpy_helper.to_array(initializer).copy())
    initializer.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), initializer.name))


def scale_channels(model):
    """The products are found by what exporters call their nodes: /…/v_proj/MatMul; their biases by what is added."""
    initializers = {initializer.name: initializer for initializer in model.graph.initializer}
    operands = {}  # of every projection: names of its matrix and its bias
    for graph in graphs(model.graph):
        for node in graph.node:
            for operand in node.input:
                if operand in initializers and node.op_type in ("MatMul", "Add"):
                    operands.setdefault(node.name.rpartition("/")[0], {})[node.op_type] = initializers[operand]
    generator = np.random.default_rng(1)
    sites = 0
    for path, found in operands.items():
        layer, _, kind = path.rpartition("/")
        if kind not in READERS:
            continue
        width = found["MatMul"].dims[1]
        scale = np.ones(width, np.float32)
        scale[generator.choice(width, OUTLIERS, replace=False)] = FACTOR
        change(found["MatMul"], lambda matrix: matrix * scale)
        change(found["Add"], lambda bias: bias * scale)
        change(operands[f"{layer}/{READERS[kind]}"]["MatMul"], lambda matrix: matrix / scale[:, None])
        sites += 1
    return sites


def widen(model):
    """Mixtures of two words, shorter than either: their logits are below the larger of the two."""
    old = model.graph.output[0].type.tensor_type.shape.dim[2].dim_value
    generator = np.random.default_rng(2)
    pairs, share = generator.integers(0, old, (VOCABULARY - old, 2)), generator.uniform(0.3, 0.7, (VOCABULARY - old, 1)).astype(np.float32)
    for initializer in model.graph.initializer:
        if old not in initializer.dims:
            continue
        axis = list(initializer.dims).index(old)

        def extended(array):
            rows = np.moveaxis(array, axis, 0)
            weight = share.reshape((-1,) + (1,) * (rows.ndim - 1))
            mixed = rows[pairs[:, 0]] * weight + rows[pairs[:, 1]] * (np.float32(0.95) - weight)
            return np.moveaxis(np.concatenate([rows, mixed]), 0, axis)

        change(initializer, extended)
    for graph in graphs(model.graph):
        for output in graph.output:
            for dim in output.type.tensor_type.shape.dim:
                if dim.dim_value == old:
                    dim.dim_value = VOCABULARY


def write_model(source, target):
    shutil.copytree(source, target)
    for name in ("encoder_model.onnx", "decoder_model_merged.onnx"):
        model = onnx.load(os.path.join(source, name))
        sites = scale_channels(model)
        expect(sites == {"encoder_model.onnx": 6, "decoder_model_merged.onnx": 9}[name], f"{name}: {sites} products scaled")
        if name.startswith("decoder"):
            widen(model)
        onnx.save(model, os.path.join(target, name))
    path = os.path.join(target, "config.json")
    config = json.loads(read(path))
    config["decoder_vocab_size"] = VOCABULARY
    with open(path, "w") as file:
        json.dump(config, file)


# Nats per token: what 8-bit activations lose with outliers is several times as much, what else is narrow a tenth.
BOUND = 0.0005


def losses(tool, root, tmp):
    source, words, report = os.path.join(tmp, "export"), os.path.join(tmp, "words.txt"), os.path.join(tmp, "report.json")
    write_model(os.path.join(root, "models/g2p"), source)
    with open(os.path.join(root, "tests/e2e/g2p/test.tsv")) as rows, open(words, "w") as file:
        file.writelines(row.split("\t")[0] + "\n" for row in list(rows)[1::120])

    def answers(artifact):
        result = tool.run("transept", "translate", artifact, "--num-beams", "1", "--max-new-tokens", "48", stdin=read(words).decode())
        expect_success(result, artifact)
        return result.stdout

    artifact = os.path.join(tmp, "wide.tsp")
    expect_success(tool.compile(source, artifact), "compile")
    expect(answers(artifact) == answers(compile_model(tool, root, tmp)), "the model made for this test answers differently")

    def measured(*flags):
        flags += ("--cpu-levels", "avx2", "--accuracy", words, "--max-loss", str(BOUND), "--report", report)
        return tool.compile(source, artifact, *flags)

    expect_error(measured("--precision", "int8"), 5, "diverges", "--max-loss")
    for flags in (
        ("--precision", "bf16"),
        ("--precision", "int8-weights"),
        ("--precision", "int8", "--keep-fp32", "*out_proj*", "--keep-fp32", "*fc2*"),
    ):
        expect_success(measured(*flags), " ".join(flags))
        page = json.loads(read(report))["accuracy"]
        expect(page["inputs"] == 105 and page["mean_divergence"] < BOUND / 4, f"{flags}: measured {page}")
        expect(page["same_tokens"] >= 0.99 * page["tokens"], f"{flags}: measured {page}")


def tests(tool, root):
    yield "precisions with outlier channels", lambda tmp: losses(tool, root, tmp)
