#!/usr/bin/env python3
"""Writes importFixture.json.inc: ONNX operators in the opsets where their form changed, as models in ONNX's text form.
Expected values come from ONNX Runtime, and from the ONNX reference evaluator where ONNX Runtime lacks the opset.

    python make_import_fixture.py        # needs numpy, onnx, onnxruntime
"""
import json
import os

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(11)
cases = []
DATA = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10}
node = helper.make_node
f32 = np.float32


def r(*shape):
    """Values with few digits: the text form keeps them exactly."""
    return (rng.integers(-48, 48, shape) / 16).astype(f32)


def i64(*values):
    return np.array(values, dtype=np.int64)


def tensors(named):
    return [{"name": name, "type": DATA[array.dtype.name], "shape": list(array.shape), "data": array.tobytes().hex()}
            for name, array in named.items()]


def evaluate(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, inputs)
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        return ReferenceEvaluator(model).run(None, inputs)


def case(title, opset, nodes, inputs, constants=None, outputs=("y",), absolute=1e-6, domains=(), fixed=(), expected=None):
    """One model. Inputs have dynamic sizes, but for the axes "name axis" in `fixed`; `constants` are initializers."""
    # The text form has no 8-bit data: such constants are fed.
    fed = {name: np.asarray(value) for name, value in (constants or {}).items() if np.asarray(value).itemsize == 1}
    inputs = {**inputs, **fed}
    constants = {name: value for name, value in (constants or {}).items() if name not in fed}
    infos = [helper.make_tensor_value_info(name, DATA[value.dtype.name], [
        size if f"{name}{axis}" in fixed else f"{name}{axis}" for axis, size in enumerate(value.shape)])
             for name, value in inputs.items()]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_empty_tensor_value_info(name) for name in outputs],
                              initializers)
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8 if opset < 20 else 10)
    if expected is None:
        expected = evaluate(model, inputs)
    for output, value in zip(model.graph.output, expected):
        output.type.tensor_type.elem_type = DATA[value.dtype.name]
    text = onnx.printer.to_text(model)
    for attribute in (a for n in onnx.parser.parse_model(text).graph.node for a in n.attribute):
        helper.get_attribute_value(attribute)  # the text form writes 2.0 as an integer
    cases.append({"title": f"{title}-{opset}", "model": text, "inputs": tensors(inputs),
                  "outputs": tensors(dict(zip(outputs, expected))), "absolute": absolute})


def one(op, opset, inputs, constants=None, outputs=("y",), names=None, domain="", fixed=(), expected=None, absolute=1e-6,
        **attributes):
    names = names if names is not None else list(inputs) + list(constants or {})
    case(op, opset, [node(op, names, list(outputs), domain=domain, **attributes)], inputs, constants, outputs,
         domains=[domain] if domain else [], fixed=fixed, expected=expected, absolute=absolute)


x = {"x": r(2, 3, 4)}
positive = {"x": np.abs(r(2, 3, 4)) + f32(0.5)}

# Softmax flattened to a matrix before 13.
for op in ("Softmax", "LogSoftmax"):
    for opset in (7, 11, 13):
        for axis in ({}, {"axis": 0}, {"axis": 2}, {"axis": -1}, {"axis": -2}):
            one(op, opset, x, **axis)
for axis in (0, 1, 3):
    one("Flatten", 9, x, axis=axis)
one("Flatten", 11, x, axis=-1)

# Axes became an input with 13 (ReduceSum, Squeeze, Unsqueeze) and 18.
for opset in (11, 12):
    one("Squeeze", opset, {"x": r(1, 3, 1)}, axes=[0, 2])
    one("Unsqueeze", opset, {"x": r(3, 2)}, axes=[0, 2])
one("Squeeze", 13, {"x": r(1, 3, 1)}, {"axes": i64(-1)})
one("Unsqueeze", 13, {"x": r(3, 2)}, {"axes": i64(-1, 0)})
for op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
    one("Reduce" + op, 11, positive, axes=[1], keepdims=0)
    one("Reduce" + op, 18, positive, {"axes": i64(-1)})
one("ReduceSum", 13, x, {"axes": i64(0, 2)}, keepdims=0)
one("ReduceSum", 13, x, {"axes": i64()}, noop_with_empty_axes=1)
one("ReduceMean", 11, x)

# Slice, Split, Pad and Clip took attributes first.
one("Slice", 9, x, axes=[0, 2], starts=[1, -3], ends=[2, 1000])
one("Slice", 9, x, starts=[0, 1], ends=[1, -1])
one("Slice", 10, x, {"starts": i64(-1), "ends": i64(-1000), "axes": i64(2), "steps": i64(-2)})
one("Split", 7, x, outputs=("y", "z"), axis=2)
one("Split", 11, x, outputs=("y", "z"), axis=-1, split=[1, 3])
one("Split", 13, x, {"split": i64(1, 2)}, outputs=("y", "z"), axis=1)
one("Split", 13, {**x, "split": i64(1, 2)}, outputs=("y", "z"), axis=1)
one("Split", 18, {"x": r(2, 3, 8)}, outputs=("y", "z", "w"), axis=2, num_outputs=3)
for mode in ("constant", "edge", "reflect"):
    one("Pad", 7, x, pads=[0, 1, 2, 0, 0, 1], mode=mode, value=2.5)
