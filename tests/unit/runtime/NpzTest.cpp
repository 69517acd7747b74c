#include "tools/transept/Npz.h"

#include "TinyModel.h"
#include "runtime/ArtifactFormat.h"
#include "tools/transept/Compare.h"
#include "tools/transept/Npy.h"
#include "tools/transept/ParseValue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace transept;
using namespace transept::tests;
using namespace transept::tool;

namespace {

Span<const uint8_t> span(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

std::string npy(const std::string &header, const std::string &data, char major = 1) {
  std::string out("\x93NUMPY", 6);
  out += {major, '\0', static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)};
  if (major > 1)
    out += std::string(2, '\0');
  return out + header + data;
}

template <typename T> std::string bytesOf(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char *>(values.begin()), values.size() * sizeof(T));
}

template <typename T> std::vector<T> values(const Array &array) {
  const T *data = reinterpret_cast<const T *>(array.data.data());
  return std::vector<T>(data, data + array.data.size() / sizeof(T));
}

TEST(Npy, ReadsTypesOrdersAndVersions) {
  std::string data = bytesOf<int32_t>({1, 2, 3, 4, 5, 6});
  for (char major : {1, 2, 3}) {
    Result<Array> array =
        parseNpy(span(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }           \n", data, major)));
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(array->dtype, program::I32);
    EXPECT_EQ(array->dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(values<int32_t>(*array), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  }
  Result<Array> columns = parseNpy(span(npy("{'shape': (2, 3), 'fortran_order': True, 'descr': '<i4'}", data)));
  ASSERT_TRUE(columns.ok());
  EXPECT_EQ(values<int32_t>(*columns), (std::vector<int32_t>{1, 3, 5, 2, 4, 6}));
  Result<Array> big = parseNpy(
      span(npy("{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", std::string("\x01\x02\x03\x04", 4))));
  ASSERT_TRUE(big.ok());
  EXPECT_EQ(values<uint16_t>(*big), (std::vector<uint16_t>{0x0102, 0x0304}));
  Result<Array> scalar = parseNpy(span(npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\x02")));
  ASSERT_TRUE(scalar.ok());
  EXPECT_TRUE(scalar->dims.empty());
  EXPECT_EQ(values<uint8_t>(*scalar), std::vector<uint8_t>{1}); // a bool is 0 or 1
}

TEST(Npy, RefusesWhatItCannotRepresent) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", eight(8, '\0');
  ASSERT_TRUE(parseNpy(span(npy(good, eight))).ok());
  for (const std::string &bytes :
       {std::string(), std::string("PK\x03\x04"), npy(good, ""), npy(good, eight + "x"), npy(good, eight, 4),
        npy("", eight), npy("{", eight), npy("{}", eight), npy(good + "x", eight),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", eight),
        npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", eight),
        npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", eight),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", eight),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905, 4)}", eight),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", eight),
        npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", eight),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': True}", eight)})
    EXPECT_EQ(parseNpy(span(bytes)).status().exitCode(), 8);
  std::string full = npy(good, eight);
  for (size_t length = 0; length < full.size(); ++length)
    EXPECT_FALSE(parseNpy(span(full.substr(0, length))).ok());
}

/// Members a (f32 [2, 2]) and b (i64 [3]) as `numpy.savez_compressed` writes them: deflated, ZIP64 fields in the
/// local headers.
const char deflatedNpz[] =
#include "fixtures/deflated.npz.inc"
    ;

TEST(Npz, ReadsWhatNumPyDeflates) {
  Result<std::vector<Array>> arrays = parseNpz(span(std::string(deflatedNpz, sizeof deflatedNpz - 1)));
  ASSERT_TRUE(arrays.ok()) << arrays.status().message();
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ((*arrays)[0].name, "a");
  EXPECT_EQ((*arrays)[0].dims, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(values<float>((*arrays)[0]), (std::vector<float>{0.5f, -1, 2, 1e10f}));
  EXPECT_EQ((*arrays)[1].name, "b");
  EXPECT_EQ(values<int64_t>((*arrays)[1]), (std::vector<int64_t>{-1, 0, int64_t(1) << 40}));
}

TEST(Npz, DamagedArchivesNeverCrashAndNeverChangeValues) {
  const std::string good(deflatedNpz, sizeof deflatedNpz - 1);
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parseNpz(span(good.substr(0, length))).ok());
  Result<std::vector<Array>> reference = parseNpz(span(good));
  for (size_t position = 0; position < good.size(); ++position)
    for (int change : {0x01, 0x10, 0x80, 0xFF}) {
      std::string bytes = good;
      bytes[position] = static_cast<char>(bytes[position] ^ change);
      Result<std::vector<Array>> arrays = parseNpz(span(bytes)); // unused fields may change
      if (!arrays.ok())
        continue;
      for (size_t i = 0; i < arrays->size(); ++i)
        EXPECT_EQ((*arrays)[i].data, (*reference)[i].data) << "byte " << position;
    }
}

