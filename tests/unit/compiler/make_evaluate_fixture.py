#!/usr/bin/env python3
"""Writes evaluateFixture.json.inc: small cases for every op of the graph dialect, and points of the elementary
functions. Expected values come from ONNX Runtime, the ONNX reference evaluator, numpy in double precision, and mpmath.

    python make_evaluate_fixture.py        # needs numpy, ml_dtypes, onnx, onnxruntime, mpmath
"""
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
cases = []

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


# --- Element-wise -------------------------------------------------------------------------------------------------------

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


mp = mpmath.mp
unary = {
    "neg": lambda x: -x, "abs": abs, "sign": lambda x: x if math.isnan(x) else float((x > 0) - (x < 0)),
    "sqrt": guarded(mp.sqrt, inf, nan, lambda x: x >= 0, 0.0),
    "reciprocal": lambda x: math.copysign(inf, x) if x == 0 else 1 / x,
    "exp": guarded(mp.exp, inf, 0.0), "log": guarded(mp.log, inf, nan, lambda x: x >= 0, -inf),
    "sin": guarded(mp.sin, nan, nan, zero=0.0), "cos": guarded(mp.cos, nan, nan),
    "erf": guarded(mp.erf, 1.0, -1.0, zero=0.0), "tanh": guarded(mp.tanh, 1.0, -1.0, zero=0.0),
    "sigmoid": guarded(lambda x: 1 / (1 + mp.exp(-x)), 1.0, 0.0),
    "relu": lambda x: x if math.isnan(x) else max(x, 0.0) if x != 0 else 0.0,
    "silu": guarded(lambda x: x / (1 + mp.exp(-x)), inf, nan, zero=0.0),
    "floor": lambda x: x if not math.isfinite(x) or x == 0 else math.copysign(float(math.floor(x)), x),
    "ceil": lambda x: x if not math.isfinite(x) or x == 0 else math.copysign(float(math.ceil(x)), x),
    "round": lambda x: x if not math.isfinite(x) else math.copysign(float(round(x)), x),
}
for op, function in unary.items():
    # Where several roundings in double meet, a result may be off by one unit of a double; never of a float.
    wide = 2 if op in ("exp", "log", "sin", "cos", "erf", "tanh", "sigmoid", "silu") else 0
    for dtype in (F32, F64, F16, BF16):
        with np.errstate(all="ignore"):
            x = np.concatenate([np.array(SPECIAL, dtype=F64).astype(dtype), r(7, dtype=dtype, scale=3)]).reshape(3, -1)
            case(op, [x], [rounded(function, x)], ulps=wide if dtype == F64 else 0)
    for x in (r(dtype=F32), r(0, 3), r(2, 1, 3)):
        case(op, [x], [rounded(function, x)])
    if op in ("neg", "abs", "sign", "relu"):
        for dtype in (np.int8, np.int16, np.int32, np.int64):
            x = a([0, 1, -1, 7, -9, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
            case(op, [x], [{"neg": np.negative, "abs": np.abs, "sign": np.sign, "relu": lambda v: np.maximum(v, 0).astype(v.dtype)}[op](x)])
    else:
        case(op, [a([1, 2], np.int32)], [a([1, 2], np.int32)], error="not defined for elements of type 'i32'")
case("sign", [a([0, 1, 2**63], np.uint64)], [a([0, 1, 1], np.uint64)])

for x in (a([True, False]), a(True), a([[True], [False]]), a([], bool), a([[False, False, True]]), a([[[True]]])):
    x = x.astype(bool)
    case("not", [x], [~x])
for dtype in (F32, F64, F16, BF16):
    with np.errstate(all="ignore"):
        x = np.array(SPECIAL).astype(dtype)
    case("is_nan", [x], [np.isnan(x.astype(F64))])
case("is_nan", [r(0, 2)], [np.zeros((0, 2), bool)])
case("is_nan", [a(nan)], [a(True, bool)])
gelu = guarded(lambda x: x * (1 + mp.erf(x / mp.sqrt(2))) / 2, inf, nan, zero=0.0)
gelu_tanh = guarded(lambda x: x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mpmath.mpf(44715) / 1000000 * x**3))), inf, nan, zero=0.0)
for x in (r(4, 5, scale=2), r(dtype=F32), r(0), r(6, dtype=F16, scale=2), r(6, dtype=BF16), a([inf, -inf, nan, 0.0, -5.0, 5.0])):
    # Near -5, 1 + erf(x) loses digits; so does every implementation in floats.
    case("gelu", [x], [rounded(gelu, x)], attrs='approximate = "none"', ulps=1)
    case("gelu", [x], [rounded(gelu_tanh, x)], attrs='approximate = "tanh"', ulps=1)

# --- Casts ----------------------------------------------------------------------------------------------------------------
values = a([0.0, 1.0, -1.0, 2.5, -2.5, 100.7, -100.7, 65504.0, 1e-7])
for dtype in (F64, F16, BF16, np.int16, np.int32, np.int64, bool):
    with np.errstate(all="ignore"):
        clipped = np.clip(values, -32768, 32767) if dtype == np.int16 else values
        case("cast", [clipped], [clipped.astype(dtype)], attrs=f"to = {NAMES[np.dtype(dtype).name]}")
for dtype in (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64):
    info = np.iinfo(dtype)
    x = a([nan, inf, -inf, 1e30, -1e30, 3.99, -0.99, 100.5])
    expected = a([0, info.max, info.min, info.max, info.min, 3, 0, 100], dtype)
    case("cast", [x], [expected], attrs=f"to = {NAMES[np.dtype(dtype).name]}")
x = a([0, 1, -1, 127, 128, 255, 256, -129, 2**31, 2**53 + 1, -2**63, 2**63 - 1], np.int64)
for dtype in (np.int8, np.uint8, np.int16, np.int32, np.uint64, F32, F64, bool):
    case("cast", [x], [x.astype(dtype)], attrs=f"to = {NAMES[np.dtype(dtype).name]}")
case("cast", [a([2**24 + 1, 2**54 + 2**30 + 1, 2**62 + 2**38 + 1], np.int64)],
     [a([2**24, 2**54 + 2**31, 2**62 + 2**39])], attrs="to = f32")  # one rounding only
case("cast", [a([2**64 - 1, 2**63], np.uint64)], [a([2.0**64, 2.0**63])], attrs="to = f32")
case("cast", [a([True, False], bool)], [a([1.0, 0.0], F16)], attrs="to = f16")
case("cast", [a(1 + 2.0**-11 + 2.0**-40, F64)], [a(1 + 2.0**-10, F16)], attrs="to = f16")  # not over float