one("Pad", 11, x, {"pads": i64(0, 1, 2, 0, -1, 1)})
one("Pad", 18, x, {"pads": i64(1, 2), "axes": i64(-1)}, names=["x", "pads", "", "axes"], mode="edge")
one("Pad", 19, x, {"pads": i64(1, 2), "axes": i64(-1)}, names=["x", "pads", "", "axes"], mode="wrap")
one("Clip", 7, x, min=-0.5, max=0.5)
one("Clip", 7, x, min=-0.5)
one("Clip", 11, x, {"max": f32(0.25)}, names=["x", "", "max"])
for opset in (7, 10, 12):
    one("Dropout", opset, x)

# Products and norms.
for opset in (7, 11):
    one("Gemm", opset, {"a": r(4, 3), "b": r(5, 4), "c": r(3, 1)}, transA=1, transB=1, alpha=0.5, beta=2.5)
one("Gemm", 13, {"a": r(3, 4), "b": r(4, 5)})
channels = {"s": r(3), "b": r(3), "m": r(3), "v": np.abs(r(3))}
for opset in (7, 9, 14):
    one("BatchNormalization", opset, {"x": r(2, 3, 4, 2)}, channels, epsilon=0.001)
one("InstanceNormalization", 7, {"x": r(2, 3, 4)}, {"s": r(3), "b": r(3)}, epsilon=0.001)
one("LayerNormalization", 17, {**x, "s": r(3, 4)}, axis=1)
one("LpNormalization", 13, {"x": np.array([[3, 4], [0, 0]], dtype=f32)}, axis=1, p=2)
one("RMSNormalization", 23, {**x, "s": r(4)}, axis=-1)
one("SimplifiedLayerNormalization", 13, {**x, "s": r(4)}, axis=-1, epsilon=1e-6)
one("Conv", 11, {"x": r(2, 4, 9), "w": r(6, 4, 3), "b": r(6)}, strides=[2], pads=[1, 1], kernel_shape=[3])
one("Conv", 22, {"x": r(2, 4, 9, 8), "w": r(6, 2, 3, 3)}, group=2, dilations=[1, 2])
one("FusedMatMul", 13, {"a": r(2, 4, 3), "b": r(2, 4, 5)}, domain="com.microsoft", transA=1, alpha=0.25)
skip = {"x": r(2, 3, 4), "k": r(2, 3, 4), "g": r(4), "b": r(4), "c": r(4)}
case("SkipLayerNormalization", 13, [node("SkipLayerNormalization", list(skip), ["y", "", "", "z"],
                                         domain="com.microsoft", epsilon=1e-6)], skip, outputs=("y", "z"),
     domains=["com.microsoft"])

# Element by element; those without a handler are expanded through the standard's own bodies.
for op, attributes in (("Elu", {"alpha": 0.75}), ("Selu", {}), ("HardSigmoid", {"alpha": 0.25}), ("Softplus", {}),
                       ("Softsign", {}), ("LeakyRelu", {"alpha": 0.25}), ("LeakyRelu", {}), ("ThresholdedRelu", {}),
                       ("HardSwish", {}), ("Mish", {}), ("Celu", {"alpha": 0.5}), ("Gelu", {}),
                       ("Gelu", {"approximate": "tanh"})):
    for opset in (11, 18, 22):
        if onnx.defs.get_schema(op).since_version <= opset or opset in [
                s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == ""]:
            one(op, opset, x, **attributes)
for op in ("Gelu", "FastGelu", "QuickGelu"):
    one(op, 13, x, domain="com.microsoft")
one("BiasGelu", 13, {**x, "b": r(4)}, domain="com.microsoft")
one("PRelu", 9, {**x, "s": r(3, 1)})
one("PRelu", 16, {**x, "s": r(3, 1)})
for op in ("Min", "Max", "Sum", "Mean"):
    one(op, 8, {**x, "z": r(3, 1), "w": r(1)})
one("Mod", 10, {"x": i64(-7, 7, -7), "z": i64(3, -3, -3)})
one("Mod", 13, {"x": r(5), "z": r(5) + f32(0.125)}, fmod=1)
one("IsInf", 10, {"x": np.array([np.inf, -np.inf, np.nan, 1], dtype=f32)}, detect_negative=0)
one("Cast", 9, x, to=9)
one("Cast", 13, {"x": r(2, 3) * f32(10)}, to=7)
one("CastLike", 15, {**x, "z": np.array([1], dtype=np.int32)})
one("GreaterOrEqual", 12, {**x, "z": r(1)})

# Shapes, positions, indices.
one("Transpose", 9, x)
one("Shape", 13, x)
one("Shape", 15, x, start=1, end=-1)
one("Size", 13, x)
one("ConstantOfShape", 9, {"s": i64(2, 3)}, value=numpy_helper.from_array(np.array([7], dtype=np.int32), "v"))
one("ConstantOfShape", 9, {"s": i64(2, 3)})
case("Constant", 13, [node("Constant", [], ["c"], value_floats=[1.0, 2.0, 3.0, 4.0]), node("Add", ["x", "c"], ["y"])], x)
one("CumSum", 11, x, {"axis": np.int64(1)}, exclusive=1, reverse=1)
one("Trilu", 14, x, {"k": np.int64(-1)}, upper=0)
one("OneHot", 11, {"x": i64(0, -1, 2, 5)}, {"depth": i64(3), "values": np.array([2, 5], dtype=f32)})
one("ArgMax", 11, x, axis=1, keepdims=0)
one("ArgMin", 13, x, axis=-1)
one("ScatterND", 11, {**x, "i": np.array([[0, 1], [1, 2]]), "u": r(2, 4)})
one("ScatterND", 18, {**x, "i": np.array([[0, 1], [0, 1]]), "u": r(2, 4)}, reduction="add")
one("GatherND", 12, {**x, "i": np.array([[2], [0]])}, batch_dims=1)

