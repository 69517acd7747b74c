#include "runtime/DType.h"

namespace transept {

int64_t dtypeSize(DType type) {
  switch (type) {
  case program::I8:
  case program::U8:
  case program::BOOL:
  case program::F8E4M3FN:
  case program::F8E4M3FNUZ:
  case program::F8E5M2:
  case program::F8E5M2FNUZ:
  case program::F8E8M0:
  case program::F4E2M1:
  case program::I4:
  case program::U4:
  case program::I2:
  case program::U2:
    return 1;
  case program::F16:
  case program::BF16:
  case program::I16:
  case program::U16:
    return 2;
  case program::F32:
  case program::I32:
  case program::U32:
    return 4;
  case program::F64:
  case program::I64:
  case program::U64:
    return 8;
  default:
    return 0;
  }
}

const char *dtypeName(DType type) {
  switch (type) {
  case program::F32:
    return "f32";
  case program::F64:
    return "f64";
  case program::F16:
    return "f16";
  case program::BF16:
    return "bf16";
  case program::I8:
    return "i8";
  case program::I16:
    return "i16";
  case program::I32:
    return "i32";
  case program::I64:
    return "i64";
  case program::U8:
    return "u8";
  case program::U16:
    return "u16";
  case program::U32:
    return "u32";
  case program::U64:
    return "u64";
  case program::BOOL:
    return "bool";
  case program::F8E4M3FN:
    return "f8e4m3fn";
  case program::F8E4M3FNUZ:
    return "f8e4m3fnuz";
  case program::F8E5M2:
    return "f8e5m2";
  case program::F8E5M2FNUZ:
    return "f8e5m2fnuz";
  case program::F8E8M0:
    return "f8e8m0";
  case program::F4E2M1:
    return "f4e2m1";
  case program::I4:
    return "i4";
  case program::U4:
    return "u4";
  case program::I2:
    return "i2";
  case program::U2:
    return "u2";
  default:
    return "none";
  }
}

} // namespace transept
