"""Functions of one element, casts, and pairs that broadcast."""

from evaluate_cases.common import *

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
