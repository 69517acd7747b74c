"""Products and convolutions of integers: what ONNX Runtime computes, by contractions of integers (see integers/make_integers.py)."""

import os
import re

import numpy as np

from tool import expect, expect_success, read

# How many contractions with weights of integers each model becomes, and of floats.
CONTRACTIONS = {
    "conv_integer_1d": (1, 0),
    "conv_integer_2d": (1, 0),
    "conv_integer_dilated": (1, 0),
    "conv_integer_depthwise": (0, 0),  # loops: one column per matrix
    "qlinear_conv_uint8": (1, 0),
    "qlinear_conv_int8": (1, 0),
    "qlinear_conv_3d": (1, 0),
    "qdq_conv_per_axis": (1, 0),
    "qdq_conv_per_tensor": (1, 0),
    "qdq_matmul": (1, 0),
    "qdq_matmul_per_axis": (1, 0),
    "dynamic_frontend": (2, 0),
    "matmul_integer_offset": (1, 0),
    "matmul_to_float": (1, 0),
    "matmul_dynamic": (1, 0),
    "blocked_twice": (1, 1),
    "blocked_uint4": (1, 0),
    "weights_only": (1, 0),
    "matmul_4_bits": (1, 0),
    "matmul_4_bits_zeros": (1, 0),
    "matmul_8_bits": (1, 0),
}
TOLERANCE = 1e-4


def folder_of(root):
    return os.path.join(root, "tests/e2e/integers")


def runs_of(path):
    """Inputs and outputs of every run, by tensor."""
    runs = {}
    with np.load(path) as arrays:
        for key in arrays.files:
            number, side, name = key.split(".", 2)
            runs.setdefault(number, {"in": {}, "out": {}})[side][name] = arrays[key]
    return [(run["in"], run["out"]) for run in runs.values()]


def as_onnx_runtime(tool, root, name, tmp):
    artifact, dump, given, made = (os.path.join(tmp, file) for file in ("m.tsp", "dump", "x.npz", "y.npz"))
    expect_success(tool.compile(os.path.join(folder_of(root), name + ".onnx"), artifact, "--dump-ir", dump), "compile")
    form = read(next(os.path.join(dump, file) for file in os.listdir(dump) if file.endswith("-form.mlir"))).decode()
    # The packed matrix of a contraction is its second operand.
    matrices = re.findall(r"kernel\.contract .*?\n  *}+ : \(tensor<[^>]*>, tensor<[^>]*x(\w+)>", form, re.DOTALL)
    found = (matrices.count("ui8"), matrices.count("f32"))
    expect(found == CONTRACTIONS[name], f"contractions of integers and floats: {found}")
    for inputs, outputs in runs_of(os.path.join(folder_of(root), name + ".npz")):
        np.savez(given, **inputs)
        expect_success(tool.run("transept", "run", artifact, "--inputs", given, "--outputs", made), "run")
        with np.load(made) as results:
            expect(sorted(results.files) == sorted(outputs), f"outputs {results.files}")
            for key, want in outputs.items():
                got = results[key]
                expect(got.dtype == want.dtype and got.shape == want.shape, f"{key}: {got.dtype} {got.shape}, not {want.dtype} {want.shape}")
                worst = np.abs(got.astype("f8") - want.astype("f8")).max()
                limit = TOLERANCE * max(1, np.abs(want).max()) if want.dtype == np.float32 else 0
                expect(worst <= limit, f"{key}: differs by {worst}")


def same_bits(tool, root, tmp):
    """Weights that stay integers give what their floats give, on every level."""
    artifact, given, made = (os.path.join(tmp, file) for file in ("m.tsp", "x.npz", "y.npz"))
    expect_success(tool.compile(os.path.join(folder_of(root), "blocked_twice.onnx"), artifact), "compile")
    for inputs, _ in runs_of(os.path.join(folder_of(root), "blocked_twice.npz")):
        np.savez(given, **inputs)
        for level in ("avx512", "avx2", "x86-64"):
            result = tool.run("transept", "run", artifact, "--cpu", level, "--inputs", given, "--outputs", made)
            if result.returncode == 7:
                continue  # this machine lacks the level
            expect_success(result, f"run on {level}")
            with np.load(made) as results:
                expect(np.array_equal(results["y"], results["same"][:, :-1]), f"{level}: other bits")


def tests(tool, root):
    yield "blocked weights, same bits", lambda tmp: same_bits(tool, root, tmp)
    for name in CONTRACTIONS:
        yield name, lambda tmp, name=name: as_onnx_runtime(tool, root, name, tmp)
