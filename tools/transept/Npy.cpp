#include "Npy.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace transept::tool {

namespace {

Status refuse(const std::string &why) { return {Code::InvalidInput, why}; }

struct TypeName {
  const char *name; // without byte order
  DType dtype;
};
constexpr TypeName typeNames[] = {
    {"f2", program::F16}, {"f4", program::F32},  {"f8", program::F64}, {"i1", program::I8},  {"i2", program::I16},
    {"i4", program::I32}, {"i8", program::I64},  {"u1", program::U8},  {"u2", program::U16}, {"u4", program::U32},
    {"u8", program::U64}, {"b1", program::BOOL}, {"V2", program::BF16}};

/// What stands for an element type that NumPy does not have: one byte of the same content.
DType stored(DType dtype) {
  switch (dtype) {
  case program::I4:
  case program::I2:
    return program::I8;
  case program::U4:
  case program::U2:
  case program::F8E4M3FN:
  case program::F8E4M3FNUZ:
  case program::F8E5M2:
  case program::F8E5M2FNUZ:
  case program::F8E8M0:
  case program::F4E2M1:
    return program::U8;
  default:
    return dtype;
  }
}

/// What the header says.
struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> dims;
};

/// Reads the Python dictionary of a header: three known keys, in any order.
class HeaderParser {
public:
  explicit HeaderParser(std::string text) : text_(std::move(text)) {}

  Result<Header> parse() {
    Header header;
    int seen = 0;
    if (!take('{'))
      return refuse("malformed .npy header");
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':'))
        return refuse("malformed .npy header");
      int bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
      if (bit == 0 || (seen & bit))
        return refuse("unexpected key '" + printable(key, 40) + "' in .npy header");
      seen |= bit;
      if (bit == 1 && !string(header.descr))
        return refuse("structured .npy types are not supported");
      if ((bit == 2 && !boolean(header.fortran)) || (bit == 4 && !shape(header.dims)))
        return refuse("malformed .npy header");
      if (!take(',')) {
        if (!take('}'))
          return refuse("malformed .npy header");
        break;
      }
    }
    skipSpace();
    if (seen != 7 || position_ != text_.size())
      return refuse("incomplete .npy header");
    return header;
  }

private:
  void skipSpace() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n'))
      ++position_;
  }
  bool take(char c) {
    skipSpace();
    if (position_ >= text_.size() || text_[position_] != c)
      return false;
    ++position_;
    return true;
  }
  bool string(std::string &out) {
    skipSpace();
    if (position_ >= text_.size() || (text_[position_] != '\'' && text_[position_] != '"'))
      return false;
    size_t end = text_.find(text_[position_], position_ + 1);
    if (end == std::string::npos)
      return false;
    out = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return true;
  }
  bool boolean(bool &out) {
    skipSpace();
    for (bool value : {true, false}) {
      const char *word = value ? "True" : "False";
      if (text_.compare(position_, std::strlen(word), word) == 0) {
        position_ += std::strlen(word);
        out = value;
        return true;
      }
    }
    return false;
  }
  bool shape(std::vector<int64_t> &dims) {
    if (!take('('))
      return false;
    while (!take(')')) {
      skipSpace();
      int64_t dim = 0;
      size_t begin = position_;
      for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9'; ++position_)
        if (__builtin_mul_overflow(dim, 10, &dim) || __builtin_add_overflow(dim, text_[position_] - '0', &dim))
          return false;
      if (position_ == begin || dims.size() >= 64)
        return false;
      dims.push_back(dim);
      if (!take(',')) {
        if (!take(')'))
          return false;
        break;
      }
    }
    return true;
  }

  std::string text_;
  size_t position_ = 0;
};

void swapBytes(std::vector<uint8_t> &data, size_t size) {
  for (size_t i = 0; i + size <= data.size(); i += size)
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(i), data.begin() + static_cast<std::ptrdiff_t>(i + size));
}

/// Column-major to row-major.
std::vector<uint8_t> transposed(const std::vector<uint8_t> &data, const std::vector<int64_t> &dims, size_t size) {
  std::vector<uint8_t> out(data.size());
  std::vector<int64_t> index(dims.size());
  for (size_t from = 0; from < data.size(); from += size) {
    int64_t to = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      to = to * dims[axis] + index[axis];
    std::memcpy(out.data() + static_cast<size_t>(to) * size, data.data() + from, size);
    for (size_t axis = 0; axis < dims.size() && ++index[axis] == dims[axis]; ++axis)
      index[axis] = 0;
  }
  return out;
}

} // namespace

Result<Array> parseNpy(Span<const uint8_t> bytes) {
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
    return refuse("not a .npy array");
  uint8_t major = bytes[6];
  if (major < 1 || major > 3)
    return refuse("unknown .npy version " + std::to_string(major));
  size_t lengthBytes = major == 1 ? 2 : 4, length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= static_cast<size_t>(bytes[8 + i]) << (8 * i);
  size_t begin = 8 + lengthBytes;
  if (length > bytes.size() - begin || length > (size_t(1) << 20))
    return refuse("the .npy header is cut");
  Result<Header> header =
      HeaderParser(std::string(reinterpret_cast<const char *>(bytes.data() + begin), length)).parse();
  if (!header.ok())
    return header.status();

  char order = header->descr.empty() ? 0 : header->descr[0];
  auto type = std::find_if(std::begin(typeNames), std::end(typeNames), [&](const TypeName &candidate) {
    return !header->descr.empty() && header->descr.substr(1) == candidate.name;
  });
  if (type == std::end(typeNames) || (order != '<' && order != '>' && order != '|' && order != '='))
    return refuse("element type '" + printable(header->descr, 40) + "' is not supported");
  int64_t size = dtypeSize(type->dtype), total = size;
  for (int64_t dim : header->dims)
    if (__builtin_mul_overflow(total, dim, &total))
      return refuse("a shape that does not fit in 64 bits");
  size_t rest = bytes.size() - begin - length;
  if (static_cast<uint64_t>(total) != rest)
    return refuse("its shape needs " + std::to_string(total) + " bytes of data, there are " + std::to_string(rest));

  Array array;
  array.dtype = type->dtype;
  array.dims = header->dims;
  array.data.assign(bytes.begin() + begin + length, bytes.end());
  if (order == '>')
    swapBytes(array.data, static_cast<size_t>(size));
  if (header->fortran && array.dims.size() > 1)
    array.data = transposed(array.data, array.dims, static_cast<size_t>(size));
  if (array.dtype == program::BOOL)
    for (uint8_t &value : array.data)
      value = value != 0;
  return array;
}

std::string npyHeader(DType dtype, Span<const int64_t> dims) {
  std::string descr;
  for (const TypeName &type : typeNames)
    if (type.dtype == stored(dtype))
      descr = (dtypeSize(dtype) == 1 || dtype == program::BF16 ? "|" : "<") + std::string(type.name);
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : dims)
    text += std::to_string(dim) + (dims.size() == 1 ? "," : ", ");
  if (dims.size() > 1)
    text.resize(text.size() - 2);
  text += "), }";
  // The data starts at a multiple of 64 bytes, a line feed ends the header.
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(text.size() & 0xFF);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

} // namespace transept::tool
