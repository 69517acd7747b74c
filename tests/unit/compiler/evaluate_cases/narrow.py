"""Bits, elements below a byte, and 8-bit floats."""

from evaluate_cases.common import *

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
