// Values of an entry's symbols from what a call brings, and the check of what it brings.
#ifndef TRANSEPT_RUNTIME_BINDSYMBOLS_H
#define TRANSEPT_RUNTIME_BINDSYMBOLS_H

#include "runtime/Plan.h"
#include "runtime/Session.h"

#include <string>
#include <vector>

namespace transept {

/// "'encode', 'step'"
std::string entryNames(const program::Manifest &manifest);

/// "[2, 7]"
std::string shapeText(Span<const int64_t> dims);

/// Fills `values`, one per symbol of the entry: first from `fixed` (by name, values parallel to `fixedSymbols`), then
/// from the arguments' symbols, which win, then from input dimensions that are a symbol alone. Also refuses unknown,
/// repeated and missing inputs and wrong types and ranks. Allocates only for messages and to grow `values`.
Status bindSymbols(const program::Entry &entry, const google::protobuf::RepeatedPtrField<program::Symbol> &fixedSymbols,
                   Span<const int64_t> fixed, const RunArguments &arguments, std::vector<int64_t> &values);

/// Copies inputs, or their defaults, into the plan's buffers; refuses shapes other than the plan's.
Status copyInputs(const Plan &plan, const std::vector<ConstTensorView> &inputs);

} // namespace transept

#endif
