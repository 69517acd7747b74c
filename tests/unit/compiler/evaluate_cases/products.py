"""Matrix products and convolutions."""

from evaluate_cases.common import *

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