# --- Binary -------------------------------------------------------------------------------------------------------------
SHAPES = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((0, 3), (1, 3)), ((4, 1, 2), (3, 1)), ((), ())]
arithmetic = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
specials = np.array([nan, inf, -inf, 0.0, -0.0, 1.0, -2.0], F32)
for op, function in arithmetic.items():
    with np.errstate(all="ignore"):
        for left, right in SHAPES:
            x, y = r(*left), r(*right)
            case(op, [x, y], [function(x, y)])
        case(op, [specials[:, None], specials[None, :]], [function(specials[:, None], specials[None, :])])
        for dtype in (F64, F16, BF16):
            x, y = r(9, dtype=dtype, scale=5), r(9, dtype=dtype, scale=5)
            case(op, [x, y], [function(x.astype(F64), y.astype(F64)).astype(dtype)])
        for dtype in (np.int8, np.int32, np.int64, np.uint8, np.uint64):
            info = np.iinfo(dtype)
            x, y = a([info.max, info.min, 7, info.max, 5, 100], dtype), a([info.max, 1, 2, 1, 3, 7], dtype)
            if op == "div":
                expected = a([int(abs(int(p)) // abs(int(q)) * (1 if (int(p) < 0) == (int(q) < 0) else -1)) for p, q in zip(x, y)], dtype)
            else:
                expected = function(x, y)
            case(op, [x, y], [expected])
    case(op, [r(2, 3), r(2)], [r(2, 3)], error="cannot broadcast shape [2] to [2, 3]")
case("div", [a([-7, 7, -7, 7]).astype(np.int32), a([2, -2, -2, 2]).astype(np.int32)], [a([-3, -3, 3, 3]).astype(np.int32)])
case("div", [a([np.iinfo(np.int64).min], np.int64), a([-1], np.int64)], [a([np.iinfo(np.int64).min], np.int64)])
case("div", [a([1, 2], np.int64), a([1, 0], np.int64)], [a([1, 1], np.int64)], error="divides an integer by zero (element 1")
case("div", [np.zeros((0,), np.int64), a([0], np.int64)], [np.zeros((0,), np.int64)])

pairs_x, pairs_y = a([7, -7, 7, -7, 0, 5], np.int32), a([3, 3, -3, -3, 5, -5], np.int32)
case("mod", [pairs_x, pairs_y], [onnx_run("Mod", [pairs_x, pairs_y])], attrs="fmod = 0 : i64")
case("mod", [pairs_x, pairs_y], [np.fmod(pairs_x, pairs_y)], attrs="fmod = 1 : i64")
fx, fy = a([5.5, -5.5, 5.5, -5.5, 1.0]), a([2.0, 2.0, -2.0, -2.0, 0.0])
with np.errstate(all="ignore"):
    case("mod", [fx, fy], [onnx_run("Mod", [fx, fy], fmod=1)], attrs="fmod = 1 : i64")
case("mod", [a([250, 3], np.uint8), a([7, 2], np.uint8)], [a([5, 1], np.uint8)], attrs="fmod = 0 : i64")
case("mod", [a([2**63 + 5], np.uint64), a([10], np.uint64)], [a([(2**63 + 5) % 10], np.uint64)], attrs="fmod = 0 : i64")
case("mod", [a([-2**63], np.int64), a([-1], np.int64)], [a([0], np.int64)], attrs="fmod = 0 : i64")
case("mod", [a([3], np.int8), a([0], np.int8)], [a([0], np.int8)], attrs="fmod = 0 : i64", error="divides an integer by zero")

for op, function in (("min", np.minimum), ("max", np.maximum)):
    for left, right in SHAPES:
        x, y = r(*left), r(*right)
        case(op, [x, y], [function(x, y)])
    case(op, [a([nan, 1.0, inf, -inf]), a([1.0, nan, -inf, 0.0])], [function(a([nan, 1.0, inf, -inf]), a([1.0, nan, -inf, 0.0]))])
    case(op, [a([0.0, -0.0]), a([-0.0, 0.0])], [a([-0.0, -0.0]) if op == "min" else a([0.0, 0.0])])
    for dtype in (np.int8, np.int64, np.uint64, np.uint8):
        info = np.iinfo(dtype)
        x, y = a([info.min, info.max, 3], dtype), a([info.max, 1, 3], dtype)
        case(op, [x, y], [function(x, y)])

for op, function in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
    t = np.array([True, True, False, False])
    f = np.array([True, False, True, False])
    for x, y in ((t, f), (t[:, None], f[None, :]), (np.array(True), f), (np.zeros((0,), bool), np.array(True)), (np.array(False), np.array(True)), (t.reshape(2, 2), f[:2])):
        case(op, [x, y], [function(x, y)])
relations = {"equal": np.equal, "less": np.less, "less_or_equal": np.less_equal, "greater": np.greater, "greater_or_equal": np.greater_equal}
for op, function in relations.items():
    for left, right in SHAPES[:5]:
        x, y = np.round(r(*left, scale=1.5)), np.round(r(*right, scale=1.5))
        case(op, [x, y], [np.asarray(function(x, y))])
    case(op, [specials[:, None], specials[None, :]], [function(specials[:, None], specials[None, :])])
    for dtype in (np.int64, np.uint64, np.uint8, np.int8):
        info = np.iinfo(dtype)
        x, y = a([info.min, info.max, 3], dtype), a([info.max, info.min, 3], dtype)
        case(op, [x, y], [function(x, y)])
case("equal", [a([True, False], bool), a([True, True], bool)], [a([True, False], bool)])

for x, y in ((a([2.0, 3.0, 0.5]), a([10.0, -3.0, 0.5])), (r(3, 4, scale=4) ** 2, r(4, scale=4)), (a([[2.0], [3.0]]), a([1.0, 2.0, 3.0])),
             (r(5, dtype=F64) ** 2, r(5, dtype=F64, scale=9)), (r(5, dtype=F16) ** 2, r(5, dtype=F16)), (np.zeros((0,), F32), a(2.0))):
    with np.errstate(all="ignore"):
        full = [np.broadcast_to(v, np.broadcast_shapes(x.shape, y.shape)) for v in (x, y)]
        expected = np.array([float(mp.power(mpmath.mpf(float(p)), mpmath.mpf(float(q)))) for p, q in zip(full[0].reshape(-1), full[1].reshape(-1))]).astype(x.dtype).reshape(full[0].shape)
    case("pow", [x, y], [expected])
px = a([0.0, -0.0, 0.0, -0.0, -2.0, -2.0, -2.0, 1.0, nan, -1.0, 2.0, 0.5, inf, -inf, -inf, -inf, 10.0, 10.0, -8.0], F64)
py = a([3.0, 3.0, -2.0, -3.0, 2.0, 3.0, 0.5, nan, 0.0, inf, -inf, -inf, -1.0, 3.0, 2.0, -3.0, 400.0, -400.0, 1 / 3], F64)
with np.errstate(all="ignore"):
    case("pow", [px, py], [np.power(px, py)])
case("pow", [a([2, 3, -2, 10], np.int32), a([31, 4, 3, 0], np.int32)], [a([-2**31, 81, -8, 1], np.int32)])
case("pow", [a([1, -1, -1, 5], np.int64), a([-3, -3, -2, -1], np.int64)], [a([1, -1, 1, 0], np.int64)])
case("pow", [a([2.0, 3.0]), a([2, -1], np.int64)], [a([4.0, 1 / 3])])
case("pow", [a([4, 9], np.int32), a([0.5, 1.5])], [a([2, 27], np.int32)])
case("pow", [a([0], np.int32), a([-1], np.int32)], [a([0], np.int32)], error="raises the integer 0 to the power -1")

for c, x, y in ((a([True, False], bool), r(2), r(2)), (a([[True], [False]], bool), r(3), r(2, 3)), (a(True, bool), r(2), r(1, 1)),
                (a([True, False, True], bool), a(nan), a([1.0, 2.0, 3.0])), (np.zeros((0, 1), bool), r(3), r(0, 3)),
                (a([True, False], bool), a([1, 2], np.int64), a([3, 4], np.int64)), (a([True, False], bool), a([True, True], bool), a([False, False], bool)),
                (a([True, False], bool), r(2, dtype=BF16), r(2, dtype=BF16))):
    case("where", [c, x, y], [np.where(c, x, y).astype(x.dtype)])
case("where", [a([True], bool), r(2), a([1, 2], np.int32)], [r(2)], error="needs one element type")

# --- Products -----------------------------------------------------------------------------------------------------------

def product(x, y):
    return np.asarray(np.matmul(x.astype(F64), y.astype(F64))).astype(x.dtype)


for left, right in (((2, 3), (3, 4)), ((3,), (3, 2)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3, 4)), ((2, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 2)), ((1, 300), (300, 1))):
    x, y = r(*left), r(*right)
    case("matmul", [x, y], [product(x, y)])
for dtype in (F64, F16, BF16):
    x, y = r(3, 5, dtype=dtype), r(5, 2, dtype=dtype)
    case("matmul", [x, y], [product(x, y)], ulps=2 if dtype == F64 else 0, absolute=1e-15 if dtype == F64 else 0)
case("matmul", [a([[60000.0, 60000.0, -60000.0]], F16), a([[1.0], [1.0], [1.0]], F16)], [a([[60000.0]], F16)])
case("matmul", [a([[2**30, 2**30]], np.int32), a([[2], [2]], np.int32)], [a([[0]], np.int32)])
case("matmul", [r(2, 3), r(4, 2)], [r(2, 2)], error="contracts 3 with 4")
case("matmul", [r(2, 2, 3), r(3, 3, 2)], [r(2, 2, 2)], error="cannot broadcast the batch axes")
case("matmul", [r(2, 3), r(3, 4)], [r(2, 5)], error="gives shape [2, 4] where [2, 5] was expected")

for left, columns, bias, transposed in (((2, 3), 4, True, False), ((2, 3), 4, False, True), ((3,), 2, True, True), ((2, 2, 3), 5, True, True), ((0, 3), 2, True, False), ((1, 1, 4), 1, False, False)):
    x, w, b = r(*left), r(left[-1], columns), r(columns) if bias else None
    expected = (np.matmul(x.astype(F64), w.astype(F64)) + (b.astype(F64) if bias else 0)).astype(F32)
    case("linear", [x, w.T.copy() if transposed else w] + ([b] if bias else []), [expected], attrs="transposed" if transposed else "")
case("linear", [r(2, 3), r(4, 3)], [r(2, 3)], error="contracts 3 with 4")

ints = lambda dtype, *shape: rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
for x, y, zx, zy in ((ints(np.uint8, 3, 4), ints(np.int8, 4, 2), a(128, np.uint8), a(3, np.int8)), (ints(np.uint8, 3, 4), ints(np.uint8, 4, 2), None, None),
                     (ints(np.int8, 2, 3, 4), ints(np.int8, 4, 2), a(5, np.int8), None), (ints(np.uint8, 3, 4), ints(np.int8, 4, 2), None, a([1, -2], np.int8)),
                     (ints(np.uint8, 3, 4), ints(np.uint8, 4, 2), a(7, np.uint8), a(9, np.uint8))):
    case("matmul_integer", [x, y, zx, zy], [onnx_run("MatMulInteger", [x, y, zx, zy])], segments=True)
x, y, z = ints(np.uint8, 3, 4), ints(np.uint8, 4, 2), a([1, 2, 3], np.uint8)
case("matmul_integer", [x, y, z, None], [(x.astype(np.int32) - z.astype(np.int32)[:, None]) @ y.astype(np.int32)], segments=True)
case("matmul_integer", [np.full((1, 2), 255, np.uint8), np.full((2, 1), -128, np.int8), a(0, np.uint8), a(127, np.int8)], [a([[2 * 255 * -255]], np.int32)], segments=True)

for xs, ws, b, strides, pads, dilations, group in (((1, 2, 7), (3, 2, 3), True, [1], [0, 0], [1], 1), ((2, 4, 8), (4, 2, 3), True, [2], [1, 1], [1], 2),
                                                    ((1, 2, 5, 6), (3, 2, 3, 2), False, [1, 2], [1, 0, 1, 1], [1, 1], 1), ((1, 3, 9), (3, 1, 3), True, [1], [2, 2], [2], 3),
                                                    ((1, 1, 4, 4, 4), (1, 1, 2, 2, 2), False, [1, 1, 1], [0] * 6, [1, 1, 1], 1), ((1, 2, 6), (2, 2, 1), True, [3], [0, 0], [1], 1)):
    x, w, bias = r(*xs), r(*ws), r(ws[0]) if b else None
    expected = onnx_run("Conv", [x.astype(F64), w.astype(F64)] + ([bias.astype(F64)] if b else []), reference=True, strides=strides, pads=pads, dilations=dilations, group=group)
    attrs = f"strides = array<i64: {', '.join(map(str, strides))}>, pads = array<i64: {', '.join(map(str, pads))}>, dilations = array<i64: {', '.join(map(str, dilations))}>, group = {group} : i64"
    case("conv", [x, w] + ([bias] if b else []), [expected.astype(F32)], attrs=attrs, ulps=1)
case("conv", [r(1, 3, 5), r(2, 2, 3)], [r(1, 2, 3)], attrs="strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64", error="has 3 channels")

# --- Rows ---------------------------------------------------------------------------------------------------------------
KINDS = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd", "sum_square": "ReduceSumSquare",
         "l1": "ReduceL1", "l2": "ReduceL2", "log_sum": "ReduceLogSum", "log_sum_exp": "ReduceLogSumExp"}


def reduce_attrs(kind, axes, keepdims, noop):
    listed = "" if axes is None else f"axes = array<i64: {', '.join(map(str, axes))}>, " if axes else "axes = array<i64>, "
    return f"{listed}keepdims = {str(keepdims).lower()}, kind = #transept<reduce {kind}>, noopWithEmptyAxes = {str(noop).lower()}"


for kind, op in KINDS.items():
    for shape, axes, keepdims in (((2, 3, 4), [1], True), ((2, 3, 4), [0, -1], False), ((5,), [0], False), ((2, 3), None, True), ((2, 3), None, False), ((1, 1), [0], True)):
        x = np.abs(r(*shape)) + F32(0.1)
        wide = x.astype(F64)
        expected = onnx_run(op, [wide] + ([] if axes is None else [np.array(axes, np.int64)]), opset=20, keepdims=int(keepdims), reference=True)
        case("reduce", [x], [np.asarray(expected).astype(F32)], attrs=reduce_attrs(kind, axes, keepdims, False), ulps=1)
    x = r(3, 4, dtype=F16)
    if kind != "log_sum":
        expected = onnx_run(op, [x.astype(F64), np.array([1], np.int64)], opset=20, reference=True).astype(F16)
        case("reduce", [x], [expected], attrs=reduce_attrs(kind, [1], True, False))
    x = a([[3, -4], [120, 127]], np.int8)
    if kind in ("sum", "max", "min", "prod", "sum_square", "l1"):
        function = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "sum_square": lambda v, **k: np.sum(v * v, **k), "l1": lambda v, **k: np.sum(np.abs(v), **k)}[kind]
        case("reduce", [x], [np.asarray(function(x.astype(np.int64), axis=1)).astype(np.int8)], attrs=reduce_attrs(kind, [1], False, False))
    # With an empty list of axes and noop, the steps around the reduction still happen.
    x = np.abs(r(2, 2)) + F32(0.5)
    expected = {"sum_square": x.astype(F64)**2, "l1": x, "l2": x, "log_sum": np.log(x.astype(F64)), "log_sum_exp": x}.get(kind, x)
    case("reduce", [x], [np.asarray(expected).astype(F32)], attrs=reduce_attrs(kind, None, True, True), ulps=1)
