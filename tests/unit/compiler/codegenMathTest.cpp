// Elementary functions: errors against the C library in double precision, the same bits for scalars, vectors and
// levels.
#include "tests/unit/compiler/codegenHarness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace codegen_test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// y = op(x) for vectors, z the same one element at a time (every second element of a wider row).
std::string unaryText(const std::string &op, const std::string &type) {
  std::string buffer = "!kernel.buffer<" + type + ">";
  auto func = [&](const std::string &name, const std::string &shape, const std::string &place) {
    return "kernel.func @" + name + " symbols [\"n\"] from \"\" {\n^bb0(%x: " + buffer + ", %y: " + buffer +
           "):\n  kernel.map domain [#transept.dim<n>] shapes [#transept.dims<" + shape +
           ">, #transept.dims<[n]>] ins(%x) outs(%y) {\n  ^bb1(%i: index, %xa: " + buffer +
           "):\n    %c0 = arith.constant 0 : index\n    %0 = kernel.load %xa[" + place + "] : " + buffer + " -> " +
           type + "\n    %1 = math." + op + " %0 : " + type + "\n    kernel.yield %1 : " + type + "\n  } : (" + buffer +
           ", " + buffer + ") -> ()\n}\n";
  };
  return func("vectors", "[n]", "%i") + func("scalars", "[n, 2]", "%i, %c0");
}

/// Distance in units in the last place of the result in float.
double error(float value, double expected) {
  if (std::isnan(expected) || std::isnan(value))
    return std::isnan(expected) == std::isnan(value) ? 0 : 1e30;
  if (std::isinf(value) || std::fabs(expected) > std::numeric_limits<float>::max())
    return value == float(expected) ? 0 : 1e30;
  double unit = std::fabs(expected) < 1.1754944e-38 ? 1.4e-45 : std::ldexp(1.0, std::ilogb(expected) - 23);
  return std::fabs(double(value) - expected) / unit;
}

struct Function {
  const char *op;
  double (*reference)(double);
  float low, high; // where the error is bounded
  double units;
};

double rsqrt(double x) { return 1 / std::sqrt(x); }
double roundEven(double x) { return std::nearbyint(x); }
const Function functions[] = {
    {"exp", std::exp, -110, 95, 1.5},
    {"expm1", std::expm1, -30, 89, 3},
    {"exp2", std::exp2, -150, 130, 1},
    {"log", std::log, 1e-44f, 1e38f, 1.5},
    {"log1p", std::log1p, -0.999f, 100, 3},
    {"log2", std::log2, 1e-44f, 1e38f, 1},
    {"log10", std::log10, 1e-44f, 1e38f, 1},
    {"tanh", std::tanh, -11, 11, 3},
    {"erf", std::erf, -5, 5, 3},
    {"sin", std::sin, -20000, 20000, 1.5},
    {"cos", std::cos, -20000, 20000, 1.5},
    {"tan", std::tan, -100, 100, 4},
    {"asin", std::asin, -1, 1, 4},
    {"acos", std::acos, -1, 1, 4},
    {"atan", std::atan, -50, 50, 4},
    {"sinh", std::sinh, -89, 89, 1},
    {"cosh", std::cosh, -89, 89, 1},
    {"asinh", std::asinh, -1000, 1000, 1},
    {"acosh", std::acosh, 1, 1000, 1},
    {"atanh", std::atanh, -0.9999f, 0.9999f, 1},
    {"rsqrt", rsqrt, 1e-30f, 1e30f, 1.5},
    {"floor", std::floor, -1e8f, 1e8f, 0},
    {"ceil", std::ceil, -1e8f, 1e8f, 0},
    {"trunc", std::trunc, -1e8f, 1e8f, 0},
    {"round", std::round, -1e8f, 1e8f, 0},
    {"roundeven", roundEven, -1e8f, 1e8f, 0},
};

class Math : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Math, testing::ValuesIn(runnableLevels()), [](const auto &info) {
  return info.param == "x86-64" ? std::string("baseline") : info.param;
});

