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


def case(title, opset, nodes, inputs, constants=None, outputs=("y",), absolute=1e-6, domains=()):
    """One model. Inputs have dynamic sizes; `constants` are initializers."""
    # The text form has no 8-bit data: such constants are fed.
    fed = {name: np.asarray(value) for name, value in (constants or {}).items() if np.asarray(value).itemsize == 1}
    inputs = {**inputs, **fed}
    constants = {name: value for name, value in (constants or {}).items() if name not in fed}
    infos = [helper.make_tensor_value_info(name, DATA[value.dtype.name], [f"{name}{axis}" for axis in range(value.ndim)])
             for name, value in inputs.items()]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info(name, 1, None) for name in outputs],
                              initializers)
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8 if opset < 20 else 10)
    inferred = onnx.shape_inference.infer_shapes(model).graph.output
    for output, known in zip(model.graph.output, inferred):
        output.type.tensor_type.elem_type = known.type.tensor_type.elem_type
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        expected = session.run(None, inputs)
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        expected = ReferenceEvaluator(model).run(None, inputs)
    for output, value in zip(model.graph.output, expected):
        output.type.tensor_type.elem_type = DATA[value.dtype.name]
    text = onnx.printer.to_text(model)
    for attribute in (a for n in onnx.parser.parse_model(text).graph.node for a in n.attribute):
        helper.get_attribute_value(attribute)  # the text form writes 2.0 as an integer
    cases.append({"title": f"{title}-{opset}", "model": text, "inputs": tensors(inputs),
                  "outputs": tensors(dict(zip(outputs, expected))), "absolute": absolute})


def one(op, opset, inputs, constants=None, outputs=("y",), names=None, domain="", **attributes):
    names = names if names is not None else list(inputs) + list(constants or {})
    case(op, opset, [node(op, names, list(outputs), domain=domain, **attributes)], inputs, constants, outputs,
         domains=[domain] if domain else [])


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
case("Attention", 23, [node("Attention", ["q", "k", "v"], ["y", "", "", "z"], qk_matmul_output_mode=3)], qkv,
     outputs=("y", "z"))

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "importFixture.json.inc"), "w") as out:
    out.write("// Written by make_import_fixture.py.\nR\"json({\"cases\": [\n")
    out.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases))
    out.write("\n]})json\"\n")
print(len(cases), "cases")
