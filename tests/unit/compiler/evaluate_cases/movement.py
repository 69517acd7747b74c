"""Ops that move elements, and ops on shapes."""

from evaluate_cases.common import *

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