TEST_P(Math, IsAccurateAndTheSameForScalars) {
  std::string all;
  for (const Function &function : functions)
    all += unaryText(function.op, "f32");
  std::string text;
  for (size_t i = 0, at = 0; (at = all.find("@", i)) != std::string::npos; i = at + 1)
    text += all.substr(i, at + 1 - i) + "k" + std::to_string(at);
  text += all.substr(all.rfind('@') + 1);
  Kernels kernels(text, GetParam());
  bool fused = GetParam() != "x86-64";
  const int64_t n = 40000;
  unsigned index = 0;
  for (const Function &function : functions) {
    Array<float> x(n), wide(2 * n), y(n), z(n);
    std::mt19937 generator(1);
    for (int64_t i = 0; i < n; ++i) {
      // A third each: evenly spread, small numbers of all sizes, random bits.
      double t = double(generator()) / double(UINT32_MAX);
      uint32_t bits = uint32_t(generator());
      std::memcpy(&x[i], &bits, 4);
      if (i % 3 == 0)
        x[i] = float(function.low + (double(function.high) - function.low) * t);
      else if (i % 3 == 1)
        x[i] = float(std::ldexp(generator() % 2 ? t : -t, -int(generator() % 40)));
    }
    const float special[] = {0.0f, -0.0f, infinity, -infinity, std::nanf(""), 1.0f, -1.0f, 0.5f, -0.5f, 2.5f, 3.4e38f};
    std::copy(std::begin(special), std::end(special), x.begin());
    for (int64_t i = 0; i < n; ++i)
      wide[2 * i] = x[i];
    kernels.run(index++, {x.data(), y.data()}, {n});
    kernels.run(index++, {wide.data(), z.data()}, {n});
    EXPECT_EQ(std::memcmp(y.data(), z.data(), n * 4), 0) << function.op;
    double worst = 0;
    float where = 0;
    for (int64_t i = 0; i < n; ++i) {
      // Outside, only that infinities and NaN are what they should be.
      bool bounded = (x[i] >= function.low && x[i] <= function.high) || i < int64_t(std::size(special));
      bool turns =
          function.op == std::string("sin") || function.op == std::string("cos") || function.op == std::string("tan");
      if (!bounded && (turns || std::isfinite(function.reference(x[i]))))
        continue;
      if (turns && std::fabs(x[i]) > 1e30)
        continue;
      double units = error(y[i], function.reference(x[i]));
      if (units > worst) {
        worst = units;
        where = x[i];
      }
    }
    EXPECT_LE(worst, fused ? function.units : function.units * 2) << function.op << " of " << where;
    RecordProperty(function.op, std::to_string(worst));
  }
}

TEST(MathLevels, FusedLevelsAgreeInEveryBit) {
  Array<float> x = randomFloats(4000, 3, 30);
  for (const char *op : {"exp", "log1p", "tanh", "erf", "sin", "cos", "atan", "asinh"}) {
    std::vector<float> first;
    for (const std::string &level : fusedLevels()) {
      Kernels kernels(unaryText(op, "f32"), level);
      Array<float> y(x.size());
      kernels.run(0, {x.data(), y.data()}, {int64_t(x.size())});
      if (first.empty())
        first.assign(y.begin(), y.end());
      EXPECT_EQ(std::memcmp(first.data(), y.data(), y.size() * 4), 0) << op;
    }
  }
}

TEST_P(Math, IsAccurateInDouble) {
  for (const Function &function : functions) {
    Kernels kernels(unaryText(function.op, "f64"), GetParam());
    const int64_t n = 3000;
    Array<double> x(n), y(n);
    std::mt19937 generator(1);
    double low = std::max<double>(function.low, -700), high = std::min<double>(function.high, 700);
    for (double &value : x)
      value = low + (high - low) * double(generator()) / double(UINT32_MAX);
    kernels.run(0, {x.data(), y.data()}, {n});
    // asin, acos, atan have the coefficients of f32.
    bool single = std::string(function.op).rfind('a', 0) == 0 && std::string(function.op).back() != 'h';
    for (int64_t i = 0; i < n; ++i) {
      double expected = function.reference(x[i]);
      ASSERT_NEAR(y[i], expected, (single ? 1e-7 : 1e-12) * std::max(1.0, std::fabs(expected))) << function.op << x[i];
    }
  }
}

