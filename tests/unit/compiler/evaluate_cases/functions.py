"""Inverse and hyperbolic functions."""

from evaluate_cases.common import *

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
