// Files of one tensor: bare elements, and what a file's name says about its form.
#ifndef TRANSEPT_TOOLS_RAWFILE_H
#define TRANSEPT_TOOLS_RAWFILE_H

#include "Array.h"

#include "runtime/BindSymbols.h"
#include "runtime/Status.h"

#include <string>

namespace transept::tool {

/// *.raw and *.bin hold elements alone, row-major and little-endian.
bool isRawFile(const std::string &path);

/// Reads the elements of an input. Its shape is the entry's: symbols are those of `set`, and one that is not there
/// follows from the size of the file.
Result<Array> readRaw(const std::string &path, const program::Entry &entry, const program::Buffer &input,
                      const SymbolValues &set);

/// Writes the output of --output NAME=FILE, in the form that the name of the file says: .npy, .pb, .raw or .bin.
Status writeOutput(const std::string &word, Span<const TensorView> outputs);

} // namespace transept::tool

#endif
