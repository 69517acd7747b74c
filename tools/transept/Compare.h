// Compares computed tensors with expected ones.
#ifndef TRANSEPT_TOOLS_COMPARE_H
#define TRANSEPT_TOOLS_COMPARE_H

#include "Array.h"

#include "runtime/Status.h"

namespace transept::tool {

/// |got - expected| <= absolute + relative * |expected|; NaN only where NaN is expected, infinities equal.
struct Tolerance {
  double relative = 1e-4;
  double absolute = 1e-5;
};

/// Compares every element. Code::Differs names the output, how many differ and the worst with its index;
/// Code::InvalidInput where the output does not exist.
Status compare(Span<const TensorView> outputs, const Array &expected, const Tolerance &tolerance);

} // namespace transept::tool

#endif
