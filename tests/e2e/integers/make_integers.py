#!/usr/bin/env python3
"""Writes the models of this folder and, beside each, what ONNX Runtime computes for some inputs: NAME.onnx and NAME.npz, whose
arrays are "RUN.in.TENSOR" and "RUN.out.TENSOR".

    python make_integers.py        # needs numpy, onnx, onnxruntime
"""

import os

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

FOLDER = os.path.dirname(os.path.abspath(__file__))
TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6}
UINT4 = 21
rng = np.random.default_rng(7)
node = helper.make_node
f4, u1, i1, i4 = np.float32, np.uint8, np.int8, np.int32


def integers(dtype, *shape):
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def reals(*shape):
    return rng.standard_normal(shape).astype(f4)


def scales(*shape):
    return (rng.random(shape) * 0.02 + 0.004).astype(f4)


def model(name, nodes, dims, weights, runs, outputs, opset=13):
    """`dims` gives inputs their shapes, in names and numbers; `outputs` their types."""
    infos = [helper.make_tensor_value_info(key, TYPES[runs[0][key].dtype.name], shape) for key, shape in dims.items()]
    outs = [helper.make_tensor_value_info(key, TYPES[dtype], None) for key, dtype in outputs.items()]
    runs = [{key: np.asarray(value) for key, value in run.items()} for run in runs]
    initializers = [value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value), key) for key, value in weights.items()]
    graph = helper.make_graph(nodes, name, infos, outs, initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=10 if opset > 20 else 8)
    onnx.save(content, os.path.join(FOLDER, name + ".onnx"))
    arrays = {}
    options = onnxruntime.SessionOptions()
    # What is fused there rounds in other places; the nodes themselves are the reference.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(content.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for number, run in enumerate(runs):
        for key, value in zip(outputs, session.run(list(outputs), run)):
            arrays[f"{number}.out.{key}"] = value
        arrays.update({f"{number}.in.{key}": value for key, value in run.items()})
    np.savez_compressed(os.path.join(FOLDER, name + ".npz"), **arrays)


# Zero points that leave the weights outside of eight bits; sizes that a run decides.
model("conv_integer_1d", [node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], pads=[1, 1], strides=[2])],
      {"x": ["batch", 5, "length"]}, {"w": integers(u1, 70, 5, 3), "zx": u1(9), "zw": u1(100)},
      [{"x": integers(u1, *shape)} for shape in ((1, 5, 9), (3, 5, 24))], {"y": "int32"})
model("conv_integer_2d", [node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], auto_pad="SAME_UPPER", strides=[2, 1])],
      {"x": ["batch", 3, "height", "width"], "zx": []}, {"w": integers(u1, 10, 3, 3, 2), "zw": u1(128)},
      [{"x": integers(u1, 2, 3, 7, 6), "zx": u1(200)}, {"x": integers(u1, 1, 3, 4, 5), "zx": u1(0)}], {"y": "int32"})
model("conv_integer_dilated", [node("ConvInteger", ["x", "w"], ["y"], dilations=[2, 1], pads=[0, 2, 1, 0])],
      {"x": [1, 4, 9, 8]}, {"w": integers(u1, 6, 4, 3, 3)}, [{"x": integers(u1, 1, 4, 9, 8)}], {"y": "int32"})
# Depthwise: as many matrices as channels, of one column each.
model("conv_integer_depthwise", [node("ConvInteger", ["x", "w", "zx"], ["y"], group=4, pads=[1, 1])],
      {"x": ["batch", 4, "length"]}, {"w": integers(u1, 4, 1, 3), "zx": u1(7)}, [{"x": integers(u1, 2, 4, 9)}], {"y": "int32"})

