//===- WeightStore.cpp - the contents of weights, once each ---------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/HostTensor.h"
#include "ir/Transept.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
// File: magic, count, then per weight {key, element type (16 characters, zero-padded), rank, sizes…, byte count},
// then the contents in the same order, each padded to 8 bytes. Integers are 64-bit little-endian.
constexpr llvm::StringLiteral magic = "TSPWGHT1";
constexpr size_t keyLength = 64, typeLength = 16; // as long as the longest name: !transept.f4e2m1
constexpr uint64_t maxRank = 64;

std::string elementName(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

Type elementFromName(MLIRContext *context, StringRef name) {
  Builder builder(context);
  for (Type type :
       {Type(builder.getF16Type()), Type(builder.getBF16Type()), Type(builder.getF32Type()), Type(builder.getF64Type()),
        Type(builder.getI1Type()), Type(builder.getFloat8E5M2Type()), Type(builder.getFloat8E4M3FNType()),
        Type(builder.getFloat8E4M3FNUZType()), Type(builder.getFloat8E5M2FNUZType()), Type(F4E2M1Type::get(context)),
        Type(F8E8M0Type::get(context))})
    if (elementName(type) == name)
      return type;
  for (unsigned width : {2, 4, 8, 16, 32, 64})
    for (auto signedness : {IntegerType::Signless, IntegerType::Unsigned, IntegerType::Signed})
      if (Type type = IntegerType::get(context, width, signedness); elementName(type) == name)
        return type;
  return {};
}

RankedTensorType plainType(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

std::string makeKey(RankedTensorType type, ArrayRef<char> bytes) {
  std::string header;
  llvm::raw_string_ostream out(header);
  out << type.getElementType() << '[';
  llvm::interleave(type.getShape(), out, ",");
  out << ']';
  llvm::SHA256 hash;
  hash.update(header);
  hash.update(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

/// Reads little-endian words from a buffer and remembers whether it ran out.
class Cursor {
public:
  explicit Cursor(StringRef text) : rest(text) {}
  StringRef take(uint64_t count) {
    if (count > rest.size()) {
      exhausted = true;
      return {};
    }
    StringRef head = rest.take_front(count);
    rest = rest.drop_front(count);
    return head;
  }
  uint64_t word() {
    StringRef bytes = take(8);
    return exhausted ? 0 : llvm::support::endian::read64le(bytes.data());
  }
  bool failed() const { return exhausted; }
  bool empty() const { return rest.empty(); }
  uint64_t remaining() const { return rest.size(); }

private:
  StringRef rest;
  bool exhausted = false;
};

struct IndexEntry {
  StringRef key;
  RankedTensorType type;
  uint64_t size;
};

/// One weight of the index; a null type if it is malformed.
IndexEntry readIndexEntry(MLIRContext *context, Cursor &cursor) {
  IndexEntry entry{cursor.take(keyLength), {}, 0};
  StringRef name = cursor.take(typeLength).rtrim('\0');
  uint64_t rank = cursor.word();
  if (cursor.failed() || rank > maxRank)
    return entry;
  SmallVector<int64_t> shape;
  uint64_t size = 1;
  for (uint64_t i = 0; i < rank; ++i) {
    uint64_t dim = cursor.word();
    bool overflow = false;
    size = llvm::SaturatingMultiply(size, dim, &overflow);
    if (overflow || dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return entry;
    shape.push_back(static_cast<int64_t>(dim));
  }
  entry.size = cursor.word();
  Type element = elementFromName(context, name);
  if (!element || llvm::SaturatingMultiply<uint64_t>(size, byteWidth(element)) != entry.size)
    return entry;
  entry.type = RankedTensorType::get(shape, element);
  return entry;
}
} // namespace

WeightStore &WeightStore::of(MLIRContext *context) {
  auto *dialect = context->getOrLoadDialect<TranseptDialect>();
  if (!dialect->weightStore)
    dialect->weightStore = std::make_shared<WeightStore>();
  dialect->weightStore->context = context;
  return *dialect->weightStore;
}

std::string WeightStore::add(RankedTensorType type, ArrayRef<char> bytes) {
  std::string key = makeKey(type, bytes);
  if (entries.find(key) == entries.end())
    entries.emplace(key, Entry{plainType(type), std::vector<char>(bytes.begin(), bytes.end())});
  return key;
}

std::string WeightStore::add(RankedTensorType type, std::vector<char> bytes) {
  std::string key = makeKey(type, bytes);
  if (entries.find(key) == entries.end())
    entries.emplace(key, Entry{plainType(type), std::move(bytes)});
  return key;
}

WeightStore::Weight WeightStore::lookup(StringRef key) const {
  auto found = entries.find(std::string_view(key.data(), key.size()));
  if (found == entries.end())
    return {};
  return {found->second.type, found->second.bytes};
}

LogicalResult WeightStore::save(StringRef path, ArrayRef<std::string> keys, std::string &error) const {
  auto fail = [&](const llvm::Twine &what) {
    error = (path + ": " + what).str();
    return failure();
  };
  std::error_code code;
  llvm::raw_fd_ostream out(path, code, llvm::sys::fs::OF_None);
  if (code)
    return fail(code.message());
  auto word = [&](uint64_t value) {
    char bytes[8];
    llvm::support::endian::write64le(bytes, value);
    out.write(bytes, sizeof(bytes));
  };
  out << magic;
  word(keys.size());
  for (const std::string &key : keys) {
    auto found = entries.find(key);
    if (found == entries.end())
      return fail("no weight with key " + key);
    const Entry &entry = found->second;
    std::string name = elementName(entry.type.getElementType());
    name.resize(typeLength, '\0');
    out << key << name;
    word(entry.type.getRank());
    for (int64_t dim : entry.type.getShape())
      word(dim);
    word(entry.bytes.size());
  }
  for (const std::string &key : keys) {
    const Entry &entry = entries.find(key)->second;
    out.write(entry.bytes.data(), entry.bytes.size());
    out.write_zeros(llvm::alignTo(entry.bytes.size(), 8) - entry.bytes.size());
  }
  out.close();
  if (out.has_error()) {
    std::string message = out.error().message();
    out.clear_error();
    return fail(message);
  }
  return success();
}

LogicalResult WeightStore::load(StringRef path, std::string &error) {
  auto fail = [&](const llvm::Twine &what) {
    error = (path + ": " + what).str();
    return failure();
  };
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return fail(file.getError().message());
  Cursor cursor((*file)->getBuffer());
  if (cursor.take(magic.size()) != magic)
    return fail("not a weights file");
  uint64_t count = cursor.word();
  if (count > cursor.remaining() / keyLength)
    return fail("the index is longer than the file");
  std::vector<IndexEntry> index;
  for (uint64_t i = 0; i < count; ++i) {
    index.push_back(readIndexEntry(context, cursor));
    if (!index.back().type)
      return fail("index entry " + llvm::Twine(i) + " is malformed");
  }
  for (const IndexEntry &entry : index) {
    StringRef content = cursor.take(entry.size);
    StringRef padding = cursor.take(llvm::alignTo(entry.size, 8) - entry.size);
    if (cursor.failed() || padding.find_first_not_of('\0') != StringRef::npos)
      return fail("truncated or damaged in weight " + entry.key);
    if (add(entry.type, ArrayRef<char>(content.data(), content.size())) != entry.key)
      return fail("the content of weight " + entry.key + " does not match its key");
  }
  if (!cursor.empty())
    return fail("has bytes behind the last weight");
  return success();
}
