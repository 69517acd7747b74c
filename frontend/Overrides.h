//===- Overrides.h - what a user says about the files of an export ------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `transept.json` in an export directory says what names and structure do not:
//
//   {"files": {"step.onnx": {"role": "decoder_with_past", "ports": {"x": "target_ids", "mem": "encoder_states"}},
//              "old.onnx": {"role": "none"}}}
//
// Roles of files are those of functionName(), or "none" for a file that is no part of the model; roles of inputs and
// outputs are those of PortRoles. What is not mentioned is found as without the file.

#ifndef TRANSEPT_FRONTEND_OVERRIDES_H
#define TRANSEPT_FRONTEND_OVERRIDES_H

#include "frontend/Export.h"

namespace mlir::transept {

struct FileOverride {
  std::optional<GraphRole> role;
  bool leaveOut = false;
  PortRoles ports;
};

/// By file name; empty where the directory has no such file. Refuses keys and roles that do not exist.
Outcome<std::map<std::string, FileOverride>> readOverrides(const std::string &directory);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_OVERRIDES_H