TEST_P(Math, RaisesToPowers) {
  std::string text = R"(
kernel.func @k symbols ["n"] from "" {
^bb0(%x: !kernel.buffer<f32>, %e: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %z: !kernel.buffer<f32>, %a: !kernel.buffer<f32>):
  kernel.map domain [#transept.dim<n>] shapes [#transept.dims<[n]>, #transept.dims<[n]>, #transept.dims<[n]>, #transept.dims<[n]>, #transept.dims<[n]>] ins(%x, %e) outs(%y, %z, %a) {
  ^bb1(%i: index, %xa: !kernel.buffer<f32>, %ea: !kernel.buffer<f32>):
    %0 = kernel.load %xa[%i] : !kernel.buffer<f32> -> f32
    %1 = kernel.load %ea[%i] : !kernel.buffer<f32> -> f32
    %2 = math.powf %0, %1 : f32
    %3 = arith.remf %0, %1 : f32
    %4 = math.atan2 %0, %1 : f32
    kernel.yield %2, %3, %4 : f32, f32, f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
})";
  Kernels kernels(text, GetParam());
  const float nan = std::nanf("");
  const float values[] = {0.0f,  -0.0f, 1.0f,  -1.0f,  2.0f,   -2.0f,    0.5f,      -0.5f, 3.0f,
                          -3.0f, 2.5f,  1e10f, -1e10f, 1e-20f, infinity, -infinity, nan};
  const int64_t count = std::size(values), n = count * count + 2000;
  Array<float> x = randomFloats(n, 1, 20), e = randomFloats(n, 2, 10), y(n), z(n), a(n);
  for (int64_t i = 0; i < count * count; ++i) {
    x[i] = values[i / count];
    e[i] = values[i % count];
  }
  kernels.run(0, {x.data(), e.data(), y.data(), z.data(), a.data()}, {n});
  for (int64_t i = 0; i < n; ++i) {
    double power = std::pow(double(x[i]), double(e[i]));
    if (std::fabs(power) < 3.4e38 || std::isinf(power) || std::isnan(power))
      EXPECT_LE(error(y[i], power), 1) << x[i] << " to the " << e[i];
    EXPECT_EQ(std::signbit(y[i]), std::isnan(power) ? std::signbit(y[i]) : std::signbit(power))
        << x[i] << " to the " << e[i];
    double rest = std::fmod(double(x[i]), double(e[i]));
    if (std::isnan(rest) || std::fabs(x[i] / e[i]) < 1e8)
      EXPECT_LE(error(z[i], rest), 0) << x[i] << " mod " << e[i];
    EXPECT_LE(error(a[i], std::atan2(double(x[i]), double(e[i]))), 4) << x[i] << " over " << e[i];
  }
}

// Every f16 and bf16 there is, there and back, and rounding from f32 and f64.
TEST_P(Math, ConvertsShortFloats) {
  std::string text = R"(
kernel.func @k symbols ["n"] from "" {
^bb0(%h: !kernel.buffer<f16>, %x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %z: !kernel.buffer<f16>, %d: !kernel.buffer<f16>):
  kernel.map domain [#transept.dim<n>] shapes [#transept.dims<[n]>, #transept.dims<[n]>, #transept.dims<[n]>, #transept.dims<[n]>, #transept.dims<[n]>] ins(%h, %x) outs(%y, %z, %d) {
  ^bb1(%i: index, %ha: !kernel.buffer<f16>, %xa: !kernel.buffer<f32>):
    %0 = kernel.load %ha[%i] : !kernel.buffer<f16> -> f16
    %1 = arith.extf %0 : f16 to f32
    %2 = kernel.load %xa[%i] : !kernel.buffer<f32> -> f32
    %3 = arith.truncf %2 : f32 to f16
    %4 = arith.extf %2 : f32 to f64
    %k = arith.constant 1.0000000001 : f64
    %5 = arith.mulf %4, %k : f64
    %6 = arith.truncf %5 : f64 to f16
    kernel.yield %1, %3, %6 : f32, f16, f16
  } : (!kernel.buffer<f16>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f16>, !kernel.buffer<f16>) -> ()
})";
  Kernels kernels(text, GetParam());
  const int64_t n = 1 << 16;
  Array<uint16_t> h(n), z(n), d(n);
  Array<float> x(n), y(n);
  std::mt19937 generator(1);
  for (int64_t i = 0; i < n; ++i) {
    h[i] = uint16_t(i);
    uint32_t bits = uint32_t(generator());
    if (i % 2) // near what f16 holds, ties included
      bits =
          (bits & 0x80000000) | (uint32_t(100 + bits % 46) << 23) | (bits >> 4 & 0x7ff000) | (i % 3 ? 0 : bits & 0xfff);
    std::memcpy(&x[i], &bits, 4);
  }
  kernels.run(0, {h.data(), x.data(), y.data(), z.data(), d.data()}, {n});
  auto value = [](uint16_t bits) {
    _Float16 half;
    std::memcpy(&half, &bits, 2);
    return half;
  };
  for (int64_t i = 0; i < n; ++i) {
    float expected = float(value(h[i]));
    ASSERT_TRUE(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected))) << i;
    _Float16 narrow = _Float16(x[i]), fromDouble = _Float16(double(x[i]) * 1.0000000001);
    ASSERT_TRUE(value(z[i]) == narrow || (std::isnan(x[i]) && std::isnan(float(value(z[i]))))) << x[i];
    ASSERT_TRUE(value(d[i]) == fromDouble || (std::isnan(x[i]) && std::isnan(float(value(d[i]))))) << x[i];
  }
}

} // namespace