# Quantisation.
bytes_in = rng.integers(0, 255, (2, 3, 4)).astype(np.uint8)
for opset in (10, 13, 19, 21):
    one("QuantizeLinear", opset, x, {"s": f32(0.03125), "z": np.uint8(7)})
    one("DequantizeLinear", opset, {"x": bytes_in}, {"s": f32(0.03125), "z": np.uint8(7)})
one("QuantizeLinear", 13, {"x": r(2, 3, 4) * f32(100)}, {"s": np.abs(r(3)) + f32(1), "z": np.array([1, -2, 3], dtype=np.int8)}, axis=-2)
one("DequantizeLinear", 13, {"x": bytes_in}, {"s": r(3), "z": np.array([1, 2, 3], dtype=np.uint8)}, axis=1)
one("DynamicQuantizeLinear", 11, x, outputs=("y", "z", "w"))
one("MatMulInteger", 10, {"a": bytes_in[0], "b": rng.integers(-128, 127, (4, 5)).astype(np.int8)},
    {"za": np.uint8(3), "zb": np.int8(-2)})

# Recurrent layers: [positions, batch, size], or with layout 1 the batch first.
seq, lengths = r(4, 2, 3), np.array([4, 2], dtype=np.int32)


def recurrent(op, gates, directions=1, opset=14, states=False, outputs=("y", "z"), biased=False, **attributes):
    hidden = 2
    parts = {"w": r(directions, gates * hidden, 3), "r": r(directions, gates * hidden, hidden)}
    parts["b"] = r(directions, 2 * gates * hidden) if biased else None
    parts["l"] = lengths if states else None
    batch_first = attributes.get("layout", 0)
    shape = (2, directions, hidden) if batch_first else (directions, 2, hidden)
    parts["h"] = r(*shape) if states else None
    if op == "LSTM":
        parts["c"] = r(*shape) if states else None
        parts["p"] = r(directions, 3 * hidden) if states else None
    names = ["x"] + [name if value is not None else "" for name, value in parts.items()]
    known = {name: value for name, value in parts.items() if value is not None}
    one(op, opset, {"x": seq.transpose(1, 0, 2).copy() if batch_first else seq}, known, outputs=outputs, names=names,
        hidden_size=hidden, **attributes)


for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    outputs = ("y", "z", "v") if op == "LSTM" else ("y", "z")
    recurrent(op, gates, opset=7, outputs=outputs)
    recurrent(op, gates, directions=2, direction="bidirectional", states=True, biased=True, outputs=outputs)
    recurrent(op, gates, direction="reverse", states=True, biased=True, outputs=outputs, clip=0.75)
recurrent("GRU", 3, linear_before_reset=1, biased=True, states=True)
recurrent("LSTM", 4, outputs=("y", "z", "v"), input_forget=1)
recurrent("LSTM", 4, outputs=("y",), activations=["HardSigmoid", "Softsign", "ScaledTanh"], activation_alpha=[0.25, 1.5],
          activation_beta=[0.5, 0.75])

# Sorting and scattering.
one("TopK", 9, x, outputs=("y", "z"), k=2)
one("TopK", 10, x, {"k": i64(3)}, outputs=("y", "z"), axis=1)
one("TopK", 11, {"x": i64(3, 1, 3, 2)}, {"k": i64(3)}, outputs=("y", "z"), largest=0, axis=0)
one("Scatter", 9, {"x": r(3, 4), "i": np.array([[1, 0, 2, 2]]), "u": r(1, 4)}, axis=0)
for reduction in ("none", "add", "mul", "max", "min"):
    one("ScatterElements", 18, {"x": r(3, 4), "i": np.array([[1, 1], [0, -1]]), "u": r(2, 2)}, axis=1, reduction=reduction)
one("OneHot", 11, {"x": np.array([[0, 1], [-1, 4]])}, {"depth": i64(3), "values": np.array([2, 5], dtype=f32)}, axis=1)
one("OneHot", 11, {"x": np.array([[0, 1], [-1, 4]])}, {"depth": i64(3), "values": np.array([2, 5], dtype=f32)}, axis=0)
one("ReverseSequence", 10, {"x": r(3, 4, 2), "l": i64(4, 1, 2)}, time_axis=1, batch_axis=0)
one("EyeLike", 9, {"x": r(3, 4)}, k=1)
one("EyeLike", 22, {"x": r(3, 4)}, k=-2, dtype=7)

