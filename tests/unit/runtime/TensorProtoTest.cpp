// Bytes of make_tensor and from_array of the Python package onnx.
#include "tools/transept/TensorProto.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::tool;

namespace {

template <size_t length> Result<Array> parsed(const char (&text)[length]) {
  return parseTensorProto({reinterpret_cast<const uint8_t *>(text), length - 1});
}

template <typename T> std::vector<T> elements(const Array &array) {
  const T *data = reinterpret_cast<const T *>(array.data.data());
  return std::vector<T>(data, data + array.data.size() / sizeof(T));
}

TEST(TensorProto, ReadsRawAndTypedData) {
  Result<Array> raw = parsed("\x08\x01\x08\x02\x10\x01\x42\x01\x78\x4a\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0");
  ASSERT_TRUE(raw.ok()) << raw.status().message();
  EXPECT_EQ(raw->name, "x");
  EXPECT_EQ(raw->dtype, program::F32);
  EXPECT_EQ(raw->dims, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(elements<float>(*raw), (std::vector<float>{1.5, -2}));
  Result<Array> typed = parsed("\x08\x02\x10\x01\x22\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0\x42\x01\x78");
  ASSERT_TRUE(typed.ok());
  EXPECT_EQ(typed->data, raw->data);
  Result<Array> i16 = parsed("\x08\x02\x10\x05\x2a\x0b\xfd\xff\xff\xff\xff\xff\xff\xff\xff\x01\x07\x42\x01\x78");
  ASSERT_TRUE(i16.ok());
  EXPECT_EQ(i16->dtype, program::I16);
  EXPECT_EQ(elements<int16_t>(*i16), (std::vector<int16_t>{-3, 7}));
  Result<Array> f16 = parsed("\x08\x02\x10\x0a\x2a\x05\x80\x7c\x80\x80\x03\x42\x01\x78");
  ASSERT_TRUE(f16.ok());
  EXPECT_EQ(f16->dtype, program::F16);
  EXPECT_EQ(elements<uint16_t>(*f16), (std::vector<uint16_t>{0x3e00, 0xc000}));
  Result<Array> scalar = parsed("\x10\x07\x3a\x0a\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01\x42\x01\x78");
  ASSERT_TRUE(scalar.ok());
  EXPECT_TRUE(scalar->dims.empty());
  EXPECT_EQ(elements<int64_t>(*scalar), (std::vector<int64_t>{-5}));
  Result<Array> f64 = parsed("\x08\x01\x10\x0b\x42\x01\x78\x52\x08\x00\x00\x00\x00\x00\x00\xd0\x3f");
  ASSERT_TRUE(f64.ok());
  EXPECT_EQ(elements<double>(*f64), (std::vector<double>{0.25}));
  Result<Array> boolean = parsed("\x08\x02\x10\x09\x2a\x02\x01\x00\x42\x01\x78");
  ASSERT_TRUE(boolean.ok());
  EXPECT_EQ(boolean->dtype, program::BOOL);
  EXPECT_EQ(boolean->data, (std::vector<uint8_t>{1, 0}));
}

TEST(TensorProto, WritesWhatItReads) {
  float data[] = {1.5, -2};
  std::vector<int64_t> dims = {1, 2};
  Result<std::string> text = tensorProtoOf({"x", program::F32, dims, data, sizeof data});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, std::string("\x08\x01\x08\x02\x10\x01\x42\x01\x78\x4a\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0", 19));
  EXPECT_FALSE(tensorProtoOf({"x", program::I4, dims, data, 2}).ok());
}

TEST(TensorProto, RefusesWhatItCannotHold) {
  auto message = [](const Result<Array> &result) { return result.ok() ? "accepted" : result.status().message(); };
  EXPECT_EQ(message(parsed("")), "not a TensorProto, or cut");
  EXPECT_EQ(message(parsed("\x08\x02\x10\x01\x22\x08\x00\x00")), "not a TensorProto, or cut");
  EXPECT_NE(message(parsed("\x08\x01\x10\x08\x32\x01\x61\x42\x01\x78")).find("ONNX type 8"), std::string::npos);
  EXPECT_EQ(message(parsed("\x08\x03\x10\x01\x4a\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0")),
            "holds 8 bytes for 3 elements of 4");
  EXPECT_EQ(message(parsed("\x08\xff\xff\xff\xff\x07\x08\xff\xff\xff\xff\x07\x10\x01")), "its shape is too large");
  EXPECT_NE(message(parsed("\x08\x01\x10\x01\x70\x01")).find("in another file"), std::string::npos);
}

} // namespace
