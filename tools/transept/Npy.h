// NumPy's .npy format, versions 1 to 3.
#ifndef TRANSEPT_TOOLS_NPY_H
#define TRANSEPT_TOOLS_NPY_H

#include "Array.h"

#include "runtime/Span.h"
#include "runtime/Status.h"

namespace transept::tool {

/// Takes any byte order and both memory orders; object and structured types are refused. A two-byte void ("|V2"), which
/// is how NumPy stores bfloat16 of ml_dtypes, is read as bf16. The array has no name.
Result<Array> parseNpy(Span<const uint8_t> bytes);

/// The bytes in front of the data.
std::string npyHeader(DType dtype, Span<const int64_t> dims);

} // namespace transept::tool

#endif