# Windows.
image = {"x": r(2, 3, 7, 6)}
for opset in (7, 11, 19):
    one("AveragePool", opset, image, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
one("AveragePool", 11, image, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1, ceil_mode=1, strides=[2, 2])
one("AveragePool", 19, image, kernel_shape=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1, strides=[2, 3], dilations=[2, 1])
one("AveragePool", 22, {"x": r(1, 2, 9)}, kernel_shape=[4], strides=[3], ceil_mode=1)
for padding in ("SAME_UPPER", "SAME_LOWER", "VALID"):
    one("AveragePool", 11, image, kernel_shape=[3, 2], strides=[2, 2], auto_pad=padding)
    one("MaxPool", 12, image, kernel_shape=[2, 3], strides=[1, 2], auto_pad=padding)
    one("Conv", 11, {"x": r(1, 2, 5, 7)}, {"w": r(3, 2, 3, 2)}, auto_pad=padding, strides=[2, 3])
    one("ConvTranspose", 11, {"x": r(1, 2, 3, 4)}, {"w": r(2, 3, 3, 3)}, auto_pad=padding, strides=[2, 2])
one("MaxPool", 8, image, outputs=("y", "z"), kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
one("MaxPool", 12, image, outputs=("y", "z"), kernel_shape=[2, 2], dilations=[2, 3], ceil_mode=1, strides=[2, 2])
one("MaxPool", 12, {"x": np.arange(-12, 12, dtype=np.int8).reshape(1, 1, 4, 6)}, kernel_shape=[2, 2], pads=[1, 1, 0, 0])
one("MaxPool", 12, image, outputs=("y", "z"), kernel_shape=[2, 3], storage_order=1)
one("MaxPool", 11, {"x": r(1, 2, 4, 3, 5)}, kernel_shape=[2, 2, 3])
one("LpPool", 11, image, kernel_shape=[2, 2], pads=[0, 1, 1, 0])
one("LpPool", 18, {"x": np.abs(r(1, 2, 5)) + f32(0.5)}, kernel_shape=[2], p=3, dilations=[2])
for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
    one(op, 7, image)
one("LRN", 13, {"x": r(2, 6, 3, 1)}, size=3, alpha=0.5, beta=0.75, bias=1.5)
one("LRN", 13, {"x": r(2, 6, 3, 2)}, size=5)
one("MaxUnpool", 11, {"x": r(1, 1, 2, 2), "i": np.array([[[[5, 7], [8, 15]]]])}, kernel_shape=[2, 2], strides=[2, 2])
one("Det", 11, {"x": r(2, 3, 3)})
one("Conv", 11, {"x": r(2, 4, 6, 5, 4)}, {"w": r(6, 2, 2, 3, 1), "b": r(6)}, group=2, pads=[1, 0, 0, 1, 1, 0], strides=[2, 1, 1])
one("ConvTranspose", 11, {"x": r(2, 4, 3)}, {"w": r(4, 3, 3), "b": r(6)}, group=2, strides=[2], pads=[1, 0], output_padding=[1])
one("ConvTranspose", 11, {"x": r(1, 2, 3, 4)}, {"w": r(2, 3, 2, 3)}, strides=[3, 2], dilations=[1, 2], output_shape=[10, 12])
one("ConvTranspose", 11, {"x": r(1, 2, 3, 2, 2)}, {"w": r(2, 1, 2, 2, 2)})
one("Col2Im", 18, {"x": r(2, 8, 9)}, {"s": i64(5, 5), "k": i64(2, 2)}, dilations=[2, 1], pads=[0, 1, 0, 0], strides=[1, 2])
one("DepthToSpace", 11, {"x": r(1, 8, 2, 3)}, blocksize=2)
one("DepthToSpace", 13, {"x": r(1, 8, 2, 3)}, blocksize=2, mode="CRD")
one("SpaceToDepth", 13, {"x": r(1, 2, 4, 6)}, blocksize=2)
one("DeformConv", 19, {"x": r(1, 2, 4, 4), "w": r(2, 2, 2, 2), "o": r(1, 8, 3, 3), "b": r(2), "m": r(1, 4, 3, 3)},
    kernel_shape=[2, 2])
one("DeformConv", 22, {"x": r(2, 4, 5, 4), "w": r(4, 2, 2, 2), "o": r(2, 16, 3, 2)}, kernel_shape=[2, 2], group=2,
    offset_group=2, strides=[2, 2], pads=[1, 0, 0, 1])

# Images between their elements.
small = {"x": r(1, 2, 4, 5)}
for mode in ("nearest", "linear"):
    one("Upsample", 7, small, scales=[1.0, 1.0, 2.0, 3.0], mode=mode)
    one("Upsample", 9, small, {"s": np.array([1, 1, 2, 1.5], dtype=f32)}, mode=mode)
    one("Resize", 10, small, {"s": np.array([1, 1, 0.5, 2], dtype=f32)}, mode=mode)
scales, sizes = np.array([1, 1, 0.75, 2.5], dtype=f32), i64(1, 2, 3, 8)
for mode in ("nearest", "linear", "cubic"):
    for transform in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        # ONNX Runtime rounds the size of the result before it aligns corners.
        if transform != "align_corners":
            one("Resize", 13, small, {"s": scales}, names=["x", "", "s"], mode=mode, coordinate_transformation_mode=transform)
        one("Resize", 13, small, {"s": sizes}, names=["x", "", "", "s"], mode=mode, coordinate_transformation_mode=transform)
for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
    one("Resize", 13, small, {"s": np.array([1, 1, 1.5, 0.5], dtype=f32)}, names=["x", "", "s"], nearest_mode=rounding,
        coordinate_transformation_mode="asymmetric")
one("Resize", 13, small, {"s": scales}, names=["x", "", "s"], mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5)
one("Resize", 13, small, {"roi": np.array([0, 0, 0.25, -0.25, 1, 1, 0.75, 1.25], dtype=f32), "s": i64(1, 2, 3, 3)},
    names=["x", "roi", "", "s"], mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=10.5)
one("Resize", 18, small, {"s": np.array([0.5, 0.75], dtype=f32)}, names=["x", "", "s"], mode="linear", antialias=1, axes=[2, 3])
one("Resize", 18, small, {"s": np.array([0.5, 0.75], dtype=f32)}, names=["x", "", "s"], mode="cubic", antialias=1, axes=[2, 3])
for policy in ("not_larger", "not_smaller"):
    one("Resize", 18, small, {"s": i64(7, 8)}, names=["x", "", "", "s"], mode="nearest", axes=[2, 3],
        keep_aspect_ratio_policy=policy)
one("Resize", 19, small, {"s": np.array([0.75, 0.6], dtype=f32)}, names=["x", "", "s"], mode="linear", axes=[3, 2],
    coordinate_transformation_mode="half_pixel_symmetric")
grid = np.clip(r(1, 3, 2, 2), -1.75, 1.75)
for mode in ("nearest", "bilinear", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        one("GridSample", 16, {**small, "g": grid}, mode=mode, padding_mode=padding, align_corners=int(padding == "border"))
one("GridSample", 20, {"x": r(1, 1, 3, 4, 2), "g": grid[..., [0, 1, 0]].reshape(1, 1, 3, 2, 3)}, mode="linear")
regions = {"r": np.array([[0.5, 0, 3, 2.5], [-1, 1, 6, 5]], dtype=f32), "b": i64(1, 0)}
for opset, attributes in ((10, {}), (16, {}), (16, {"coordinate_transformation_mode": "output_half_pixel"}), (16, {"mode": "max"})):
    one("RoiAlign", opset, {"x": r(2, 3, 5, 6), **regions}, output_height=2, output_width=3, sampling_ratio=2,
        spatial_scale=0.75, **attributes)

# Signals.
for opset in (17, 20):
    axis = {} if opset == 20 else {"axis": 1}
    for fixed in (("x2",), ("x1", "x2")):
        one("DFT", opset, {"x": r(2, 5, 1)}, fixed=fixed, absolute=1e-5, **axis)
        one("DFT", opset, {"x": r(2, 6, 2)}, {"n": np.int64(8)}, fixed=fixed, absolute=1e-5, **axis)
        one("DFT", opset, {"x": r(2, 6, 2)}, inverse=1, fixed=fixed, absolute=1e-5, **axis)
        one("DFT", opset, {"x": r(2, 6, 1)}, {"n": np.int64(5)}, onesided=1, fixed=fixed, absolute=1e-5, **axis)
one("STFT", 17, {"x": r(2, 12, 1), "w": np.abs(r(4))}, {"t": np.int64(3), "n": np.int64(4)}, names=["x", "t", "w", "n"],
    fixed=["x2"], absolute=1e-5)
one("STFT", 17, {"x": r(1, 9, 2)}, {"t": np.int64(2), "n": np.int64(5)}, names=["x", "t", "", "n"], onesided=0, fixed=["x2"],
    absolute=1e-5)
one("MelWeightMatrix", 17, {}, {"n": i64(8)[0], "l": i64(16)[0], "s": i64(8192)[0], "a": f32(0), "b": f32(4096)})

# Sums of products.
a23, a34 = r(2, 3), r(3, 4)
one("Einsum", 12, {"a": a23, "b": a34}, equation="ij,jk->ik")
one("Einsum", 12, {"a": a23, "b": a34}, equation="ij , jk")
one("Einsum", 12, {"a": r(2, 3, 4), "b": r(2, 5, 4)}, equation="bij,bkj->bik")
one("Einsum", 12, {"a": r(2, 3, 4, 5), "b": r(2, 6, 4, 5)}, equation="bthd,bshd->bhts")
one("Einsum", 12, {"a": r(3, 3, 2)}, equation="iij->ij")
one("Einsum", 12, {"a": r(3, 3)}, equation="ii")
one("Einsum", 12, {"a": r(2, 3)}, equation="ij->j")
one("Einsum", 12, {"a": r(2, 3), "b": r(3), "c": r(2)}, equation="ij,j,i->")
one("Einsum", 12, {"a": r(2, 1, 3, 4), "b": r(1, 5, 4, 2)}, equation="...ij,...jk->...ik")
one("Einsum", 12, {"a": r(4, 2, 3)}, equation="...ij->...ji")
one("Einsum", 12, {"a": r(2, 3), "b": r(4)}, equation="ij,k->kji")

# Attention: three and four axes, shared key heads, cache, masks.
qkv = {"q": r(2, 4, 3, 8), "k": r(2, 2, 5, 8), "v": r(2, 2, 5, 6)}
for opset in (23, 24):
    one("Attention", opset, qkv)
    one("Attention", opset, {**qkv, "m": rng.integers(0, 2, (3, 5)).astype(bool)}, scale=0.5)
    one("Attention", opset, {**qkv, "m": r(2, 1, 3, 5)}, softcap=1.5)
    flat = {"q": r(2, 3, 32), "k": r(2, 5, 16), "v": r(2, 5, 12)}
    one("Attention", opset, flat, q_num_heads=4, kv_num_heads=2, is_causal=1)
past = {"q": r(1, 2, 2, 4), "k": r(1, 2, 2, 4), "v": r(1, 2, 2, 4), "pk": r(1, 2, 3, 4), "pv": r(1, 2, 3, 4)}
case("Attention", 23, [node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "z", "w"], is_causal=1)], past,
     outputs=("y", "z", "w"))
one("Attention", 24, {**qkv, "m": r(3, 4)})
for mode in range(4):
    # ONNX Runtime hides with the lowest number instead of -infinity, which mode 2 shows.
    for opset, mask in ((23, {"m": r(2, 1, 3, 5)}), (24, {"m": r(2, 1, 3, 5) if mode == 2 else rng.integers(0, 2, (4, 3, 5)).astype(bool)}), (24, {})):
        case("Attention", opset, [node("Attention", ["q", "k", "v", *mask], ["y", "", "", "z"], qk_matmul_output_mode=mode,
                                       softcap=1.5, is_causal=int(mode == 3))], {**qkv, **mask}, outputs=("y", "z"))
one("Attention", 23, qkv, softmax_precision=11)
used = {**qkv, "n": i64(4, 2)}
for causal in (0, 1):
    one("Attention", 24, used, names=["q", "k", "v", "", "", "", "n"], is_causal=causal)
one("Attention", 24, {**used, "m": r(3, 5)}, names=["q", "k", "v", "m", "", "", "n"], is_causal=1)
cache = {"x": r(2, 2, 6, 3), "u": r(2, 2, 2, 3), "w": i64(1, 4)}
one("TensorScatter", 24, cache)
one("TensorScatter", 24, {**cache, "w": i64(5, 4)}, mode="circular")
one("TensorScatter", 24, {"x": r(2, 6, 3), "u": r(2, 2, 3)}, axis=1)

# Attention of com.microsoft; sizes of heads are known.
microsoft = {"domain": "com.microsoft"}
flat = {"x": r(2, 4, 8)}
weights = {"w": r(8, 24) / f32(4), "b": r(24)}
mask = {"m": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], dtype=np.int32)}
one("Attention", 13, flat, weights, **microsoft, num_heads=2)
one("Attention", 13, {**flat, **mask}, weights, names=["x", "w", "b", "m"], **microsoft, num_heads=2, scale=0.5)
one("Attention", 13, {**flat, "m": np.array([3, 2], dtype=np.int32)}, weights, names=["x", "w", "b", "m"], **microsoft,
    num_heads=2, fixed=("x0", "m0"))