empty = np.zeros((2, 0), F32)
for kind, value in (("sum", 0.0), ("mean", nan), ("max", -inf), ("min", inf), ("prod", 1.0), ("sum_square", 0.0), ("l1", 0.0), ("l2", 0.0), ("log_sum", -inf), ("log_sum_exp", -inf)):
    case("reduce", [empty], [np.full((2,), value, F32)], attrs=reduce_attrs(kind, [1], False, False))
case("reduce", [a([[nan, 1.0], [inf, -inf]])], [a([nan, inf])], attrs=reduce_attrs("max", [1], False, False))
case("reduce", [a([[1e30, 1e30], [-inf, -inf]])], [a([1e30 + math.log(2), -inf])], attrs=reduce_attrs("log_sum_exp", [1], False, False))
case("reduce", [np.full((1000,), 0.1, F32)], [a(np.float64(F32(0.1)) * 1000)], attrs=reduce_attrs("sum", None, False, False))
case("reduce", [a([7, 8], np.int32)], [a(7, np.int32)], attrs=reduce_attrs("mean", None, False, False))
case("reduce", [np.zeros((0,), np.int32)], [a(7, np.int32)], attrs=reduce_attrs("mean", None, False, False), error="mean of no integers")
x = r(2, 3)
case("reduce", [x, a([-1], np.int64)], [np.sum(x.astype(F64), axis=-1).astype(F32)], attrs=reduce_attrs("sum", None, False, False))
case("reduce", [x], [r(2)], attrs=reduce_attrs("sum", [2], False, False), error="names axis 2 of a tensor with 2 axes")
case("reduce", [a([True, False], bool)], [a(True, bool)], attrs=reduce_attrs("max", None, False, False))

for x, axis, keep, last in ((r(2, 5), 1, True, False), (r(2, 5), -1, False, False), (r(3, 2, 2), 0, True, False), (a([1.0, 3.0, 3.0]), 0, False, False),
                            (a([1.0, 3.0, 3.0]), 0, False, True), (a([[5, 9, 9]], np.int32), 1, True, False), (r(0, 3), 1, True, False)):
    expected = onnx_run("ArgMax", [x], axis=axis, keepdims=int(keep), select_last_index=int(last)) if x.size else np.zeros((0, 1), np.int64)
    case("argmax", [x], [expected], attrs=f"axis = {axis} : i64, keepdims = {str(keep).lower()}, selectLastIndex = {str(last).lower()}")
case("argmax", [r(3, 0)], [np.zeros((3, 1), np.int64)], attrs="axis = 1 : i64, keepdims = true, selectLastIndex = false", error="largest of no elements")


def softmax(x, axis, logarithm):
    wide = x.astype(F64)
    with np.errstate(all="ignore"):
        shifted = wide - wide.max(axis=axis, keepdims=True) if x.size else wide
        total = np.exp(shifted).sum(axis=axis, keepdims=True)
        return (shifted - np.log(total) if logarithm else np.exp(shifted) / total).astype(x.dtype)


for logarithm in (False, True):
    for x, axis in ((r(2, 5), 1), (r(2, 5), 0), (r(2, 3, 4), -2), (r(7, scale=50), 0), (r(3, 0), 1), (r(2, 4, dtype=F16), 1), (r(2, 4, dtype=BF16), -1), (r(2, 4, dtype=F64), 1),
                    (a([[1.0, -inf], [-inf, -inf], [nan, 0.0], [inf, 0.0], [-3.4e38, 3.4e38]]), 1), (r(1), 0)):
        case("softmax", [x], [softmax(x, axis, logarithm)], attrs=f"axis = {axis} : i64" + (", logarithm" if logarithm else ""), ulps=4 if x.dtype == F64 else 1)


