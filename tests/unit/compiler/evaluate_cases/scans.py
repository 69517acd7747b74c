"""Places of the smallest elements, running products, places of what is not zero."""

from evaluate_cases.common import *

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

# What numpy finds, one row per axis.
for x in [a([[1, 0, 2], [0, 0, 3]]), a([0, 0, 0]), a([[[True, False]], [[False, True]]], bool), a([nan, 0.0, -0.0, inf], F16),
          a([[0, -5]], np.int64), np.zeros((2, 0), F32)]:
    case("nonzero", [x], [np.stack(np.nonzero(x)).astype(np.int64)])