past = {"p": r(2, 2, 2, 3, 4)}
one("Attention", 13, {**flat, **past}, weights, names=["x", "w", "b", "", "p"], outputs=("y", "z"), **microsoft,
    num_heads=2, unidirectional=1)
one("Attention", 13, {**flat, "a": r(1, 2, 4, 4)}, {"w": r(8, 20) / f32(4), "b": r(20)},
    names=["x", "w", "b", "", "", "a"], **microsoft, num_heads=2, qkv_hidden_sizes=[8, 8, 4])
query = {"q": r(2, 4, 8), "k": r(2, 5, 8), "v": r(2, 5, 12)}
sizes = ("q2", "k2", "v2")
long_mask = {"m": np.array([[1, 1, 1, 0, 1], [1, 1, 0, 0, 0]], dtype=np.int32)}
one("MultiHeadAttention", 13, query, **microsoft, num_heads=2, fixed=sizes)
one("MultiHeadAttention", 13, {**query, "b": r(28), **long_mask, "a": r(2, 2, 4, 5)}, **microsoft, num_heads=2, fixed=sizes)
one("MultiHeadAttention", 13, {"q": r(2, 3, 8), "k": r(2, 3, 8), "v": r(2, 3, 8), "pk": r(2, 2, 4, 4), "pv": r(2, 2, 4, 4)},
    names=["q", "k", "v", "", "", "", "pk", "pv"], outputs=("y", "z", "w"), **microsoft, num_heads=2, unidirectional=1,
    fixed=sizes)
