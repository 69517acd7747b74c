//===- SearchNode.h - graphs that hold a whole generation ---------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX Runtime's converters put the graphs of a model into the attributes of one search operator (BeamSearch,
// GreedySearch, Sampling of com.microsoft), whose other attributes and inputs say how to search.

#ifndef TRANSEPT_FRONTEND_SEARCHNODE_H
#define TRANSEPT_FRONTEND_SEARCHNODE_H

#include "frontend/Export.h"

namespace mlir::transept {

bool hasSearchNode(const onnx::GraphProto &graph);

struct SearchParts {
  struct Part {
    OnnxFile file;
    std::optional<GraphRole> role; ///< empty: as inputs and outputs say
  };
  std::vector<Part> parts;
  std::string settings; ///< JSON: what the operator says, by the names of generation settings
};

/// Takes the graphs of the search operator out of a file that has one, as files of their own with the initializers they
/// use of the graph around them. Refuses what the operator asks for and this project does not do, and graphs that
/// compute more than the search.
Outcome<SearchParts> splitSearch(OnnxFile file);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_SEARCHNODE_H
