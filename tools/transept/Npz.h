// NumPy's .npz archives: .npy members of a ZIP file, stored or deflated.
#ifndef TRANSEPT_TOOLS_NPZ_H
#define TRANSEPT_TOOLS_NPZ_H

#include "Array.h"

#include "runtime/Status.h"

#include <string>
#include <vector>

namespace transept::tool {

/// All arrays, in file order, named without ".npy". Checks sizes and CRCs; encrypted, split and doubled members are
/// refused. Messages name the member, not the path.
Result<std::vector<Array>> parseNpz(Span<const uint8_t> bytes);

/// The bytes of a regular file.
Result<std::vector<uint8_t>> readAll(const std::string &path);

/// Reads a .npz, a single .npy as an array named "", or a TensorProto from a file called *.pb.
Result<std::vector<Array>> readArrays(const std::string &path);

/// Writes stored members, atomically. Arrays of 4 GiB and more are refused. Same arrays, same bytes.
Status writeNpz(const std::string &path, Span<const TensorView> arrays);

} // namespace transept::tool

#endif