one("MultiHeadAttention", 13, {"q": r(2, 3, 8), "k": r(2, 2, 5, 4), "v": r(2, 2, 5, 4)}, {"b": r(24)},
    names=["q", "k", "v", "b"], **microsoft, num_heads=2, fixed=("q2", "k3", "v3"))
# ONNX Runtime packs query, key and value on other processors only: the same, apart, is the expectation.
packed = r(2, 3, 2, 3, 4)
one("MultiHeadAttention", 13, {"q": packed[:, :, :, 0].reshape(2, 3, 8), "k": packed[:, :, :, 1].reshape(2, 3, 8),
                               "v": packed[:, :, :, 2].reshape(2, 3, 8)}, **microsoft, num_heads=2, fixed=sizes)
apart = np.frombuffer(bytes.fromhex(cases[-1]["outputs"][0]["data"]), f32).reshape(2, 3, 8)
one("MultiHeadAttention", 13, {"q": packed}, **microsoft, num_heads=2, fixed=("q4",), expected=[apart])
step = {"q": r(4, 1, 8), "k": r(4, 1, 8), "v": r(4, 1, 8), "pk": r(4, 2, 6, 4), "pv": r(4, 2, 6, 4)}
shared = {"outputs": ("y", "z", "w"), **microsoft, "num_heads": 2, "past_present_share_buffer": 1, "fixed": sizes}
now = {"n": np.array([3], dtype=np.int32)}
one("DecoderMaskedMultiHeadAttention", 13, step, now, names=["q", "k", "v", "", "", "pk", "pv", "n"], **shared)
one("DecoderMaskedMultiHeadAttention", 13, {**step, "m": np.array([[1, 1, 0, 1]] * 4, dtype=np.int32)}, {**now, "b": r(24)},
    names=["q", "k", "v", "m", "", "pk", "pv", "n", "", "", "b"], **shared)
one("DecoderMaskedMultiHeadAttention", 13, {**step, "i": rng.integers(0, 2, (2, 2, 6)).astype(np.int32)},
    {**now, "u": np.array([2], dtype=np.int32)}, names=["q", "k", "v", "", "", "pk", "pv", "n", "u", "i"], **shared)