TEST(Npz, WritesWhatItReads) {
  TemporaryFolder folder;
  std::vector<float> x = {1, -0.0f, std::numeric_limits<float>::infinity()};
  std::vector<uint8_t> flag = {1};
  std::vector<int64_t> dims = {3, 1}, empty = {0, 7};
  TensorView arrays[] = {{"x", program::F32, dims, x.data(), 12},
                         {"flag", program::BOOL, {}, flag.data(), 1},
                         {"nothing", program::I64, empty, nullptr, 0}};
  std::string path = folder.path("out.npz");
  ASSERT_TRUE(writeNpz(path, {arrays, 3}).ok());
  Result<std::vector<Array>> back = readArrays(path);
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->size(), 3u);
  EXPECT_EQ((*back)[0].dims, dims);
  EXPECT_EQ(values<float>((*back)[0]), x);
  EXPECT_TRUE((*back)[1].dims.empty());
  EXPECT_EQ((*back)[2].dims, empty);
  std::string first = readFile(path);
  ASSERT_TRUE(writeNpz(path, {arrays, 3}).ok());
  EXPECT_EQ(readFile(path), first);
  EXPECT_EQ(readArrays(folder.folder()).status().exitCode(), 6);
}

TEST(Npz, TypesThatNumPyLacksAreBytes) {
  TemporaryFolder folder;
  std::vector<uint8_t> codes = {0x38, 0x7e, 0xff};
  std::vector<int8_t> integers = {-8, 7, 0};
  std::vector<int64_t> dims = {3};
  TensorView arrays[] = {{"f", program::F8E4M3FN, dims, codes.data(), 3}, {"i", program::I4, dims, integers.data(), 3}};
  std::string path = folder.path("out.npz");
  ASSERT_TRUE(writeNpz(path, {arrays, 2}).ok());
  Result<std::vector<Array>> back = readArrays(path);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ((*back)[0].dtype, program::U8);
  EXPECT_EQ((*back)[0].data, codes);
  EXPECT_EQ((*back)[1].dtype, program::I8);
  for (const Array &array : *back)
    EXPECT_TRUE(compare({arrays, 2}, array, {}).ok());
  (*back)[1].data[0] = 1;
  EXPECT_EQ(compare({arrays, 2}, (*back)[1], {}).message(),
            "output 'i' differs in 1 of 3 elements, most at [0]: got -8, expected 1");
}

TEST(Array, ElementsBelowAByteAndShortFloats) {
  auto value = [](DType dtype, uint8_t code) { return elementAsDouble(dtype, &code, 0); };
  EXPECT_EQ(value(program::F8E4M3FN, 0x38), 1);
  EXPECT_EQ(value(program::F8E4M3FN, 0xfe), -448);
  EXPECT_EQ(value(program::F8E4M3FN, 0x01), 0x1p-9);
  EXPECT_TRUE(std::isnan(value(program::F8E4M3FN, 0x7f)));
  EXPECT_EQ(value(program::F8E4M3FNUZ, 0x40), 1);
  EXPECT_EQ(value(program::F8E4M3FNUZ, 0x7f), 240);
  EXPECT_TRUE(std::isnan(value(program::F8E4M3FNUZ, 0x80)));
  EXPECT_EQ(value(program::F8E5M2, 0x3c), 1);
  EXPECT_EQ(value(program::F8E5M2, 0xfc), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(value(program::F8E5M2, 0x7d)));
  EXPECT_EQ(value(program::F8E5M2FNUZ, 0x7f), 57344);
  EXPECT_EQ(value(program::F8E8M0, 0x80), 2);
  EXPECT_EQ(value(program::F8E8M0, 0), 0x1p-127);
  EXPECT_EQ(value(program::F4E2M1, 0xf), -6);
  EXPECT_EQ(value(program::F4E2M1, 1), 0.5);
  EXPECT_EQ(value(program::I4, 0xf8), -8);
  EXPECT_EQ(value(program::U2, 3), 3);
}

