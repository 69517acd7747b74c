// ONNX's TensorProto, the content of .pb files beside models.
#ifndef TRANSEPT_TOOLS_TENSORPROTO_H
#define TRANSEPT_TOOLS_TENSORPROTO_H

#include "Array.h"

#include "runtime/Span.h"
#include "runtime/Status.h"

namespace transept::tool {

/// Takes raw and typed data. Strings, complex numbers, elements below a byte and external data are refused.
Result<Array> parseTensorProto(Span<const uint8_t> bytes);

/// The message with its data in raw form; an error for element types that ONNX packs.
Result<std::string> tensorProtoOf(const TensorView &array);

} // namespace transept::tool

#endif
