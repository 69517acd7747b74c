//===- Symbolic.h - a node test's model with symbols for sizes ------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TESTS_CONFORMANCE_SYMBOLIC_H
#define TRANSEPT_TESTS_CONFORMANCE_SYMBOLIC_H

#include <filesystem>

namespace onnx {
class ModelProto;
}

namespace mlir::transept {

/// Replaces every size of the model's inputs by a symbol of its own, and forgets the declared shapes of all else. Sizes
/// stay on which the form of the graph depends: lengths of lists of sizes, amounts and axes, numbers of heads and the
/// like. `file` holds the model, `original` is the model that it was expanded from, or itself.
void makeSymbolic(onnx::ModelProto &model, const std::filesystem::path &file, const onnx::ModelProto &original);

} // namespace mlir::transept

#endif // TRANSEPT_TESTS_CONFORMANCE_SYMBOLIC_H
