"""Reductions, softmax and norms."""

from evaluate_cases.common import *

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