for interleaved in (0, 1):
    for positions in (i64(2), np.array([[0, 1, 2], [3, 1, 0]])):
        one("RotaryEmbedding", 13, {"x": r(2, 3, 16)}, {"p": positions, "c": r(8, 4), "s": r(8, 4)}, **microsoft,
            interleaved=interleaved, fixed=("x2",))
one("RotaryEmbedding", 13, {"x": r(2, 2, 3, 8)}, {"p": i64(0), "c": r(8, 2), "s": r(8, 2)}, **microsoft, num_heads=2,
    rotary_embedding_dim=4, fixed=("x3",))
for bidirectional in (0, 1):
    # As in T5; ONNX Runtime has it on other processors only.
    table, behind = r(8, 3), np.arange(20)[:, None] - np.arange(20)[None, :]
    half = 4 if bidirectional else 8
    base, behind = (np.where(behind < 0, half, 0), np.abs(behind)) if bidirectional else (0, np.maximum(behind, 0))
    far = half // 2 + (np.log(np.maximum(behind, 1) / (half // 2)) / np.log(16 / (half // 2)) * (half - half // 2)).astype(int)
    bucket = base + np.where(behind < half // 2, behind, np.minimum(far, half - 1))
    one("RelativePositionBias", 13, {}, {"t": table, "a": i64(20), "b": i64(20)}, **microsoft, max_distance=16,
        is_bidirectional=bidirectional, expected=[table[bucket].transpose(2, 0, 1)[None]])
ids = {"i": np.array([[1, 2, 0], [3, 3, 4]], dtype=np.int32), "k": np.array([[0, 0, 1], [1, 0, 1]], dtype=np.int32)}
tables = {"e": r(5, 8), "p": r(6, 8), "t": r(2, 8), "g": r(8), "b": r(8)}
one("EmbedLayerNormalization", 13, ids, tables, **microsoft, outputs=("y", "m"), epsilon=1e-6)
one("EmbedLayerNormalization", 13, {"i": ids["i"], "m": np.array([[1, 1, 0], [1, 1, 1]], dtype=np.int32)}, tables,
    names=["i", "", "e", "p", "", "g", "b", "m"], **microsoft, outputs=("y", "n"), epsilon=1e-6)
grouped = {"num_heads": 4, "kv_num_heads": 2, **microsoft}
prompt = {"q": r(2, 3, 64), "k": r(2, 3, 32), "v": r(2, 3, 32)}
lengths = {"s": np.array([2, 1], dtype=np.int32), "t": np.array([3], dtype=np.int32)}
angles = {"c": r(8, 8), "d": r(8, 8)}
one("GroupQueryAttention", 13, prompt, lengths, names=["q", "k", "v", "", "", "s", "t"], outputs=("y", "z", "w"), **grouped,
    fixed=sizes)
cached = {"q": r(2, 1, 64), "k": r(2, 1, 32), "v": r(2, 1, 32), "pk": r(2, 2, 4, 16), "pv": r(2, 2, 4, 16)}
names = ["q", "k", "v", "pk", "pv", "s", "t", "c", "d"]
for window in (-1, 2):
    one("GroupQueryAttention", 13, cached, {"s": np.array([4, 2], dtype=np.int32), "t": np.array([5], dtype=np.int32), **angles},
        names=names, outputs=("y", "z", "w"), **grouped, do_rotary=1, local_window_size=window, fixed=sizes)
one("GroupQueryAttention", 13, prompt, {**lengths, **angles}, names=["q", "k", "v", "", "", "s", "t", "c", "d"],
    outputs=("y", "z", "w"), **grouped, do_rotary=1, rotary_interleaved=1, softcap=2.5, scale=0.5, fixed=sizes)

for corners in (0, 1):
    one("AffineGrid", 20, {"t": r(2, 2, 3)}, {"s": i64(2, 3, 4, 5)}, align_corners=corners)
    one("AffineGrid", 20, {"t": r(1, 3, 4)}, {"s": i64(1, 2, 3, 2, 4)}, align_corners=corners)

# More element by element, along axes, and norms.
for opset in (11, 13):
    for axis in ({}, {"axis": 0}, {"axis": -1}, {"axis": 2}):
        one("Hardmax", opset, {"x": np.array([[[1, 3, 3], [2, 2, -1]], [[5, 4, 5], [0, -7, 1]]], dtype=f32)}, **axis)
for op in ("ArgMax", "ArgMin"):
    one(op, 13, {"x": np.array([[3, -2, -2], [7, 7, 1]], dtype=np.int32)}, axis=1, select_last_index=1)
one("BitShift", 11, {"x": np.array([1, 200, 77], dtype=np.uint8), "z": np.array([3, 1, 0], dtype=np.uint8)}, direction="RIGHT")
one("BitShift", 11, {"x": np.array([1, 200, 77], dtype=np.uint8), "z": np.array([3, 1, 0], dtype=np.uint8)}, direction="LEFT")
for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    one(op, 18, {"x": np.array([[12, -7], [99, 5]], dtype=np.int32), "z": np.array([10, 6], dtype=np.int32)})
one("BitwiseNot", 18, {"x": np.array([12, -7], dtype=np.int32)})
one("Softplus", 22, {"x": np.array([-200, -20, -1, 0, 3, 90, 200], dtype=f32)})
for op in ("L2", "L1", "Mean"):
    one("Reduce" + op, 13, {"x": np.array([[3, 4], [6, 2]], dtype=np.int32)}, axes=[1])
one("Dropout", 13, x, outputs=("y", "z"))
one("LRN", 13, {"x": r(2, 5, 3, 2)}, size=3, alpha=0.5, beta=0.75, bias=2.5)
for axis in (-1, 1, 2):
    one("LayerNormalization", 17, {**x, "s": r(*x["x"].shape[axis:])}, outputs=("y", "m", "i"), axis=axis, absolute=2e-6)
training = {"x": r(2, 3, 4, 2), **{name: value for name, value in channels.items()}}
one("BatchNormalization", 15, training, outputs=("y", "p", "q"), training_mode=1, momentum=0.75, absolute=2e-6)

# Quantisation in blocks, to 16 bits and of products.
one("DequantizeLinear", 21, {"x": rng.integers(0, 255, (2, 5)).astype(np.uint8)},
    {"s": r(2, 3), "z": rng.integers(0, 255, (2, 3)).astype(np.uint8)}, axis=1, block_size=2)
one("QuantizeLinear", 21, {"x": r(4, 3) * f32(9)},
    {"s": np.abs(r(2, 3)) + f32(1), "z": rng.integers(-9, 9, (2, 3)).astype(np.int8)}, axis=0, block_size=2)
one("QuantizeLinear", 21, {"x": r(4, 3) * f32(9000)}, {"s": f32(0.5), "z": np.array(7, dtype=np.uint8)})
scales = {"sa": f32(0.0625), "za": np.uint8(120), "sb": np.abs(r(5)) + f32(0.125), "zb": np.array([1, 2, 3, 4, 5], dtype=np.int8),
          "sy": f32(12.5), "zy": np.uint8(100)}
one("QLinearMatMul", 10, {"a": bytes_in[0], "b": rng.integers(-128, 127, (4, 5)).astype(np.int8)}, scales,
    names=["a", "sa", "za", "b", "sb", "zb", "sy", "zy"])

image = rng.integers(0, 255, (1, 2, 5, 6)).astype(np.uint8)
filters = rng.integers(-128, 127, (4, 2, 3, 2)).astype(np.int8)
one("ConvInteger", 10, {"x": image, "w": filters}, {"zx": np.uint8(9), "zw": np.int8(-3)}, pads=[1, 0, 0, 1], strides=[2, 1])
scales = {"sx": f32(0.0625), "zx": np.uint8(120), "w": filters, "sw": np.abs(r(4)) + f32(0.125),
          "zw": np.zeros(4, dtype=np.int8), "sy": f32(12.5), "zy": np.uint8(100), "b": rng.integers(-900, 900, 4).astype(np.int32)}
one("QLinearConv", 10, {"x": image}, scales, names=["x", *scales], pads=[1, 1, 1, 1])

# What occurs, and how often.
repeated = {"x": rng.integers(-2, 3, (4, 3)).astype(f32)}
for order in (0, 1):
    one("Unique", 11, repeated, outputs=("y", "i", "v", "c"), sorted=order)
    one("Unique", 11, {"x": np.array([[1, 2], [0, 5], [1, 2], [0, 3], [1, 2]], dtype=np.int64)},
        outputs=("y", "i", "v", "c"), axis=0, sorted=order)
one("Unique", 11, {"x": np.array([[[1, 1, 0], [2, 2, 7]], [[3, 3, 0], [4, 4, 7]]], dtype=f32)}, outputs=("y", "i", "v", "c"), axis=-1)
pool = dict(pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7], ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 7, 5, 6],
            weights=[0.5, 2.0, 3.0, 4.0, 0.25, 1.5, 8.5])