for dtype, zero in ((u1, 117), (i1, -20)):
    weights = {"sx": f4(0.0213), "zx": dtype(zero), "w": integers(i1, 12, 6, 3, 3), "sw": scales(12), "zw": np.zeros(12, i1),
               "sy": f4(0.731), "zy": dtype(zero + 11), "b": rng.integers(-9000, 9000, 12).astype(i4)}
    model("qlinear_conv_" + np.dtype(dtype).name,
          [node("QLinearConv", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"], ["y"], pads=[1, 0, 1, 2], strides=[1, 2])],
          {"x": ["batch", 6, "height", "width"]}, weights, [{"x": integers(dtype, 2, 6, 5, 7)}], {"y": np.dtype(dtype).name})
model("qlinear_conv_3d", [node("QLinearConv", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"], ["y"], pads=[1] * 6)],
      {"x": [1, 2, "a", "b", "c"]},
      {"sx": f4(0.0213), "zx": u1(3), "w": integers(u1, 5, 2, 3, 2, 2), "sw": f4(0.0117), "zw": u1(140), "sy": f4(0.3), "zy": u1(128)},
      [{"x": integers(u1, 1, 2, 4, 3, 5)}], {"y": "uint8"})


def quantised(name, value, weights, dtype, scale, zero):
    """Nodes that make a value 8 bits wide and a float again."""
    weights.update({name + ".s": f4(scale), name + ".z": dtype(zero)})
    return [node("QuantizeLinear", [value, name + ".s", name + ".z"], [name + ".q"]),
            node("DequantizeLinear", [name + ".q", name + ".s", name + ".z"], [name])]


def qdq(name, per_axis, padded):
    weights = {"w.q": integers(i1, 70, 5, 3), "b.q": rng.integers(-900, 900, 70).astype(i4)}
    weights["w.s"] = scales(70) if per_axis else f4(0.0093)
    weights["w.z"] = np.zeros(70, i1) if per_axis else i1(4)
    weights["b.s"], weights["b.z"] = (weights["w.s"] * f4(0.031)).astype(f4), np.zeros_like(weights["w.z"], i4)
    nodes = quantised("xd", "x", weights, u1, 0.031, 121)
    nodes += [node("DequantizeLinear", ["w.q", "w.s", "w.z"], ["w"], axis=0), node("DequantizeLinear", ["b.q", "b.s", "b.z"], ["b"], axis=0)]
    source, pads = "xd", [1, 1]
    if padded:
        weights["around"] = np.array([0, 0, 2, 0, 0, 1], np.int64)
        nodes.append(node("Pad", ["xd", "around"], ["xp"]))
        source, pads = "xp", [0, 0]
    nodes.append(node("Conv", [source, "w", "b"], ["c"], pads=pads, strides=[2], kernel_shape=[3]))
    nodes += quantised("yd", "c", weights, u1, 0.043, 130)
    nodes.append(node("Identity", ["yd.q"], ["y"]))
    model(name, nodes, {"x": ["batch", 5, "length"]}, weights,
          [{"x": reals(1, 5, 11)}, {"x": reals(4, 5, 6)}], {"c": "float32", "y": "uint8"})


qdq("qdq_conv_per_axis", per_axis=True, padded=False)
qdq("qdq_conv_per_tensor", per_axis=False, padded=True)

for per_axis in (False, True):
    weights = {"w.q": integers(i1, 37, 70), "w.s": scales(70) if per_axis else f4(0.0093), "w.z": integers(i1, 70) if per_axis else i1(4)}
    nodes = quantised("xd", "x", weights, u1, 0.031, 121) + [node("DequantizeLinear", ["w.q", "w.s", "w.z"], ["w"], axis=1), node("MatMul", ["xd", "w"], ["m"])]
    nodes += quantised("yd", "m", weights, i1, 0.043, -3) + [node("Identity", ["yd.q"], ["y"])]
    model("qdq_matmul" + "_per_axis" * per_axis, nodes, {"x": ["batch", "rows", 37]}, weights, [{"x": reals(1, 3, 37)}, {"x": reals(2, 7, 37)}],
          {"m": "float32", "y": "int8"})


def dynamic(name, value, weight, result, weights, **attributes):
    """What quantize_dynamic() makes of a convolution."""
    weights.update({name + ".w": weight, name + ".ws": f4(0.0071), name + ".wz": u1(119), name + ".b": reals(1, weight.shape[0], 1)})
    return [node("DynamicQuantizeLinear", [value], [name + ".x", name + ".xs", name + ".xz"]),
            node("ConvInteger", [name + ".x", name + ".w", name + ".xz", name + ".wz"], [name + ".i"], **attributes),
            node("Cast", [name + ".i"], [name + ".f"], to=1), node("Mul", [name + ".xs", name + ".ws"], [name + ".s"]),
            node("Mul", [name + ".f", name + ".s"], [name + ".y"]), node("Add", [name + ".y", name + ".b"], [result])]


# The two convolutions before Whisper's encoder.
weights = {}
nodes = dynamic("c1", "x", integers(u1, 32, 8, 3), "a", weights, pads=[1, 1]) + [node("Relu", ["a"], ["h"])]
nodes += dynamic("c2", "h", integers(u1, 40, 32, 3), "y", weights, pads=[1, 1], strides=[2])
model("dynamic_frontend", nodes, {"x": ["batch", 8, "frames"]}, weights, [{"x": reals(1, 8, 20)}, {"x": reals(2, 8, 13)}], {"y": "float32"})

model("matmul_integer_offset", [node("MatMulInteger", ["x", "w", "zx", "zw"], ["y"])], {"x": ["rows", 37]},
      {"w": integers(u1, 37, 70), "zx": u1(77), "zw": u1(90)}, [{"x": integers(u1, 1, 37)}, {"x": integers(u1, 9, 37)}], {"y": "int32"})
# Weights with a scale per block of the depth.
K, N, BLOCK = 100, 70, 32
BLOCKS = -(-K // BLOCK)
rows = [{"x": reals(1, K)}, {"x": reals(7, K)}]


def small(name, *shape):
    return helper.make_tensor(name, UINT4, shape, rng.integers(0, 16, shape).flatten())


# The same matrix a second time, in floats: its products have the same bits. A further column makes it another weight.
weights = {"w": integers(i1, K, N), "s": scales(BLOCKS, N)}
weights["floats"] = weights["w"].astype(f4) * np.repeat(weights["s"], BLOCK, axis=0)[:K]
weights["floats"] = np.concatenate([weights["floats"], reals(K, 1)], axis=1)
model("blocked_twice", [node("DequantizeLinear", ["w", "s"], ["wd"], axis=0, block_size=BLOCK), node("MatMul", ["x", "wd"], ["y"]),
                        node("MatMul", ["x", "floats"], ["same"])],
      {"x": ["rows", K]}, weights, rows, {"y": "float32", "same": "float32"}, opset=21)
model("blocked_uint4", [node("DequantizeLinear", ["w", "s", "z"], ["wd"], axis=1, block_size=BLOCK), node("Gemm", ["x", "wd", "b"], ["y"], transB=1)],
      {"x": ["rows", K]}, {"w": small("w", N, K), "s": scales(N, BLOCKS), "z": small("z", N, BLOCKS), "b": reals(N)}, rows, {"y": "float32"}, opset=21)
# One scale per column, none for what it multiplies.
model("weights_only", [node("DequantizeLinear", ["w", "s", "z"], ["wd"], axis=1), node("MatMul", ["x", "wd"], ["y"])],
      {"x": ["rows", K]}, {"w": integers(u1, K, N), "s": scales(N), "z": np.full(N, 128, u1)}, rows, {"y": "float32"})
for bits, given in ((4, False), (4, True), (8, False)):
    bytes_of = lambda count: -(-count * bits // 8)
    weights = {"w": integers(u1, N, BLOCKS, bytes_of(BLOCK)), "s": scales(N, BLOCKS)}
    if given:
        weights["z"] = integers(u1, N, bytes_of(BLOCKS))
    model(f"matmul_{bits}_bits" + "_zeros" * given,
          [node("MatMulNBits", ["x", *weights], ["y"], domain="com.microsoft", K=K, N=N, bits=bits, block_size=BLOCK)],
          {"x": ["batch", "rows", K]}, weights, [{"x": reals(2, 3, K)}, {"x": reals(1, 1, K)}], {"y": "float32"}, opset=17)

# What ONNX Runtime's own fusions write.
weights = {"w": integers(u1, 37, 70), "sx": f4(0.021), "sw": scales(70), "zx": u1(140), "zw": integers(u1, 70), "b": reals(70)}
model("matmul_to_float", [node("MatMulIntegerToFloat", ["x", "w", "sx", "sw", "zx", "zw", "b"], ["y"], domain="com.microsoft")],
      {"x": ["batch", "rows", 37]}, weights, [{"x": integers(u1, 2, 3, 37)}], {"y": "float32"})
weights = {"w": integers(i1, 37, 70), "s": f4(0.0093), "z": i1(-5)}
model("matmul_dynamic", [node("DynamicQuantizeMatMul", ["x", "w", "s", "z"], ["y"], domain="com.microsoft")],
      {"x": ["batch", "rows", 37]}, weights, [{"x": reals(2, 3, 37)}, {"x": np.zeros((1, 1, 37), f4)}], {"y": "float32"})
