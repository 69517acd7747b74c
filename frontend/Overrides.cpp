//===- Overrides.cpp - what a user says about the files of an export ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Overrides.h"
#include "frontend/FileBytes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <nlohmann/json.hpp>

using namespace mlir::transept;
using nlohmann::json;

namespace {
constexpr uint64_t maxBytes = 1u << 20;

constexpr GraphRole fileRoles[] = {GraphRole::Encoder,         GraphRole::CrossKeys,     GraphRole::Decoder,
                                   GraphRole::DecoderWithPast, GraphRole::DecoderMerged, GraphRole::DecoderOnly,
                                   GraphRole::Monolith};

constexpr llvm::StringRef portRoles[] = {"source_ids",      "source_mask",    "source_padding",   "source_lengths",
                                         "source_features", "encoder_states", "encoder_result",   "target_ids",
                                         "target_mask",     "target_padding", "target_positions", "past_length",
                                         "use_cache",       "logits",         "log_probs",        "alignment"};
/// Followed by a number.
constexpr llvm::StringRef numberedRoles[] = {
    "past.self.key.",      "past.self.value.",   "past.cross.key.",      "past.cross.value.", "present.self.key.",
    "present.self.value.", "present.cross.key.", "present.cross.value.", "recurrent.",        "recurrent_out."};

bool isPortRole(llvm::StringRef role) {
  if (llvm::is_contained(portRoles, role))
    return true;
  return llvm::any_of(numberedRoles, [&](llvm::StringRef start) {
    llvm::StringRef rest = role;
    unsigned number;
    return rest.consume_front(start) && !rest.getAsInteger(10, number) && number < 10000;
  });
}

class Reader {
public:
  explicit Reader(std::string path) : path(std::move(path)) {}

  Outcome<std::map<std::string, FileOverride>> read(const json &page) {
    std::map<std::string, FileOverride> overrides;
    if (!page.is_object() || !page.contains("files") || page.size() != 1 || !page["files"].is_object())
      return refuse("must be an object with the one key \"files\", an object by file name");
    for (const auto &[name, entry] : page["files"].items())
      if (std::optional<Failure> failure = add(name, entry, overrides[name]))
        return std::move(*failure);
    return overrides;
  }

  Failure refuse(const llvm::Twine &what) const { return {ExitInvalidModel, printable(path) + ": " + what.str(), {}}; }

private:
  std::optional<Failure> add(const std::string &name, const json &entry, FileOverride &file) {
    if (!entry.is_object())
      return refuse("the entry of " + mlir::transept::quoted(name) + " must be an object");
    for (const auto &[key, value] : entry.items()) {
      bool known = key == "role" ? value.is_string() : key == "ports" && value.is_object();
      if (!known)
        return refuse("the entry of " + mlir::transept::quoted(name) + " has " + mlir::transept::quoted(key) +
                      "; it may have \"role\", a string, and \"ports\", an object");
    }
    if (entry.contains("role")) {
      std::string role = entry["role"].get<std::string>();
      file.leaveOut = role == "none";
      const auto *found = llvm::find_if(fileRoles, [&](GraphRole known) { return functionName(known) == role; });
      if (!file.leaveOut && found == std::end(fileRoles))
        return refuse("there is no role " + mlir::transept::quoted(role) + " for a file; there are " + fileRoleNames());
      if (!file.leaveOut)
        file.role = *found;
    }
    const json ports = entry.value("ports", json::object());
    for (const auto &[port, role] : ports.items()) {
      if (!role.is_string() || !isPortRole(role.get<std::string>()))
        return refuse(mlir::transept::quoted(name) + " gives " + mlir::transept::quoted(port) +
                      " a role that does not exist; there are " + llvm::join(llvm::ArrayRef(portRoles), ", ") +
                      " and, with a number behind, " + llvm::join(llvm::ArrayRef(numberedRoles), ", "));
      file.ports[port] = role.get<std::string>();
    }
    return std::nullopt;
  }

  static std::string fileRoleNames() {
    std::string names;
    for (GraphRole role : fileRoles)
      names += functionName(role).str() + ", ";
    return names + "none";
  }

  std::string path;
};
} // namespace

Outcome<std::map<std::string, FileOverride>> mlir::transept::readOverrides(const std::string &directory) {
  llvm::SmallString<256> path(directory);
  llvm::sys::path::append(path, "transept.json");
  if (!llvm::sys::fs::exists(path))
    return std::map<std::string, FileOverride>();
  Outcome<std::string> bytes = readWholeFile(path.str().str(), maxBytes);
  if (!bytes)
    return std::move(bytes.failure());
  Reader reader(path.str().str());
  json page = json::parse(*bytes, nullptr, /*allow_exceptions=*/false);
  return page.is_discarded() ? Outcome<std::map<std::string, FileOverride>>(reader.refuse("is not valid JSON"))
                             : reader.read(page);
}
