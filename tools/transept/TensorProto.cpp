#include "TensorProto.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <climits>

namespace transept::tool {

namespace {

/// Numbers of TensorProto.DataType.
struct OnnxType {
  uint64_t number;
  DType dtype;
};
constexpr OnnxType types[] = {{1, program::F32},     {2, program::U8},          {3, program::I8},
                              {4, program::U16},     {5, program::I16},         {6, program::I32},
                              {7, program::I64},     {9, program::BOOL},        {10, program::F16},
                              {11, program::F64},    {12, program::U32},        {13, program::U64},
                              {16, program::BF16},   {17, program::F8E4M3FN},   {18, program::F8E4M3FNUZ},
                              {19, program::F8E5M2}, {20, program::F8E5M2FNUZ}, {24, program::F8E8M0}};

// Fields of the message, and how their values are coded.
enum Field : uint32_t {
  Dims = 1,
  DataType = 2,
  FloatData = 4,
  Int32Data = 5,
  Int64Data = 7,
  Name = 8,
  RawData = 9,
  DoubleData = 10,
  Uint64Data = 11,
  DataLocation = 14
};
enum Wire : uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

Status malformed() { return {Code::InvalidInput, "not a TensorProto, or cut"}; }

class Parser {
public:
  explicit Parser(Span<const uint8_t> bytes) : in_(bytes.data(), static_cast<int>(bytes.size())) {}

  Result<Array> parse();

private:
  bool readField(uint32_t tag);
  /// One value of a repeated field, or all of them where they are packed.
  bool readValues(uint32_t wire, uint32_t coded, std::vector<uint64_t> &values);
  bool readValue(uint32_t wire, std::vector<uint64_t> &values);
  bool readText(uint32_t wire, std::string &text) {
    uint32_t size;
    return wire == Bytes && in_.ReadVarint32(&size) && size <= INT_MAX && in_.ReadString(&text, static_cast<int>(size));
  }
  bool skip(uint32_t wire);

  google::protobuf::io::CodedInputStream in_;
  Array array_;
  std::vector<uint64_t> dims_, type_, values_, location_;
  std::string raw_;
};

bool Parser::readValue(uint32_t wire, std::vector<uint64_t> &values) {
  uint64_t value;
  uint32_t low;
  if (wire == Fixed32 && in_.ReadLittleEndian32(&low))
    value = low;
  else if (!(wire == Varint && in_.ReadVarint64(&value)) && !(wire == Fixed64 && in_.ReadLittleEndian64(&value)))
    return false;
  values.push_back(value);
  return true;
}

bool Parser::readValues(uint32_t wire, uint32_t coded, std::vector<uint64_t> &values) {
  if (wire == coded)
    return readValue(coded, values);
  uint32_t size;
  if (wire != Bytes || !in_.ReadVarint32(&size) || size > INT_MAX)
    return false;
  auto limit = in_.PushLimit(static_cast<int>(size));
  while (in_.BytesUntilLimit() > 0)
    if (!readValue(coded, values))
      return false;
  in_.PopLimit(limit);
  return true;
}

bool Parser::skip(uint32_t wire) {
  std::vector<uint64_t> values;
  std::string text;
  return wire == Bytes ? readText(wire, text) : readValue(wire, values);
}

bool Parser::readField(uint32_t tag) {
  const uint32_t field = tag >> 3, wire = tag & 7;
  switch (field) {
  case Dims:
    return readValues(wire, Varint, dims_);
  case DataType:
    return readValues(wire, Varint, type_);
  case FloatData:
    return readValues(wire, Fixed32, values_);
  case Int32Data:
  case Int64Data:
  case Uint64Data:
    return readValues(wire, Varint, values_);
  case DoubleData:
    return readValues(wire, Fixed64, values_);
  case DataLocation:
    return readValues(wire, Varint, location_);
  case Name:
    return readText(wire, array_.name);
  case RawData:
    return readText(wire, raw_);
  default:
    return skip(wire);
  }
}

Result<Array> Parser::parse() {
  while (uint32_t tag = in_.ReadTag())
    if (!readField(tag))
      return malformed();
  if (!in_.ConsumedEntireMessage() || type_.empty())
    return malformed();
  const OnnxType *type = std::find_if(std::begin(types), std::end(types),
                                      [&](const OnnxType &known) { return known.number == type_.back(); });
  if (type == std::end(types))
    return Status(Code::InvalidInput, "holds elements of ONNX type " + std::to_string(type_.back()) +
                                          ", which are not read; save the array as .npy");
  if (!location_.empty() && location_.back() != 0)
    return Status(Code::InvalidInput, "its data is in another file; save it with its data");
  array_.dtype = type->dtype;
  const uint64_t size = static_cast<uint64_t>(dtypeSize(array_.dtype));
  uint64_t count = 1;
  for (uint64_t dim : dims_) {
    if (dim > INT_MAX || (dim && count > INT_MAX / dim))
      return Status(Code::InvalidInput, "its shape is too large");
    count *= dim;
    array_.dims.push_back(static_cast<int64_t>(dim));
  }
  if (!values_.empty()) {
    raw_.clear();
    for (uint64_t value : values_)
      for (uint64_t byte = 0; byte < size; ++byte)
        raw_.push_back(static_cast<char>(value >> 8 * byte & 0xff));
  }
  if (raw_.size() != count * size)
    return Status(Code::InvalidInput, "holds " + std::to_string(raw_.size()) + " bytes for " + std::to_string(count) +
                                          " elements of " + std::to_string(size));
  array_.data.assign(raw_.begin(), raw_.end());
  return std::move(array_);
}

void writeVarint(std::string &text, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    text.push_back(static_cast<char>(value | 0x80));
  text.push_back(static_cast<char>(value));
}

} // namespace

Result<Array> parseTensorProto(Span<const uint8_t> bytes) {
  if (bytes.size() > INT_MAX)
    return Status(Code::LimitExceeded, "a TensorProto holds less than 2 GiB");
  return Parser(bytes).parse();
}

Result<std::string> tensorProtoOf(const TensorView &array) {
  const OnnxType *type = std::find_if(std::begin(types), std::end(types),
                                      [&](const OnnxType &known) { return known.dtype == array.dtype; });
  if (type == std::end(types))
    return Status(Code::InvalidInput, "output '" + printable(std::string(array.name)) + "' has elements of type " +
                                          dtypeName(array.dtype) + ", which are not written as .pb; use .npy or .raw");
  if (array.bytes > INT_MAX / 2)
    return Status(Code::LimitExceeded,
                  "output '" + printable(std::string(array.name)) + "' is too large for .pb; use .npy or .raw");
  std::string text;
  for (int64_t dim : array.dims) {
    writeVarint(text, Dims << 3 | Varint);
    writeVarint(text, static_cast<uint64_t>(dim));
  }
  writeVarint(text, DataType << 3 | Varint);
  writeVarint(text, type->number);
  writeVarint(text, Name << 3 | Bytes);
  writeVarint(text, array.name.size());
  text += array.name;
  writeVarint(text, RawData << 3 | Bytes);
  writeVarint(text, static_cast<uint64_t>(array.bytes));
  text.append(static_cast<const char *>(array.data), static_cast<size_t>(array.bytes));
  return text;
}

} // namespace transept::tool
