"""Sorting, scattering, windows, determinants."""

from evaluate_cases.common import *

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