def layer_norm(x, axis, epsilon, scale, bias, rms):
    wide = x.astype(F64)
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = 0 if rms else wide.mean(axis=axes, keepdims=True)
    result = (wide - mean) / np.sqrt(((wide - mean) ** 2).mean(axis=axes, keepdims=True) + float(F32(epsilon)))
    result = result * (1 if scale is None else scale.astype(F64)) + (0 if bias is None else bias.astype(F64))
    return result.astype(x.dtype)


for x, axis, scale, bias, rms, epsilon in ((r(2, 8), 1, r(8), r(8), False, 1e-5), (r(2, 8), -1, r(8), None, False, 1e-5), (r(2, 3, 4), 1, r(3, 4), r(3, 4), False, 1e-12), (r(3, 8), 1, None, None, False, 1e-5),
                                           (r(2, 8), -1, r(8), None, True, 1e-6), (r(2, 8, dtype=F16, scale=900), 1, r(8, dtype=F16), r(8, dtype=F16), False, 1e-5), (r(0, 4), 1, r(4), r(4), False, 1e-5),
                                           (np.full((1, 4), 3.0, F32), 1, r(4), r(4), False, 1e-8), (r(2, 8, dtype=BF16), 1, r(8, dtype=BF16), None, True, 1e-5)):
    case("layer_norm", [x, scale, bias], [layer_norm(x, axis, epsilon, scale, bias, rms)], attrs=f"axis = {axis} : i64, epsilon = {float(F32(epsilon)):.9e} : f32" + (", rms" if rms else ""), segments=True, ulps=1)

for x, axis, exclusive, reverse in ((r(5), 0, False, False), (r(2, 3), 1, True, False), (r(2, 3), 0, False, True), (r(2, 3, 2), -1, True, True), (a([1, 2, 2**31 - 1], np.int32), 0, False, False), (r(0, 2), 0, False, False), (a([100, 100, 100], np.int64), 0, True, False)):
    wide = x.astype(F64) if x.dtype == F32 else x
    expected = onnx_run("CumSum", [wide, np.array(axis, np.int64)], exclusive=int(exclusive), reverse=int(reverse)) if x.size else x
    case("cumsum", [x], [expected.astype(x.dtype)], attrs=f"axis = {axis} : i64, exclusive = {str(exclusive).lower()}, reverse = {str(reverse).lower()}")
x = r(2, 3)
case("cumsum", [x, a(1, np.int32)], [np.cumsum(x.astype(F64), axis=1).astype(F32)], attrs="exclusive = false, reverse = false")

# --- Movement -----------------------------------------------------------------------------------------------------------
for x, shape, zero in ((r(2, 6), [3, 4], False), (r(2, 3, 4), [0, -1], False), (r(2, 3, 4), [-1, 0, 2], False), (r(0, 3), [3, 0], True), (r(1), [], False), (a([[True, False]], bool), [2, 1], False), (r(0, 4), [0, 2, 2], False)):
    expected = onnx_run("Reshape", [x, np.array(shape, np.int64)], allowzero=int(zero))
    case("reshape", [x, np.array(shape, np.int64)], [expected], attrs=f"allowZero = {str(zero).lower()}")
case("reshape", [r(2, 3)], [r(4)], attrs="allowZero = false", error="cannot view [2, 3] as [4]")
case("reshape", [r(2, 3), a([4, -1], np.int64)], [r(4, 1)], attrs="allowZero = false", error="cannot reshape [2, 3] to [4, -1]")
case("reshape", [r(2, 3), a([0, 0, 0], np.int64)], [r(2, 3, 1)], attrs="allowZero = false", error="copies the size of axis 2")
case("reshape", [r(2, 3), a([2**40, 2**40, -1], np.int64)], [r(2, 3, 1)], attrs="allowZero = false", error="too many elements")
x = r(2, 3)
case("reshape", [x], [x.reshape(3, 2)], attrs="allowZero = false")
for x, axes, shape in ((r(1, 2, 1), [0], (2, 1)), (r(1, 2, 1), [-1], (1, 2)), (r(1, 1), [0, 1], ()), (r(2, 1, 3), [1], (2, 3)), (r(0, 1), [1], (0,)), (a([[4]], np.int64), [0], (1,))):
    case("squeeze", [x, np.array(axes, np.int64)], [x.reshape(shape)])
    case("unsqueeze", [x.reshape(shape), np.array(axes, np.int64)], [x])
case("squeeze", [r(1, 2)], [r(1)], attrs="axes = array<i64: 0>", error="cannot view [1, 2] as [1]")
for x, permutation in ((r(2, 3), [1, 0]), (r(2, 3, 4), [2, 0, 1]), (r(2, 3, 4, 5), [0, 2, 1, 3]), (r(), []), (r(0, 3), [1, 0]), (a([[1, 2], [3, 4]], np.int8), [1, 0]), (a([[True, False]], bool), [1, 0])):
    case("transpose", [x], [x.transpose(permutation).copy()], attrs=f"permutation = array<i64{': ' if permutation else ''}{', '.join(map(str, permutation))}>")
case("transpose", [r(2, 3)], [r(3, 2)], attrs="permutation = array<i64: 1, 1>", error="is no permutation of 2 axes")
for x, shape in ((r(3, 1), (3, 4)), (r(1), (2, 3)), (r(), (2,)), (r(2, 1, 3), (2, 2, 3)), (r(1, 3), (0, 3)), (a([7], np.int64), (3,))):
    case("broadcast", [x], [np.broadcast_to(x, shape).copy()])
x = r(3, 1)
case("broadcast", [x, a([1, 4], np.int64)], [np.broadcast_to(x, (3, 4)).copy()])
case("broadcast", [r(2)], [r(3)], error="cannot broadcast shape [2] to [3]")
for x, repeats in ((r(2, 3), [2, 1]), (r(2, 3), [1, 3]), (r(2), [0]), (r(1, 2, 2), [2, 2, 2]), (r(), []), (a([1, 2], np.int32), [3]), (r(0, 2), [2, 2])):
    case("tile", [x, np.array(repeats, np.int64)], [np.tile(x, repeats) if repeats else x])
case("tile", [r(2), a([1, 1], np.int64)], [r(2)], error="has 2 repeats for 1 axes")

BIG, SMALL = 2**63 - 1, -2**63
x = r(5, 4)
for starts, ends, axes, steps in (([1], [4], None, None), ([0, 1], [5, 3], None, None), ([-2], [BIG], [1], None), ([4], [SMALL], [0], [-1]), ([5], [0], [0], [-1]), ([-1, 0], [BIG, BIG], [-2, -1], [1, 2]), ([3], [1], [0], [1]), ([100], [200], [0], None), ([0], [BIG], [0], [BIG]), ([-1], [SMALL], [1], [-3])):
    inputs = [x, np.array(starts, np.int64), np.array(ends, np.int64), None if axes is None else np.array(axes, np.int64), None if steps is None else np.array(steps, np.int64)]
    case("slice", inputs, [onnx_run("Slice", inputs)], segments=True)
case("slice", [x, a([0], np.int64), a([1], np.int64), a([0], np.int64), a([0], np.int64)], [x], segments=True, error="has step 0")
case("slice", [x, a([0, 0], np.int64), a([1, 1], np.int64), a([0, 0], np.int64), None], [x], segments=True, error="names axis 0 twice")
case("slice", [x, a([0], np.int64), a([1], np.int64), a([5], np.int64), None], [x], segments=True, error="names axis 5 of a tensor with 2 axes")
case("slice", [x, None, None, None, None], [x[1:3, ::-1].copy()], segments=True, attrs="starts = [#transept.dim<1>, #transept.dim<3>], steps = array<i64: 1, -1>")
case("slice", [x, None, None, None, None], [x[1:3].copy()], segments=True, attrs="starts = [#transept.dim<4>, #transept.dim<0>], steps = array<i64: 1, 1>", error="reads elements 4 to 5 of axis 0 of size 5")
for arrays, axis in (([r(2, 3), r(2, 2)], 1), ([r(2, 3), r(1, 3), r(0, 3)], 0), ([r(2)], 0), ([r(2, 2, 1), r(2, 2, 4)], -1), ([a([], np.int64), a([1, 2], np.int64)], 0), ([a([[True]], bool), a([[False]], bool)], 1)):
    case("concat", arrays, [np.concatenate(arrays, axis)], attrs=f"axis = {axis} : i64")