words = {"x": np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], dtype=np.int32)}
for mode in ("TF", "IDF", "TFIDF"):
    one("TfIdfVectorizer", 9, words, min_gram_length=1, max_gram_length=2, max_skip_count=2, mode=mode, **pool)
one("TfIdfVectorizer", 9, {"x": words["x"][1]}, min_gram_length=2, max_gram_length=2, max_skip_count=0, mode="TF", **pool)

# Boxes.
corners = np.concatenate([r(2, 6, 2), r(2, 6, 2) + f32(4)], axis=2)
scores = {"s": rng.permutation(36).reshape(2, 3, 6).astype(f32) / 32}
for options in ({"m": i64(3)}, {"m": i64(2), "t": f32([0.25]), "l": f32([0.5])}):
    one("NonMaxSuppression", 11, {"b": corners, **scores}, options)
one("NonMaxSuppression", 11, {"b": np.abs(corners) + f32(1), **scores}, {"m": i64(4), "t": f32([0.125])}, center_point_box=1)
one("NonMaxSuppression", 11, {"b": corners, **scores})

# Operands that hold their rows before the batch axes, plain and with the last two axes exchanged.
one("FusedMatMul", 13, {"a": r(4, 2, 3, 5), "b": r(2, 3, 6, 5)}, domain="com.microsoft", transBatchA=1, transB=1)
one("FusedMatMul", 13, {"a": r(5, 2, 4), "b": r(5, 2, 6)}, domain="com.microsoft", transBatchA=1, transBatchB=1, transA=1, alpha=0.5)

skip = {"x": r(2, 3, 4), "k": r(2, 3, 4), "g": r(4), "c": r(4)}
case("SkipSimplifiedLayerNormalization", 13, [node("SkipSimplifiedLayerNormalization", list(skip), ["y", "", "", "z"], domain="com.microsoft", epsilon=1e-6)],
     skip, outputs=("y", "z"), domains=["com.microsoft"])

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "importFixture.json.inc"), "w") as out:
    out.write("// Written by make_import_fixture.py.\nR\"json({\"cases\": [\n")
    out.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases))
    out.write("\n]})json\"\n")
print(len(cases), "cases")
