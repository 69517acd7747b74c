//===- Settings.h - generation settings of an export ------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_SETTINGS_H
#define TRANSEPT_FRONTEND_SETTINGS_H

#include "ir/Diagnostic.h"

namespace mlir::transept {

struct GenerationSettings {
  std::string json = "{}";          ///< implemented settings and the data they need, keys sorted
  std::string config = "{}";        ///< config.json, keys sorted
  std::vector<std::string> refused; ///< "name=value" of what would change the output and is not implemented
};

/// Merges config.json and generation_config.json (which wins) of `directory`. Both are optional.
Outcome<GenerationSettings> readSettings(const std::string &directory);

/// Settings that an export states elsewhere, a JSON object by their names; they win.
void overrideSettings(GenerationSettings &settings, const std::string &said);

/// Whether config.json says that the model has an encoder and a decoder.
bool saysEncoderDecoder(const std::string &directory);

/// The licence that config.json or the front matter of README.md names, or an empty string.
std::string readLicence(const std::string &directory);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_SETTINGS_H
