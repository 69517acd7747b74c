// A tensor written on the command line.
#ifndef TRANSEPT_TOOLS_PARSEVALUE_H
#define TRANSEPT_TOOLS_PARSEVALUE_H

#include "Array.h"

#include "runtime/Status.h"

namespace transept::tool {

/// `text` is a number, true, false or nested lists of them as in JSON. A single number fits any rank: it becomes a
/// tensor of `rank` ones. Integers must fit `dtype`.
Result<Array> parseValue(const std::string &name, const std::string &text, DType dtype, int rank);

} // namespace transept::tool

#endif