Array floatArray(const std::string &name, std::vector<float> values) {
  Array array{name, program::F32, {static_cast<int64_t>(values.size())}, {}};
  array.data.resize(values.size() * 4);
  std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

Status compareFloats(std::vector<float> got, std::vector<float> expected, const Tolerance &tolerance = {}) {
  Array left = floatArray("y", got), right = floatArray("y", expected);
  TensorView view{left.name, left.dtype, left.dims, left.data.data(), static_cast<int64_t>(left.data.size())};
  return compare({&view, 1}, right, tolerance);
}

TEST(Compare, ToleranceIsPerElementAndNonFiniteValuesMustAgree) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compareFloats({1.00005f, 1e-6f}, {1, 0}).ok());
  EXPECT_TRUE(compareFloats({nan, inf, -inf}, {nan, inf, -inf}).ok());
  Status status = compareFloats({1, 3, 2.5f}, {1, 2, 2});
  EXPECT_EQ(status.exitCode(), 1);
  EXPECT_EQ(status.message(), "output 'y' differs in 2 of 3 elements, most at [1]: got 3, expected 2");
  EXPECT_FALSE(compareFloats({nan}, {0}).ok());
  EXPECT_FALSE(compareFloats({0}, {nan}).ok());
  EXPECT_FALSE(compareFloats({inf}, {1e30f}).ok());
  EXPECT_FALSE(compareFloats({inf}, {-inf}).ok());
  EXPECT_FALSE(compareFloats({1, 2}, {1, 2, 3}).ok());
  EXPECT_EQ(compare({}, floatArray("z", {1}), {}).exitCode(), 8);
}

TEST(ParseValue, ListsScalarsAndLimits) {
  Result<Array> matrix = parseValue("x", "[[1, 2.5], [-3, 1e3]]", program::F32, 2);
  ASSERT_TRUE(matrix.ok()) << matrix.status().message();
  EXPECT_EQ(matrix->dims, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(values<float>(*matrix), (std::vector<float>{1, 2.5f, -3, 1000}));
  Result<Array> scalar = parseValue("x", "7", program::I64, 2);
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ(scalar->dims, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(values<int8_t>(*parseValue("x", "[-128, 127]", program::I8, 1)), (std::vector<int8_t>{-128, 127}));
  EXPECT_EQ(values<uint8_t>(*parseValue("x", "[true, false]", program::BOOL, 1)), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(parseValue("x", "[]", program::F32, 1)->dims, std::vector<int64_t>{0});
  for (const char *wrong : {"[1, 2", "128", "-129", "1.5", "\"1\"", "[1, [2]]", "[[1], [1, 2]]", "null"})
    EXPECT_EQ(parseValue("x", wrong, program::I8, 1).status().exitCode(), 2) << wrong;
}

TEST(ParseValue, IntegersBelowAByte) {
  EXPECT_EQ(values<int8_t>(*parseValue("x", "[-8, 7]", program::I4, 1)), (std::vector<int8_t>{-8, 7}));
  EXPECT_EQ(values<uint8_t>(*parseValue("x", "[0, 3]", program::U2, 1)), (std::vector<uint8_t>{0, 3}));
  EXPECT_EQ(parseValue("x", "8", program::I4, 0).status().exitCode(), 2);
  EXPECT_EQ(parseValue("x", "-1", program::U4, 0).status().exitCode(), 2);
  EXPECT_EQ(parseValue("x", "1.5", program::I2, 0).status().exitCode(), 2);
}

TEST(ParseValue, HalvesAreRoundedToNearestEven) {
  auto half = [](const char *text) { return values<uint16_t>(*parseValue("x", text, program::F16, 0))[0]; };
  EXPECT_EQ(half("1"), 0x3C00);
  EXPECT_EQ(half("-2"), 0xC000);
  EXPECT_EQ(half("65504"), 0x7BFF);
  EXPECT_EQ(half("65519"), 0x7BFF);
  EXPECT_EQ(half("65520"), 0x7C00);
  EXPECT_EQ(half("2049"), 0x6800);             // tie: 2048 is even
  EXPECT_EQ(half("2051"), 0x6802);             // tie: 2052 is even
  EXPECT_EQ(half("5.9604644775390625e-8"), 1); // least subnormal
  EXPECT_EQ(half("2.98e-8"), 0);
  EXPECT_EQ(half("6.103515625e-5"), 0x0400); // least normal
  auto bfloat = [](const char *text) { return values<uint16_t>(*parseValue("x", text, program::BF16, 0))[0]; };
  EXPECT_EQ(bfloat("1"), 0x3F80);
  EXPECT_EQ(bfloat("1.00390625"), 0x3F80); // tie
  EXPECT_EQ(bfloat("1.01171875"), 0x3F82); // tie
}

} // namespace
