//===- WireFormat.cpp - the outline of a model file, before it is parsed ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/WireFormat.h"
#include "llvm/Support/Endian.h"
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

//===- Large contents -===//

namespace {
enum class Kind { Model, Graph, Function, Node, Attribute, Tensor, Other };
constexpr uint64_t tensorRawData = 9;

/// What a field of a message holds.
Kind kindOf(Kind outer, uint64_t field) {
  struct Row {
    Kind outer;
    uint64_t field;
    Kind inner;
  };
  static constexpr Row rows[] = {{Kind::Model, modelGraph, Kind::Graph},
                                 {Kind::Model, modelFunction, Kind::Function},
                                 {Kind::Graph, graphNode, Kind::Node},
                                 {Kind::Graph, 5, Kind::Tensor},
                                 {Kind::Function, functionNode, Kind::Node},
                                 {Kind::Function, 11, Kind::Attribute},
                                 {Kind::Node, nodeAttribute, Kind::Attribute},
                                 {Kind::Attribute, 5, Kind::Tensor},
                                 {Kind::Attribute, attributeGraph, Kind::Graph},
                                 {Kind::Attribute, 10, Kind::Tensor},
                                 {Kind::Attribute, 11, Kind::Graph}};
  for (const Row &row : rows)
    if (row.outer == outer && row.field == field)
      return row.inner;
  return Kind::Other;
}

void writeBytesField(uint64_t number, llvm::StringRef content, std::string &out) {
  for (uint64_t value : {number << 3 | Bytes, static_cast<uint64_t>(content.size())}) {
    for (; value > 0x7f; value >>= 7)
      out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
  }
  out += content;
}

class ContentCutter {
public:
  ContentCutter(llvm::StringRef digest, unsigned nesting) : digest(digest), nesting(nesting) {}

  /// The message `bytes`, which lies at `base` in the file.
  std::string cut(Kind kind, llvm::StringRef bytes, size_t base, unsigned depth) const {
    std::string out;
    Reader fields(bytes, base);
    size_t start = 0;
    for (Field field; fields.next(field); start = fields.offset() - base) {
      const size_t content = fields.offset() - field.bytes.size();
      const Kind inner = kindOf(kind, field.number);
      if (field.type != Bytes || field.bytes.size() <= largeContent || depth >= nesting)
        out += bytes.slice(start, fields.offset() - base);
      else if (kind == Kind::Tensor && field.number == tensorRawData)
        writeBytesField(field.number, reference({content, field.bytes.size()}), out);
      else if (inner != Kind::Other)
        writeBytesField(field.number, cut(inner, field.bytes, content, depth + 1), out);
      else
        out += bytes.slice(start, fields.offset() - base);
    }
    out += bytes.drop_front(start);
    return out;
  }

private:
  std::string reference(ContentRange range) const {
    char words[16];
    llvm::support::endian::write64le(words, range.offset);
    llvm::support::endian::write64le(words + 8, range.bytes);
    return (digest + llvm::StringRef(words, sizeof words)).str();
  }

  llvm::StringRef digest;
  unsigned nesting;
};
} // namespace

std::string mlir::transept::withoutLargeContents(llvm::StringRef bytes, llvm::StringRef digest, unsigned nesting) {
  return ContentCutter(digest, nesting).cut(Kind::Model, bytes, 0, 0);
}

std::optional<ContentRange> mlir::transept::referredRange(llvm::StringRef rawData, llvm::StringRef digest) {
  if (digest.empty() || rawData.size() != digest.size() + 16 || !rawData.consume_front(digest))
    return std::nullopt;
  return ContentRange{llvm::support::endian::read64le(rawData.data()),
                      llvm::support::endian::read64le(rawData.data() + 8)};
}
