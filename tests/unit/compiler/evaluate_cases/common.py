"""What the cases are made with: tensors, cases, points, and the references that say what is expected."""

import json
import math
import os
import random

import ml_dtypes
import mpmath
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

mpmath.mp.prec = 1400
random.seed(7)
rng = np.random.default_rng(7)
cases = []  # in the order of their making
points = []

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
NAMES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "i1", "int8": "i8",
         "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "ui8", "uint16": "ui16", "uint32": "ui32",
         "uint64": "ui64", "float8_e4m3fn": "f8E4M3FN", "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2",
         "float8_e5m2fnuz": "f8E5M2FNUZ", "float8_e8m0fnu": "!transept.f8e8m0", "float4_e2m1fn": "!transept.f4e2m1",
         "int4": "i4", "uint4": "ui4", "int2": "i2", "uint2": "ui2"}
nan, inf = float("nan"), float("inf")


def type_of(array):
    return "tensor<" + "".join(f"{size}x" for size in array.shape) + NAMES[array.dtype.name] + ">"


def a(values, dtype=F32):
    return np.array(values, dtype=dtype)


def r(*shape, dtype=F32, scale=1.0):
    return np.asarray(rng.standard_normal(shape) * scale).astype(dtype)


def hexed(array):
    if array.dtype.name in ("int4", "int2"):  # extended by their sign
        array = array.astype(np.int8)
    return array.tobytes().hex()


def tensors(arrays):
    return [{"type": type_of(array), "data": hexed(array)} for array in arrays]


def case(op, inputs, outputs, attrs="", ulps=0, error=None, segments=None, absolute=0.0):
    """One op in generic form. `inputs` may hold None for absent optional operands: then `segments` is derived."""
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    present = [x for x in inputs if x is not None]
    if segments:
        sizes = ", ".join(str(int(x is not None)) for x in inputs)
        attrs = f"operandSegmentSizes = array<i32: {sizes}>" + (", " + attrs if attrs else "")
    args = ", ".join(f"%{i}: {type_of(x)}" for i, x in enumerate(present))
    names = ", ".join(f"%{i}" for i in range(len(present)))
    types = ", ".join(type_of(x) for x in present)
    results = ", ".join(type_of(x) for x in outputs)
    head = "%r" if len(outputs) == 1 else f"%r:{len(outputs)}"
    values = "%r" if len(outputs) == 1 else ", ".join(f"%r#{i}" for i in range(len(outputs)))
    properties = f" <{{{attrs}}}>" if attrs else ""
    mlir = (f"func.func @main({args}) -> ({results}) {{ {head} = \"transept.{op}\"({names}){properties} : ({types}) -> "
            f"({results}) return {values} : {results} }}")
    entry = {"op": op, "mlir": mlir, "inputs": tensors(present)}
    if error:
        entry["error"] = error
    else:
        entry["outputs"] = tensors(outputs)
        if ulps:
            entry["ulps"] = ulps
        if absolute:
            entry["absolute"] = absolute
    cases.append(entry)


def onnx_run(op, inputs, opset=18, reference=False, domain="", **attrs):
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    present = [(n, np.asarray(x)) for n, x in zip(names, inputs) if x is not None]
    node = helper.make_node(op, names, ["y"], domain=domain, **attrs)
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in present]
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    feeds = dict(present)
    if reference:
        return np.asarray(ReferenceEvaluator(model).run(None, feeds)[0])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0])


def onnx_all(op, inputs, outputs, opset=18, **attrs):
    """All results of one node, by ONNX Runtime."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    feeds = {n: np.asarray(x) for n, x in zip(names, inputs) if x is not None}
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()]
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph([helper.make_node(op, names, results, **attrs)], "g", infos,
                              [helper.make_empty_tensor_value_info(n) for n in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(x) for x in session.run(None, feeds)]


mp = mpmath.mp
SPECIAL = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 2.5, 1e-40, 1e30, -1e-8, 3.25, 88.0, -100.0]


def rounded(function, array):
    """Element by element in high precision, rounded once."""
    flat = [function(float(x)) for x in array.reshape(-1)]
    return np.array(flat, dtype=F64).astype(array.dtype).reshape(array.shape)


def exact(function):
    def apply(x):
        if math.isnan(x):
            return nan
        return float(function(mpmath.mpf(x)))
    return apply


def guarded(function, at_inf, at_minus_inf, domain=lambda x: True, zero=None):
    inner = exact(function)

    def apply(x):
        if x == inf:
            return at_inf
        if x == -inf:
            return at_minus_inf
        if not math.isnan(x) and not domain(x):
            return nan
        if x == 0 and zero is not None:
            return math.copysign(zero, x) if zero == 0 else zero
        return inner(x)
    return apply


def uniform(low, high, count):
    return [random.uniform(low, high) for _ in range(count)]
