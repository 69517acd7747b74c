#include "Compare.h"

#include "runtime/BindSymbols.h"

#include <algorithm>
#include <cmath>

namespace transept::tool {

namespace {

/// How far `got` is beyond the tolerance; 0 where it is not, infinite where no tolerance would do.
double excess(double got, double expected, const Tolerance &tolerance) {
  if (std::isnan(got) || std::isnan(expected))
    return std::isnan(got) == std::isnan(expected) ? 0 : HUGE_VAL;
  if (std::isinf(got) || std::isinf(expected))
    return got == expected ? 0 : HUGE_VAL;
  return std::max(0.0, std::fabs(got - expected) - tolerance.absolute - tolerance.relative * std::fabs(expected));
}

std::string indexText(int64_t flat, Span<const int64_t> dims) {
  std::vector<int64_t> index(dims.size());
  for (size_t axis = dims.size(); axis-- > 0; flat /= dims[axis])
    index[axis] = flat % dims[axis];
  return shapeText(index);
}

} // namespace

Status compare(Span<const TensorView> outputs, const Array &expected, const Tolerance &tolerance) {
  const TensorView *output = std::find_if(outputs.begin(), outputs.end(),
                                          [&](const TensorView &candidate) { return candidate.name == expected.name; });
  const std::string who = "output '" + printable(expected.name) + "'";
  if (output == outputs.end())
    return {Code::InvalidInput, who + " is expected but not computed"};
  // Files have no element types below a byte and no short floats: expected are then the bytes.
  const bool asBytes =
      output->dtype > program::BOOL && (expected.dtype == program::I8 || expected.dtype == program::U8);
  const DType dtype = asBytes ? output->dtype : expected.dtype;
  if (output->dtype != dtype)
    return {Code::Differs, who + " has type " + dtypeName(output->dtype) + ", expected " + dtypeName(expected.dtype)};
  if (!std::equal(output->dims.begin(), output->dims.end(), expected.dims.begin(), expected.dims.end()))
    return {Code::Differs, who + " has shape " + shapeText(output->dims) + ", expected " + shapeText(expected.dims)};
  const bool wide = expected.dtype == program::I64 || expected.dtype == program::U64;
  int64_t wrong = 0, worst = 0;
  double most = 0;
  for (int64_t i = 0; i < elementCount(expected); ++i) {
    double beyond = excess(elementAsDouble(output->dtype, output->data, i),
                           elementAsDouble(dtype, expected.data.data(), i), tolerance);
    // 64-bit integers that are equal as doubles may still differ.
    if (wide && beyond == 0 && tolerance.relative == 0 && tolerance.absolute == 0 &&
        elementText(output->dtype, output->data, i) != elementText(expected.dtype, expected.data.data(), i))
      beyond = 1;
    wrong += beyond > 0;
    if (beyond > most) {
      most = beyond;
      worst = i;
    }
  }
  if (wrong == 0)
    return {};
  return {Code::Differs, who + " differs in " + std::to_string(wrong) + " of " +
                             std::to_string(elementCount(expected)) + " elements, most at " +
                             indexText(worst, expected.dims) + ": got " +
                             elementText(output->dtype, output->data, worst) + ", expected " +
                             elementText(dtype, expected.data.data(), worst)};
}

} // namespace transept::tool
