//===- DiagnosticLog.cpp - what MLIR has to say, as one line --------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/DiagnosticLog.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// The name of the first node in the location: "file.onnx:/encoder/Add".
StringRef firstName(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().getValue();
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location inner : fused.getLocations())
      if (StringRef name = firstName(inner); !name.empty())
        return name;
    return "";
  }
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return firstName(call.getCallee());
  return "";
}

FileLineColLoc firstPosition(Location location) {
  if (auto position = dyn_cast<FileLineColLoc>(location))
    return position;
  if (auto name = dyn_cast<NameLoc>(location))
    return firstPosition(name.getChildLoc());
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location inner : fused.getLocations())
      if (FileLineColLoc position = firstPosition(inner))
        return position;
  return {};
}

std::optional<ExitCode> codeOf(Location location) {
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    if (auto word = dyn_cast_or_null<StringAttr>(fused.getMetadata())) {
      if (word == "unsupported")
        return ExitUnsupported;
      if (word == "invalid")
        return ExitInvalidModel;
      if (word == "limit")
        return ExitLimit;
    }
    for (Location inner : fused.getLocations())
      if (std::optional<ExitCode> code = codeOf(inner))
        return code;
  }
  return std::nullopt;
}

std::string lineOf(const Diagnostic &diagnostic) {
  std::string place = describeLocation(diagnostic.getLocation()), text = diagnostic.str();
  // The place says it already.
  std::string again = " of node '" + firstName(diagnostic.getLocation()).str() + "'";
  if (size_t at = text.find(again); at != std::string::npos)
    text.erase(at, again.size());
  for (const Diagnostic &note : const_cast<Diagnostic &>(diagnostic).getNotes())
    text += "; " + note.str();
  return printable(place.empty() ? text : place + ": " + text, 2000);
}

} // namespace

std::string mlir::transept::describeLocation(Location location) {
  StringRef name = firstName(location);
  if (!name.empty()) {
    auto [file, node] = name.split(':');
    return node.empty() ? printable(name) : printable(file) + ": node " + quoted(node);
  }
  if (FileLineColLoc position = firstPosition(location))
    return printable(position.getFilename().getValue()) + ":" + std::to_string(position.getLine()) + ":" +
           std::to_string(position.getColumn());
  return "";
}

DiagnosticLog::DiagnosticLog(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          errors.push_back({lineOf(diagnostic), codeOf(diagnostic.getLocation())});
        else if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
          warnings.push_back(lineOf(diagnostic));
        return success();
      }) {}

Failure DiagnosticLog::take(ExitCode code, StringRef otherwise) {
  Failure failure{code, otherwise.str(), {}};
  if (!errors.empty()) {
    failure.exitCode = errors.front().code.value_or(code);
    failure.message = errors.front().line;
  }
  for (const Error &error : llvm::ArrayRef(errors).drop_front(errors.empty() ? 0 : 1))
    failure.details.push_back(error.line);
  errors.clear();
  return failure;
}