case("concat", [r(2, 3), r(3, 2)], [r(5, 3)], attrs="axis = 0 : i64", error="cannot join [2, 3] and [3, 2]")
for x, pads, mode, fill in ((r(2, 3), [0, 1, 0, 2], "constant", a(9.0)), (r(2, 3), [1, 0, 1, 0], "constant", None), (r(4), [2, 2], "edge", None), (r(3, 4), [1, 2, 2, 1], "reflect", None),
                            (r(4), [2, 1], "wrap", None), (r(5), [-1, -2], "constant", None), (r(2, 4), [1, -1, 0, 2], "constant", a(-1.0)), (a([1, 2], np.int64), [1, 1], "constant", a(7, np.int64))):
    inputs = [x, np.array(pads, np.int64), fill]
    expected = onnx_run("Pad", inputs, opset=19, mode=mode)
    case("pad", [x, np.array(pads, np.int64), fill, None], [expected], attrs=f"mode = #transept<pad_mode {mode}>", segments=True)
x = r(2, 3)
case("pad", [x, a([1, 1], np.int64), a(0.5), a([-1], np.int64)], [np.pad(x, ((0, 0), (1, 1)), constant_values=0.5)], attrs="mode = #transept<pad_mode constant>", segments=True)
case("pad", [x, None, None, None], [np.pad(x, ((2, 0), (0, 1)))], attrs="mode = #transept<pad_mode constant>, low = [#transept.dim<2>, #transept.dim<0>]", segments=True)
case("pad", [np.zeros((0,), F32), a([1, 1], np.int64), None, None], [r(2)], attrs="mode = #transept<pad_mode edge>", segments=True, error="which has none")
case("pad", [r(2), a([-2, -2], np.int64), None, None], [r(0)], attrs="mode = #transept<pad_mode constant>", segments=True, error="pads axis 0 of size 2 by -2 and -2")

for x, i, axis in ((r(5, 3), a([0, 4, -1], np.int64), 0), (r(5, 3), a([[0, 2], [1, 1]], np.int32), 1), (r(5), a(2, np.int64), 0), (r(2, 3, 4), a([1], np.int64), -2), (r(5, 2), np.zeros((0,), np.int64), 0), (a([True, False], bool), a([1, 1, 0], np.int64), 0)):
    case("gather", [x, i], [np.take(x, i, axis)], attrs=f"axis = {axis} : i64")
case("gather", [r(5), a([1, 5], np.int64)], [r(2)], attrs="axis = 0 : i64", error="has index 5 out of range for size 5 (element 1")
case("gather", [r(5), a([-6], np.int32)], [r(1)], attrs="axis = 0 : i64", error="has index -6 out of range for size 5")
case("gather", [r(0, 2), a([0], np.int64)], [r(1, 2)], attrs="axis = 0 : i64", error="has index 0 out of range for size 0")
for x, i, axis in ((r(3, 4), a([[0, 3], [1, -1]], np.int64), 1), (r(3, 4), a([[2, 0, 1, 1]], np.int64), 0), (r(4), a([3, 3], np.int32), 0), (r(2, 2, 2), a([[[0], [1]], [[1], [0]]], np.int64), 2), (r(2, 2), np.zeros((0, 2), np.int64), 0), (r(1, 5), a([[4]], np.int64), -1)):
    case("gather_elements", [x, i], [onnx_run("GatherElements", [x, i], axis=axis)], attrs=f"axis = {axis} : i64")
case("gather_elements", [r(2, 2), a([[0, 2]], np.int64)], [r(1, 2)], attrs="axis = 1 : i64", error="has index 2 out of range for size 2")
for x, i, batch in ((r(2, 3), a([[0, 1], [1, 2]], np.int64), 0), (r(2, 3), a([[1], [0]], np.int64), 0), (r(2, 2, 3), a([[[0, 1]], [[1, 0]]], np.int64), 0), (r(2, 3, 2), a([[1], [0]], np.int64), 1), (r(2, 3), a([[-1, -1]], np.int64), 0), (r(3, 2), np.zeros((0, 1), np.int64), 0)):
    expected = onnx_run("GatherND", [x, i], batch_dims=batch) if i.size else np.zeros((0, 2), F32)
    case("gather_nd", [x, i], [expected], attrs=f"batchDims = {batch} : i64")
case("gather_nd", [r(2, 3), a([[0, 3]], np.int64)], [r(1)], attrs="batchDims = 0 : i64", error="has index 3 out of range for size 3 (element 1")
for x, i, u, kind in ((r(4), a([[1], [3]], np.int64), r(2), "replace"), (r(3, 2), a([[0], [2]], np.int64), r(2, 2), "replace"), (r(3, 2), a([[0, 1], [2, 0]], np.int64), r(2), "add"), (r(4), a([[1], [1]], np.int64), r(2), "add"),
                      (r(4), a([[1], [-1]], np.int64), r(2), "mul"), (a([1, 5, 3], np.int64), a([[0], [1]], np.int64), a([4, 2], np.int64), "max"), (r(4), a([[0]], np.int64), r(1), "min"), (r(2), np.zeros((0, 1), np.int64), r(0), "replace")):
    expected = onnx_run("ScatterND", [x, i, u], reduction="none" if kind == "replace" else kind) if i.size else x
    case("scatter_nd", [x, i, u], [expected], attrs=f"reduction = #transept<scatter {kind}>", ulps=0 if kind != "add" else 1)
case("scatter_nd", [r(4), a([[4]], np.int64), r(1)], [r(4)], attrs="reduction = #transept<scatter replace>", error="has index 4 out of range for size 4")
case("scatter_nd", [r(4), a([[1]], np.int64), r(2)], [r(4)], attrs="reduction = #transept<scatter replace>", error="has updates of shape [2] where [1] is needed")
for x, k, upper in ((r(3, 3), None, True), (r(3, 3), None, False), (r(2, 3, 4), 1, True), (r(3, 4), -1, False), (np.ones((3, 3), bool), 0, False), (r(2, 2), BIG, True), (r(2, 3), SMALL, False), (r(0, 2), 0, True), (a([[1, 2], [3, 4]], np.int64), 0, True)):
    clamped = 0 if k is None else max(min(k, 100), -100)
    expected = np.triu(x, clamped) if upper else np.tril(x, clamped)
    inputs = [x] if k is None else [x, np.array(k, np.int64)]
    case("trilu", inputs, [expected], attrs=f"upper = {str(upper).lower()}")

# --- Shapes ---------------------------------------------------------------------------------------------------------------
x = r(2, 3, 4)
for start, end, expected in ((None, None, [2, 3, 4]), (1, None, [3, 4]), (-1, None, [4]), (0, -1, [2, 3]), (2, 1, []), (-9, 9, [2, 3, 4])):
    attrs = ", ".join(([f"start = {start} : i64"] if start is not None else []) + ([f"end = {end} : i64"] if end is not None else []))
    case("shape", [x], [a(expected, np.int64)], attrs=attrs)
for x in (r(2, 3), r(), r(0, 3), r(1), r(2, 2, 2), a([1, 2], np.int8)):
    case("size", [x], [a(x.size, np.int64)])
case("dim_value", [], [a([3, 0], np.int64)], attrs="dims = [#transept.dim<3>, #transept.dim<0>]")
case("dim_value", [], [a(3, np.int32)], attrs="dims = [#transept.dim<3>]")
case("dim_value", [], [a(7.0)], attrs="dims = [#transept.dim<7>]")
case("dim_value", [], [a(7.0, F16)], attrs="dims = [#transept.dim<7>]")
case("dim_value", [], [a([], np.int64)], attrs="dims = []")
case("dim_value", [], [a([1], np.int64)], attrs="dims = [#transept.dim<batch>]", error="depends on a symbol without a value")
for start, limit, delta in ((a(0, np.int64), a(5, np.int64), a(1, np.int64)), (a(5, np.int64), a(0, np.int64), a(-2, np.int64)), (a(1.0), a(2.0), a(0.25)), (a(3, np.int32), a(3, np.int32), a(1, np.int32)), (a(0.0), a(1.0), a(0.3)), (a(10, np.int64), a(11, np.int64), a(5, np.int64))):
    case("range", [start, limit, delta], [onnx_run("Range", [start, limit, delta])], segments=True, ulps=1)
