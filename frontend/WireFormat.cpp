//===- WireFormat.cpp - the outline of a model file, before it is parsed ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/WireFormat.h"
#include "llvm/ADT/SmallVector.h"
#include <bitset>

using namespace mlir::transept;

namespace {
enum WireType : unsigned { Varint = 0, Fixed64 = 1, Bytes = 2, StartGroup = 3, EndGroup = 4, Fixed32 = 5 };

struct Field {
  uint64_t number = 0;
  unsigned type = 0;
  llvm::StringRef bytes; ///< of a length-delimited field
};

/// Reads fields one after the other; `error` names the first thing that is wrong.
class Reader {
public:
  Reader(llvm::StringRef bytes, size_t base) : all(bytes), base(base) {}

  bool next(Field &field) {
    if (position == all.size() || !error.empty())
      return false;
    size_t start = position;
    uint64_t tag, value;
    if (!varint(tag))
      return false;
    field.number = tag >> 3;
    field.type = tag & 7;
    field.bytes = {};
    if (field.number == 0 || field.number > (1u << 29) - 1)
      return fail(start, "a field without a valid number");
    switch (field.type) {
    case Varint:
      return varint(value);
    case Fixed64:
      return skip(8, start);
    case Fixed32:
      return skip(4, start);
    case Bytes:
      if (!varint(value))
        return false;
      if (value > all.size() - position)
        return fail(start, "a field of " + std::to_string(value) + " bytes, of which only " +
                               std::to_string(all.size() - position) + " are there; the file may be cut short");
      field.bytes = all.substr(position, value);
      position += value;
      return true;
    default:
      return fail(start, "a field of unknown type " + std::to_string(field.type));
    }
  }

  size_t offset() const { return base + position; }
  std::string error;

private:
  bool fail(size_t at, const std::string &what) {
    error = "at byte " + std::to_string(base + at) + " there is " + what;
    return false;
  }
  bool skip(size_t count, size_t start) {
    if (all.size() - position < count)
      return fail(start, "a field that ends too early; the file may be cut short");
    position += count;
    return true;
  }
  bool varint(uint64_t &value) {
    value = 0;
    size_t start = position;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (position == all.size())
        return fail(start, "a number that ends too early; the file may be cut short");
      auto byte = static_cast<unsigned char>(all[position++]);
      if (shift < 63 || byte <= 1)
        value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      else
        return fail(start, "a number of more than 64 bits");
      if (byte < 0x80)
        return true;
    }
    return fail(start, "a number of more than 10 bytes");
  }

  llvm::StringRef all;
  size_t base, position = 0;
};

// Field numbers of onnx.proto.
constexpr uint64_t modelGraph = 7, modelFunction = 25, graphNode = 1, functionNode = 7, nodeAttribute = 5,
                   attributeGraph = 6;
constexpr uint64_t modelFieldMax = 26;

/// Counts nodes and nesting of a list of nodes (`nodeField` of a graph or function); looks no deeper than `limit`.
void walkNodes(llvm::StringRef bytes, uint64_t nodeField, unsigned depth, unsigned limit, WireSummary &summary) {
  summary.depth = std::max(summary.depth, depth);
  if (depth >= limit)
    return;
  Reader nodes(bytes, 0);
  for (Field node; nodes.next(node);) {
    if (node.number != nodeField || node.type != Bytes)
      continue;
    ++summary.nodes;
    Reader attributes(node.bytes, 0);
    for (Field attribute; attributes.next(attribute);) {
      if (attribute.number != nodeAttribute || attribute.type != Bytes)
        continue;
      Reader values(attribute.bytes, 0);
      for (Field value; values.next(value);)
        if (value.number == attributeGraph && value.type == Bytes)
          walkNodes(value.bytes, graphNode, depth + 3, limit, summary);
    }
  }
}
} // namespace

WireSummary mlir::transept::summarizeModel(llvm::StringRef bytes) {
  WireSummary summary;
  std::bitset<modelFieldMax + 1> seen;
  Reader model(bytes, 0);
  size_t start = 0;
  for (Field field; model.next(field); start = model.offset()) {
    if (field.number > modelFieldMax)
      continue;
    if (field.number == modelGraph && seen[modelGraph]) {
      summary.error = "at byte " + std::to_string(start) + " there is a second graph; a model has one";
      return summary;
    }
    seen[field.number] = true;
    bool graph = field.number == modelGraph, function = field.number == modelFunction;
    if (!graph && !function)
      continue;
    if (field.type != Bytes) {
      summary.error = "at byte " + std::to_string(start) + " there is a number instead of a graph";
      return summary;
    }
    Reader parts(field.bytes, model.offset() - field.bytes.size());
    for (Field part; parts.next(part);)
      ;
    if (!parts.error.empty()) {
      summary.error = parts.error;
      return summary;
    }
    walkNodes(field.bytes, graph ? graphNode : functionNode, /*depth=*/2, /*limit=*/1000, summary);
  }
  summary.error = model.error;
  // A model that is cut between fields, or another format that happens to read as fields.
  if (summary.error.empty() && !seen[modelGraph])
    summary.error = "there is no graph in its " + std::to_string(bytes.size()) + " bytes; the file may be cut short";
  return summary;
}
