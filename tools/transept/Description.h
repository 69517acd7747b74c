// An artifact in words and numbers.
#ifndef TRANSEPT_TOOLS_DESCRIPTION_H
#define TRANSEPT_TOOLS_DESCRIPTION_H

#include "runtime/Artifact.h"
#include "runtime/Session.h"

#include <nlohmann/json.hpp>

#include <string>

namespace transept::tool {

struct DescriptionParts {
  bool plan = false;
  bool kernels = false;
};

/// Sizes are {"formula"} and, where `set` gives all symbols they need, {"value"}.
nlohmann::ordered_json describe(const Artifact &artifact, const SymbolValues &set, const DescriptionParts &parts);

/// The same for people.
std::string descriptionText(const nlohmann::ordered_json &description);

} // namespace transept::tool

#endif