case("range", [None, None, None], [a([4, 6, 8], np.int64)], attrs="startDim = #transept.dim<4>, stepValue = 2 : i64", segments=True)
for value, shape in ((a([0.5]), (2, 3)), (a([7], np.int64), ()), (a([True], bool), (2,)), (a([nan]), (1,)), (a([0], np.int32), (0, 2)), (a([1.5], F16), (2, 1))):
    mlir_value = {"float32": lambda v: f"dense<{float(v[0])}>" if not math.isnan(float(v[0])) else "dense<0x7FC00000>", "float16": lambda v: f"dense<{float(v[0])}>", "bool": lambda v: "dense<true>"}.get(value.dtype.name, lambda v: f"dense<{int(v[0])}>")(value)
    case("fill", [], [np.full(shape, value[0], value.dtype)], attrs=f"value = {mlir_value} : {type_of(value)}")

# --- Attention ------------------------------------------------------------------------------------------------------------

def attention(q, k, v, key_mask=None, bias=None, mask=None, scale=1.0, causal=None, softcap=0.0, empty="zero"):
    """[B, T, H, D] layouts, straight from the definition, in double precision."""
    B, T, H, D = q.shape
    S, K = k.shape[1:3]
    scores = np.einsum("bihd,bjhd->bhij", q.astype(F64), np.repeat(k.astype(F64), H // K, axis=2)) * float(F32(scale))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    visible = np.ones((B, H, T, S), bool)
    if causal is not None:
        visible &= (np.arange(S)[None, :] <= np.arange(T)[:, None] + causal)[None, None]
    if key_mask is not None:
        visible &= (key_mask != 0)[:, None, None, :]
    if mask is not None:
        visible &= np.broadcast_to(mask, visible.shape)
    if bias is not None:
        scores = scores + bias.astype(F64)
        visible &= np.broadcast_to(bias.astype(F64) > -1e4, visible.shape)
    weights = np.zeros((B, H, T, S))
    for index in np.ndindex(B, H, T):
        seen = visible[index]
        if not seen.any():
            weights[index] = {"zero": 0.0, "uniform": 1 / S if S else 0, "nan": nan}[empty]
            continue
        row = np.exp(scores[index][seen] - scores[index][seen].max())
        weights[index][seen] = row / row.sum()
    result = np.einsum("bhij,bjhd->bihd", weights, np.repeat(v.astype(F64), H // K, axis=2))
    return result.astype(q.dtype), weights.astype(q.dtype)


def attention_case(q, k, v, probabilities=False, **options):
    result, weights = attention(q, k, v, **options)
    attrs = f"scale = {float(F32(options.get('scale', 1.0))):.9e} : f32, emptyRow = #transept<empty_row {options.get('empty', 'zero')}>, softcap = {options.get('softcap', 0.0):.6e} : f32"
    if options.get("causal") is not None:
        attrs += f", causal, causalOffset = #transept.dim<{options['causal']}>"
    case("attention", [q, k, v, options.get("key_mask"), options.get("bias"), options.get("mask")], [result, weights] if probabilities else [result], attrs=attrs, segments=True, ulps=1, absolute=1e-14)


def qkv(B, T, S, H, K, D, V, dtype=F32):
    return r(B, T, H, D, dtype=dtype), r(B, S, K, D, dtype=dtype), r(B, S, K, V, dtype=dtype)


attention_case(*qkv(1, 3, 3, 2, 2, 4, 4), scale=0.5)
attention_case(*qkv(2, 3, 5, 2, 2, 4, 3), scale=0.5, causal=2, probabilities=True)
attention_case(*qkv(1, 4, 4, 4, 2, 4, 4), scale=0.5, causal=0)
attention_case(*qkv(2, 2, 3, 1, 1, 4, 4), key_mask=a([[1, 1, 0], [1, 0, 0]], np.int64), probabilities=True)
attention_case(*qkv(2, 2, 3, 1, 1, 4, 4), key_mask=a([[True, True, False], [False, False, False]], bool), empty="uniform")
attention_case(*qkv(2, 2, 3, 1, 1, 4, 4), key_mask=a([[1, 1, 0], [0, 0, 0]]), empty="nan")
attention_case(*qkv(2, 2, 3, 1, 1, 4, 4), key_mask=a([[1, 1, 0], [0, 0, 0]]), empty="zero", probabilities=True)
attention_case(*qkv(1, 2, 3, 2, 2, 4, 4), bias=r(1, 2, 2, 3), scale=0.5)
attention_case(*qkv(1, 2, 3, 2, 2, 4, 4), bias=a([[[[0.0, -1e9, -inf], [0.0, 0.0, -1e4]]]]), scale=0.5, probabilities=True)
attention_case(*qkv(1, 2, 3, 2, 2, 4, 4), mask=a([[True, False, True], [False, False, False]], bool), scale=0.5)
attention_case(*qkv(1, 2, 3, 3, 1, 4, 4), softcap=2.0, bias=r(3, 1, 3), scale=0.5)
attention_case(*qkv(1, 2, 0, 1, 1, 4, 4), empty="nan")
attention_case(*qkv(0, 2, 3, 1, 1, 4, 4))
attention_case(*qkv(1, 2, 4, 2, 2, 4, 4, dtype=F16), scale=0.5, causal=1)
case("attention", [*qkv(1, 2, 3, 3, 2, 4, 4), None, None, None], [r(1, 2, 3, 4)], attrs="scale = 1.0 : f32, emptyRow = #transept<empty_row zero>", segments=True, error="cannot attend from [1, 2, 3, 4]")

# --- Sorting, scattering, windows, recurrences ----------------------------------------------------------------------------
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


for x, k, axis, largest in ((r(5), 3, 0, True), (r(3, 4), 2, 1, False), (r(4, 3, 2), 4, 0, True), (a([2, 1, 2, 1, 2], np.int64), 4, -1, True),
                            (a([2, 1, 2, 1, 2], np.int32), 5, 0, False), (r(2, 0), 0, 1, True), (r(3, 33), 33, 1, True)):
    expected = onnx_all("TopK", [x, a([k], np.int64)], 2, axis=axis, largest=int(largest))
    case("top_k", [x, a([k], np.int64)], expected, attrs=f"axis = {axis} : i64, largest = {str(largest).lower()}")
case("top_k", [a([1, nan, 3, nan])], [a([nan, nan, 3]), a([1, 3, 2], np.int64)], attrs="axis = 0 : i64, largest = true, k = #transept.dim<3>")
case("top_k", [a([200, 3], np.uint8)], [a([3], np.uint8), a([1], np.int64)], attrs="axis = 0 : i64, largest = false, k = #transept.dim<1>")
case("top_k", [r(3)], [r(4), np.zeros(4, np.int64)], attrs="axis = 0 : i64, largest = true, k = #transept.dim<4>", error="picks [4] of [3]")
for x, i, u, axis, kind in ((r(3, 3), a([[1, 0, 2], [0, 2, 1]], np.int64), r(2, 3), 0, "replace"), (r(1, 5), a([[1, 3]], np.int64), r(1, 2), 1, "replace"),
                            (r(1, 5), a([[1, -1]], np.int64), r(1, 2), 1, "replace"), (r(1, 5), a([[1, 1]], np.int32), r(1, 2), -1, "add"),
                            (r(2, 4), a([[0, 0, 3]], np.int64), r(1, 3), 1, "mul"), (a([[1, 5], [7, 2]], np.int64), a([[1, 0]], np.int64), a([[9, -3]], np.int64), 0, "max"),
                            (r(4), a([2, 2, 2], np.int64), r(3), 0, "min")):
    expected = onnx_all("ScatterElements", [x, i, u], 1, axis=axis, reduction="none" if kind == "replace" else kind)
    case("scatter_elements", [x, i, u], expected, attrs=f"axis = {axis} : i64, reduction = #transept<scatter {kind}>", ulps=1)
case("scatter_elements", [r(4), a([4], np.int64), r(1)], [r(4)], attrs="axis = 0 : i64, reduction = #transept<scatter replace>", error="has index 4 out of range for size 4")
case("scatter_elements", [r(4), a([1], np.int64), r(2)], [r(4)], attrs="axis = 0 : i64, reduction = #transept<scatter replace>", error="places [2] at [1] in [4]")
for x, kernel, strides, dilations in ((r(6), [3], [1], [1]), (r(2, 7), [2], [2], [3]), (r(1, 2, 5, 6), [2, 3], [1, 2], [2, 1]), (r(3, 4), [3, 4], [1, 1], [1, 1]),
                                      (r(2, 3, 4), [1], [3], [1]), (a([1, 2, 3, 4], np.int64), [2], [2], [1])):
    leading, spatial = x.shape[:x.ndim - len(kernel)], x.shape[x.ndim - len(kernel):]
    counts = [(s - (k - 1) * d - 1) // t + 1 for s, k, t, d in zip(spatial, kernel, strides, dilations)]
    expected = np.zeros((*leading, *counts, *kernel), x.dtype)
    for at in np.ndindex(*counts, *kernel):
        place = tuple(o * t + j * d for o, t, j, d in zip(at, strides, at[len(kernel):], dilations))
        expected[(..., *at)] = x[(..., *place)]
    text = lambda values: "array<i64: " + ", ".join(map(str, values)) + ">"
    case("windows", [x], [expected], attrs=f"kernel = {text(kernel)}, strides = {text(strides)}, dilations = {text(dilations)}")
case("windows", [r(2)], [r(0, 3)], attrs="kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>", error="takes windows of 3 elements of an axis of 2")
for x in (r(2, 2), r(3, 3), r(2, 4, 4), r(2, 3, 1, 1), np.zeros((2, 2), F32), a([[0, 1], [1, 0]], F64), r(0, 2, 2), a([[0, 2, 1], [3, 0, 0], [0, 0, 5]])):
    case("det", [x], [np.asarray(np.linalg.det(x.astype(F64))).astype(x.dtype)], ulps=1, absolute=1e-13)
for reverse, product, exclusive in ((False, True, False), (True, True, True)):
    x = r(2, 4)
    flipped = x[:, ::-1] if reverse else x
    expected = np.cumprod(flipped.astype(F64), 1)
    if exclusive:
        expected = np.concatenate([np.ones((2, 1)), expected[:, :-1]], 1)
    expected = (expected[:, ::-1] if reverse else expected).astype(F32)
    case("cumsum", [x, a(1, np.int64)], [expected], attrs=f"exclusive = {str(exclusive).lower()}, reverse = {str(reverse).lower()}, product", ulps=1)


def recurrent(kind, T, B, H, lengths=None, states=False, peephole=False, hidden_bias=False, reverse=False, activations=None, alpha=None, beta=None, clip=0.0, coupled=False):
    """ONNX's operator with an identity as the weight of its input."""
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    functions = max(gates - 1, 1)
    x, weight = r(T, B, gates * H), r(H, gates * H, scale=0.5)
    h, c = (r(B, H), r(B, H) if kind == "lstm" else None) if states else (None, None)
    p = r(3 * H) if peephole else None
    b = r(H) if hidden_bias else None
    bias = None
    if hidden_bias:
        bias = np.zeros((1, 6 * H), F32)
        bias[0, 5 * H:] = b
    attrs = {"hidden_size": H, "direction": "reverse" if reverse else "forward"}
    if clip:
        attrs["clip"] = clip
    if coupled:
        attrs["input_forget"] = 1
    if hidden_bias:
        attrs["linear_before_reset"] = 1
    if activations:
        attrs["activations"] = activations
        if alpha:
            attrs["activation_alpha"] = [v for v in alpha if v is not None]
        if beta:
            attrs["activation_beta"] = [v for v in beta if v is not None]
    inputs = [x, np.eye(gates * H, dtype=F32)[None], weight.T[None].copy(), bias, None if lengths is None else a(lengths, np.int32), None if h is None else h[None]]
    if kind == "lstm":
        inputs += [None if c is None else c[None], None if p is None else p[None]]
    results = onnx_all(kind.upper(), inputs, 3 if kind == "lstm" else 2, opset=14, **attrs)
    expected = [results[0][:, 0]] + [y[0] for y in results[1:]]
    names = activations or {"rnn": ["Tanh"], "gru": ["Sigmoid", "Tanh"], "lstm": ["Sigmoid", "Tanh", "Tanh"]}[kind]
    numbers = lambda given: "array<f32: " + ", ".join(f"{float(F32(v or 0)):.9e}" for v in (given or [0] * functions)) + ">"
    text = ", ".join(f'"{name}"' for name in names)
    options = "".join(f", {name}" for name, on in (("reverse", reverse), ("linearBeforeReset", hidden_bias), ("coupled", coupled)) if on)
    case("recurrent", [x, weight, None if lengths is None else a(lengths, np.int32), h, c, p, b], expected, segments=True, absolute=2e-6,
         attrs=f"kind = #transept<cell {kind}>, activations = [{text}], alpha = {numbers(alpha)}, beta = {numbers(beta)}, clip = {clip:e} : f32{options}")


for kind in ("rnn", "gru", "lstm"):
    recurrent(kind, 3, 2, 4)
    recurrent(kind, 4, 3, 2, lengths=[4, 1, 2], states=True, reverse=True)
    recurrent(kind, 4, 3, 2, lengths=[3, 0, 2])
recurrent("gru", 3, 2, 3, hidden_bias=True, states=True)
recurrent("lstm", 3, 2, 3, peephole=True, states=True, clip=0.5)
recurrent("lstm", 3, 2, 3, coupled=True)
recurrent("lstm", 2, 1, 3, activations=["HardSigmoid", "ScaledTanh", "Softsign"], alpha=[0.3, 1.5, None], beta=[0.4, 0.75, None])
recurrent("gru", 2, 1, 3, activations=["Affine", "Softplus"], alpha=[0.5, None], beta=[0.25, None])
for name, alpha in (("Relu", None), ("LeakyRelu", 0.1), ("ThresholdedRelu", 0.5), ("Elu", 0.7)):
    recurrent("rnn", 2, 2, 3, activations=[name], alpha=[alpha] if alpha else None)

# --- Functions of one float: inverse and hyperbolic ones ------------------------------------------------------------------
def within(low, high):
    return lambda x: low <= x <= high


unary = {
    "tan": guarded(mp.tan, nan, nan, zero=0.0), "asin": guarded(mp.asin, nan, nan, within(-1, 1), 0.0),
    "acos": guarded(mp.acos, nan, nan, within(-1, 1)), "atan": guarded(mp.atan, math.pi / 2, -math.pi / 2, zero=0.0),
    "sinh": guarded(mp.sinh, inf, -inf, zero=0.0), "cosh": guarded(mp.cosh, inf, inf),
    "asinh": guarded(mp.asinh, inf, -inf, zero=0.0), "acosh": guarded(mp.acosh, inf, nan, within(1, inf)),
    "atanh": guarded(lambda x: mp.atanh(x) if abs(x) < 1 else mp.sign(x) * mp.inf, nan, nan, within(-1, 1), 0.0),
    "log1p": guarded(lambda x: mp.log1p(x) if x > -1 else -mp.inf, inf, nan, within(-1, inf), 0.0),
}
for op, function in unary.items():
    for dtype in (F32, F64, F16, BF16):
        with np.errstate(all="ignore"):
            x = np.concatenate([np.array(SPECIAL, dtype=F64).astype(dtype), r(7, dtype=dtype)]).reshape(3, -1)
            case(op, [x], [rounded(function, x)], ulps=4 if dtype == F64 else 0)
    for x in (r(dtype=F32), r(0, 3)):
        case(op, [x], [rounded(function, x)])
    case(op, [a([1, 2], np.int32)], [a([1, 2], np.int32)], error="not defined for elements of type 'i32'")

# --- Bits -------------------------------------------------------------------------------------------------------------------
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
for dtype in INTEGERS:
    info = np.iinfo(dtype)
    x, y = a([info.max, info.min, 1, 85, 0], dtype), a([1, info.max, 3, 51, 77], dtype)
    case("bitwise_not", [x], [np.bitwise_not(x)])
    case("bitwise_and", [x[:, None], y], [np.bitwise_and(x[:, None], y)])
    case("bitwise_or", [x, y], [np.bitwise_or(x, y)])
    case("bitwise_xor", [x, y[:1]], [np.bitwise_xor(x, y[:1])])
    if info.min == 0:
        bits = info.bits
        y = a([0, 1, bits - 1, bits, 200], dtype)
        ints = [int(v) for v in x]
        left = a([v << int(n) & info.max for v, n in zip(ints, y)], dtype)
        right = a([v >> int(n) for v, n in zip(ints, y)], dtype)
        case("bit_shift", [x, y], [left])
        case("bit_shift", [x, y], [right], attrs="right")
for x, dtype in ((r(2, 3), np.int32), (a([nan, -0.0, inf, 1.5], F64), np.int64), (a([1, -1], np.int32), F32),
                 (a([1.5, -2], F16), np.uint16), (a([-1, 7], np.int8), np.uint8), (a([0, 1], bool), np.uint8),
                 (a([0x3f80], np.uint16), BF16)):
    case("bit_cast", [x], [x.view(dtype)], attrs=f"to = {NAMES[np.dtype(dtype).name]}")

# --- Elements below a byte, and 8-bit floats ------------------------------------------------------------------------------
NARROW = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz,
          ml_dtypes.float4_e2m1fn)
for dtype in NARROW:
    name, limit = NAMES[np.dtype(dtype).name], float(ml_dtypes.finfo(dtype).max)
    codes = np.arange(16 if "f4" in name else 256, dtype=np.uint8).view(dtype)
    case("cast", [codes], [codes.astype(F32)], attrs="to = f32")
    case("cast", [codes], [codes.astype(F16)], attrs="to = f16")
    finite = np.unique(codes.astype(F64)[np.isfinite(codes.astype(F64))])
    middle = ((finite[1:] + finite[:-1]) / 2).astype(F32)
    near = np.concatenate([middle, np.nextafter(middle, F32(inf)), np.nextafter(middle, F32(-inf)), r(20, scale=limit)])
    edge = a([limit * 1.01, limit * 1.2, 1e30, inf, -inf, nan, -0.0, 1e-30])
    x = np.concatenate([near, edge])
    clipped = np.where(np.isnan(x), x, np.clip(x, F32(-limit), F32(limit)))
    with np.errstate(all="ignore"):
        expected = clipped.astype(dtype)
        if "f4" in name:
            expected.view(np.uint8)[np.isnan(x)] = 8  # NaN becomes -0
        case("cast", [x], [expected], attrs=f"to = {name}")
        if "f4" not in name:
            case("cast", [x], [x.astype(dtype)], attrs=f"to = {name}, saturate = false")
case("cast", [a([2.5 + 2.0**-40, 2.5 - 2.0**-40], F64)], [a([3, 2], ml_dtypes.float4_e2m1fn)], attrs="to = !transept.f4e2m1")  # not over float
scales = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu)
case("cast", [scales], [scales.astype(F32)], attrs="to = f32")
x = a([0, 0.124, 0.25, 0.3, 0.375, 0.38, 1.1, 3.0, 1e38, 3.4e38, nan, inf])
for how, codes in (("up", [0, 124, 125, 126, 126, 126, 128, 129, 254, 254, 255, 254]),
                   ("down", [0, 123, 125, 125, 125, 125, 127, 128, 253, 254, 255, 254]),
                   ("nearest", [0, 124, 125, 125, 126, 126, 127, 129, 253, 254, 255, 254])):
    case("cast", [x], [a(codes, np.uint8).view(ml_dtypes.float8_e8m0fnu)], attrs=f'to = !transept.f8e8m0, round = "{how}"')
for dtype in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2):
    name = NAMES[np.dtype(dtype).name]
    x = np.arange(-17, 20)
    case("cast", [x.astype(F32)], [x.astype(dtype)], attrs=f"to = {name}")
    case("cast", [x.astype(np.int8)], [x.astype(dtype)], attrs=f"to = {name}")
    case("cast", [x.astype(dtype)], [x.astype(dtype).astype(np.int32)], attrs="to = i32")
    case("cast", [x.astype(dtype)], [x.astype(dtype).astype(F16)], attrs="to = f16")

# --- Smallest elements, running products -------------------------------------------------------------------------------------
for x in (r(2, 3, 4), a([[3, -1, -1], [2, 2, 7]], np.int32), a([[3, 0, 0], [2, 9, 2]], np.uint8)):
    for last in (0, 1):
        expected = onnx_run("ArgMin", [x], axis=1, keepdims=1, select_last_index=last)
        case("argmax", [x], [expected], attrs=f"axis = 1, keepdims = true, selectLastIndex = {str(bool(last)).lower()}, smallest")
x = a([[1.0, nan, -2.0, nan]])
for smallest in ("", ", smallest"):
    case("argmax", [x], [a([1], np.int64)], attrs=f"axis = 1, keepdims = false, selectLastIndex = false{smallest}")
    case("argmax", [x], [a([1], np.int64)], attrs=f"axis = 1, keepdims = false, selectLastIndex = true{smallest}")
for x in (r(2, 5, dtype=F64), a([[1, 2, 3], [4, 5, 6]], np.int32)):
    for axis in (0, 1):
        case("cumsum", [x], [np.cumprod(x, axis=axis, dtype=x.dtype)], attrs=f"axis = {axis}, exclusive = false, reverse = false, product", ulps=2)
    backwards = np.cumprod(x[:, ::-1], axis=1, dtype=x.dtype)[:, ::-1]
    shifted = np.concatenate([backwards[:, 1:], np.ones((2, 1), x.dtype)], axis=1)
    case("cumsum", [x], [shifted], attrs="axis = 1, exclusive = true, reverse = true, product", ulps=2)

# --- Elementary functions: nearest doubles --------------------------------------------------------------------------------
points = []


def point(name, x, *more):
    value = getattr(mp, {"pow": "power"}.get(name, name))(*(mpmath.mpf(v) for v in (x, *more)))
    points.append([name, float(x).hex(), float(more[0] if more else 0).hex(), float(value).hex()])


def uniform(low, high, count):
    return [random.uniform(low, high) for _ in range(count)]


for x in uniform(-700, 700, 30) + uniform(-1, 1, 30) + uniform(-1e-6, 1e-6, 5) + [709.78, -708.3, 0.0, -0.0]:
    point("exp", x)
for x in [10**e for e in uniform(-300, 300, 30)] + uniform(0.5, 2, 30) + [1 + e for e in uniform(-1e-8, 1e-8, 5)] + [5e-324, 1.7e308, 1.0]:
    point("log", x)
for name in ("sin", "cos"):
    for x in uniform(-10, 10, 30) + [10**e for e in uniform(1, 300, 20)] + [math.pi * n for n in (1, 2, 7, 100, 1e9)] + [math.pi * (n + 0.5) for n in (0, 1, 7, 100)] + [6381956970095103 * 2.0**797, 1e-9]:
        point(name, x)
for x in uniform(-3, 3, 30) + uniform(-25, 25, 20) + [10**e for e in uniform(-10, 0, 10)] + [0.0, -0.0]:
    point("tanh", x)
for x in uniform(-3, 3, 30) + uniform(-7, 7, 20) + [10**e for e in uniform(-10, 0, 10)] + [1.0, 3.0, 6.0]:
    point("erf", x)
for _ in range(30):
    point("pow", 10 ** random.uniform(-3, 3), random.uniform(-30, 30))
    point("pow", 10 ** random.uniform(-300, 300), random.uniform(-1, 1))
    point("pow", float(random.randint(2, 30)), float(random.randint(-6, 10)))
    point("pow", 1 + random.uniform(-1e-6, 1e-6), random.uniform(-1e6, 1e6))

# What numpy finds, one row per axis.
for x in [a([[1, 0, 2], [0, 0, 3]]), a([0, 0, 0]), a([[[True, False]], [[False, True]]], bool), a([nan, 0.0, -0.0, inf], F16),
          a([[0, -5]], np.int64), np.zeros((2, 0), F32)]:
    case("nonzero", [x], [np.stack(np.nonzero(x)).astype(np.int64)])

for x in uniform(-10, 10, 20) + [10**e for e in uniform(1, 300, 10)] + [1e-9, math.pi / 2]:
    point("tan", x)
for name in ("asin", "acos", "atanh"):
    for x in uniform(-1, 1, 30) + [10**e for e in uniform(-10, 0, 10)] + [0.0, 0.999999999, -0.999999999]:
        point(name, x)
for x in uniform(-3, 3, 30) + [10**e for e in uniform(-10, 20, 20)] + [0.0, 0.0625, 0.4375, 1.0]:
    point("atan", x)
    point("asinh", x)
for x in uniform(-3, 3, 30) + uniform(-705, 705, 10) + [10**e for e in uniform(-10, 0, 10)] + [0.0, 710.0]:
    point("sinh", x)
    point("cosh", x)
for x in uniform(1, 3, 30) + [1 + 10**e for e in uniform(-10, 20, 20)]:
    point("acosh", x)
for x in uniform(-0.999, 3, 30) + [10**e for e in uniform(-20, 300, 20)]:
    point("log1p", x)

lines = [json.dumps(c, separators=(",", ":")) for c in cases]
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "evaluateFixture.json.inc")
with open(path, "w") as out:
    out.write('// Written by make_evaluate_fixture.py.\nR"json({"cases": [\n')
    for start in range(0, len(lines), 40):  # a compiler may limit the length of a literal
        out.write(",\n".join(lines[start:start + 40]) + (",\n" if start + 40 < len(lines) else "\n"))
        out.write(')json"\nR"json(')
    out.write('], "points": [\n' + ",\n".join(json.dumps(p, separators=(",", ":")) for p in points) + ']})json"\n')
print(len(cases), "cases,", len(points), "points,", os.path.getsize(path), "bytes")
