// Ops that become maps, against the interpreter.
#include "tests/unit/compiler/formHarness.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace form_test;
using mlir::transept::HostTensor;

namespace {

/// A function of one op on operands of these types.
std::string oneOp(const std::string &op, const std::vector<std::string> &types, const std::string &result,
                  const std::string &attributes = "", const std::string &prefix = "") {
  std::string arguments, operands, list;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string separator = i ? ", " : "";
    arguments +=
        separator + "%a" + std::to_string(i) + ": " + types[i] + " {transept.name = \"a" + std::to_string(i) + "\"}";
    operands += separator + "%a" + std::to_string(i);
    list += separator + types[i];
  }
  return "func.func @main(" + arguments + ") -> (" + result + " {transept.name = \"y\"}) {\n  %y = transept." + op +
         " " + prefix + operands + " " + attributes + " : (" + list + ") -> " + result + "\n  return %y : " + result +
         "\n}\n";
}

TEST(FormMap, UnaryFloats) {
  for (std::string op : {"neg",  "abs",     "sign", "sqrt", "reciprocal", "exp",   "log",   "sin",  "cos", "erf",
                         "tanh", "sigmoid", "relu", "silu", "floor",      "ceil",  "round", "gelu", "tan", "asin",
                         "acos", "atan",    "sinh", "cosh", "asinh",      "acosh", "atanh", "log1p"}) {
    SCOPED_TRACE(op);
    expectSame(oneOp(op, {"tensor<3x37xf32>"}, "tensor<3x37xf32>"), {"tensor<3x37xf32>"}, 1e-5);
  }
  expectSame(oneOp("gelu", {"tensor<37xf32>"}, "tensor<37xf32>", "{approximate = \"tanh\"}"), {"tensor<37xf32>"}, 1e-5);
}

TEST(FormMap, BinaryOpsBroadcast) {
  for (std::string op : {"add", "sub", "mul", "div", "min", "max"}) {
    SCOPED_TRACE(op);
    std::vector<std::string> types = {"tensor<3x1x20xf32>", "tensor<5x20xf32>"};
    expectSame(oneOp(op, types, "tensor<3x5x20xf32>"), types);
  }
}

TEST(FormMap, IntegersTruncateAndWrap) {
  auto inputs = [](Program &p) {
    return Tensors{p.ints("tensor<6xi32>", {7, -7, 7, -7, -2147483648, 5}),
                   p.ints("tensor<6xi32>", {2, 2, -2, -2, -1, 3})};
  };
  for (std::string op : {"add", "sub", "mul", "div", "mod", "min", "max"}) {
    SCOPED_TRACE(op);
    expectSame(oneOp(op, {"tensor<6xi32>", "tensor<6xi32>"}, "tensor<6xi32>"), inputs);
  }
  expectSame(oneOp("mod", {"tensor<6xi32>", "tensor<6xi32>"}, "tensor<6xi32>", "{fmod = 1 : i64}"), inputs);
}

TEST(FormMap, InverseFunctionsInDoublePrecision) {
  for (std::string op : {"tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "log1p"}) {
    SCOPED_TRACE(op);
    expectSame(oneOp(op, {"tensor<3x37xf64>"}, "tensor<3x37xf64>"), {"tensor<3x37xf64>"}, 1e-12);
  }
}

TEST(FormMap, Bits) {
  for (std::string element : {"i8", "i32", "ui8", "ui16", "ui64"}) {
    std::string type = "tensor<3x20x" + element + ">";
    auto inputs = [&](Program &p) { return Tensors{p.random(type, 1, 120), p.random(type, 2, 70)}; };
    for (std::string op : {"bitwise_and", "bitwise_or", "bitwise_xor", "bit_shift"}) {
      SCOPED_TRACE(op + " " + element);
      expectSame(oneOp(op, {type, type}, type), inputs);
    }
    expectSame(oneOp("bit_shift", {type, type}, type, "{right}"), inputs);
    expectSame(oneOp("bitwise_not", {type}, type), [&](Program &p) { return Tensors{p.random(type, 1, 120)}; });
  }
  const char *casts[][2] = {{"f32", "i32"}, {"i64", "f64"}, {"ui16", "f16"}, {"i8", "ui8"}, {"i1", "ui8"}};
  for (auto [from, to] : casts) {
    std::string input = std::string("tensor<3x20x") + from + ">", result = std::string("tensor<3x20x") + to + ">";
    expectSame(oneOp("bit_cast", {input}, result, std::string("{to = ") + to + "}"), [&, from = from](Program &p) {
      return Tensors{p.random(input, 1, from == std::string("i1") ? 2 : 100)};
    });
  }
}

TEST(FormMap, PowersOfIntegersAndFloats) {
  expectSame(oneOp("pow", {"tensor<6xi32>", "tensor<6xi32>"}, "tensor<6xi32>"), [](Program &p) {
    return Tensors{p.ints("tensor<6xi32>", {3, -2, 1, -1, 7, 0}), p.ints("tensor<6xi32>", {5, 3, -4, -3, -1, 0})};
  });
  std::vector<std::string> types = {"tensor<20xf32>", "tensor<i32>"};
  expectSame(oneOp("pow", types, "tensor<20xf32>"), types, 1e-5);
}

TEST(FormMap, FloatRemainderTakesTheSignOfTheDivisor) {
  std::vector<std::string> types = {"tensor<50xf32>", "tensor<50xf32>"};
  expectSame(oneOp("mod", types, "tensor<50xf32>"), types, 1e-5);
  expectSame(oneOp("mod", types, "tensor<50xf32>", "{fmod = 1 : i64}"), types, 1e-5);
}

TEST(FormMap, Comparisons) {
  for (std::string op : {"equal", "less", "less_or_equal", "greater", "greater_or_equal"})
    for (std::string element : {"f32", "i64", "ui8"}) {
      SCOPED_TRACE(op + " " + element);
      std::string type = "tensor<4x30x" + element + ">";
      expectSame(oneOp(op, {type, type}, "tensor<4x30xi1>"),
                 [&](Program &p) { return Tensors{p.random(type, 1, 3), p.random(type, 2, 3)}; });
    }
}

TEST(FormMap, Logic) {
  for (std::string op : {"and", "or", "xor"}) {
    std::vector<std::string> types = {"tensor<40xi1>", "tensor<40xi1>"};
    expectSame(oneOp(op, types, "tensor<40xi1>"),
               [&](Program &p) { return Tensors{p.random(types[0], 1, 2), p.random(types[1], 2, 2)}; });
  }
  std::vector<std::string> types = {"tensor<5x1xi1>", "tensor<5x30xf32>", "tensor<f32>"};
  expectSame(oneOp("where", types, "tensor<5x30xf32>"), [&](Program &p) {
    return Tensors{p.random(types[0], 1, 2), p.random(types[1], 2), p.random(types[2], 3)};
  });
}

TEST(FormMap, Casts) {
  const char *types[] = {"f32", "f64", "f16", "bf16", "i8", "i32", "i64", "ui8", "i1"};
  for (std::string from : types)
    for (std::string to : types) {
      if (from == to)
        continue;
      SCOPED_TRACE(from + " to " + to);
      std::string input = "tensor<3x20x" + from + ">", result = "tensor<3x20x" + to + ">";
      expectSame(oneOp("cast", {input}, result, "{to = " + to + "}"),
                 [&](Program &p) { return Tensors{p.random(input, 1, from == "i1" ? 2 : 100)}; });
    }
}

/// Every code of an element type below a byte, or of 8-bit floats.
HostTensor allCodes(Program &p, const std::string &type) {
  HostTensor tensor = p.random(type, 1, 1);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.data()[i] = static_cast<char>(i);
  return tensor;
}

TEST(FormMap, NarrowFloatsAreDecodedAndCoded) {
  std::vector<double> values = {INFINITY, -INFINITY, NAN, -0.0, 1e-45, 3e38,  1e30, -1e30,
                                448,      449,       463, 465,  57344, 61440, 6,    7};
  for (int exponent = -20; exponent < 18; ++exponent)
    for (double mantissa : {1.0, 1.0625, 1.125, 1.1875, 1.25, 1.3, 1.374, 1.376, 1.625, 1.75, 1.874, 1.9375, -1.4375})
      values.push_back(std::ldexp(mantissa, exponent));
  std::string count = std::to_string(values.size()), input = "tensor<" + count + "xf32>";
  for (std::string to : {"f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "!transept.f4e2m1", "!transept.f8e8m0"}) {
    SCOPED_TRACE(to);
    std::string codes = to == "!transept.f4e2m1" ? "16" : "256";
    expectSame(oneOp("cast", {"tensor<" + codes + "x" + to + ">"}, "tensor<" + codes + "xf32>", "{to = f32}"),
               [&](Program &p) { return Tensors{allCodes(p, "tensor<" + codes + "x" + to + ">")}; });
    for (std::string attributes : {"", ", saturate = false", ", round = \"up\"", ", round = \"down\""})
      expectSame(oneOp("cast", {input}, "tensor<" + count + "x" + to + ">", "{to = " + to + attributes + "}"),
                 [&](Program &p) {
                   HostTensor tensor = p.random(input, 1);
                   for (auto [i, value] : llvm::enumerate(values))
                     tensor.setDouble(i, value);
                   return Tensors{tensor};
                 });
  }
}

TEST(FormMap, IntegersBelowAByteWrap) {
  for (std::string to : {"i4", "ui4", "i2", "ui2"})
    for (std::string from : {"f32", "i8", "i64", "ui8"}) {
      SCOPED_TRACE(from + " to " + to);
      std::string input = "tensor<40x" + from + ">", narrow = "tensor<40x" + to + ">";
      auto inputs = [&](Program &p) { return Tensors{p.random(input, 1, 100)}; };
      expectSame(oneOp("cast", {input}, narrow, "{to = " + to + "}"), inputs);
      expectSame(oneOp("cast", {narrow}, input, "{to = " + from + "}"),
                 [&](Program &p) { return Tensors{p.random(narrow, 1, 16)}; });
    }
}

TEST(FormMap, ShortFloatsAreComputedWideAndRounded) {
  for (std::string element : {"f16", "bf16"}) {
    std::string type = "tensor<3x37x" + element + ">";
    expectSame(oneOp("mul", {type, type}, type), {type, type});
    expectSame(oneOp("tanh", {type}, type), {type}, 1e-2);
  }
}

//===- Movement -------------------------------------------------------------------------------------------------===//

TEST(FormMap, TransposeAndBroadcast) {
  expectSame(oneOp("transpose", {"tensor<2x3x20xf32>"}, "tensor<20x2x3xf32>", "{permutation = array<i64: 2, 0, 1>}"),
             {"tensor<2x3x20xf32>"});
  expectSame(oneOp("broadcast", {"tensor<3x1xi64>"}, "tensor<2x3x20xi64>"), {"tensor<3x1xi64>"});
  expectSame(oneOp("tile", {"tensor<3x7xf32>"}, "tensor<6x21xf32>"), {"tensor<3x7xf32>"});
}

TEST(FormMap, SlicesRunBackwardsToo) {
  expectSame(oneOp("slice", {"tensor<10x20xf32>"}, "tensor<3x20xf32>",
                   "{starts = [#transept.dim<8>, #transept.dim<0>], steps = array<i64: -3, 1>}"),
             {"tensor<10x20xf32>"});
}

TEST(FormMap, Concat) {
  std::vector<std::string> types = {"tensor<2x3x5xf32>", "tensor<2x1x5xf32>", "tensor<2x4x5xf32>"};
  expectSame(oneOp("concat", types, "tensor<2x8x5xf32>", "{axis = 1 : i64}"), types);
  types = {"tensor<2x3xi64>", "tensor<2x20xi64>"};
  expectSame(oneOp("concat", types, "tensor<2x23xi64>", "{axis = -1 : i64}"), types);
}

TEST(FormMap, PadsOfAllModes) {
  for (std::string mode : {"constant", "edge", "reflect", "wrap"}) {
    SCOPED_TRACE(mode);
    expectSame(oneOp("pad", {"tensor<4x20xf32>"}, "tensor<7x25xf32>", "{low = [#transept.dim<2>, #transept.dim<0>]}",
                     mode + " "),
               {"tensor<4x20xf32>"});
  }
}

TEST(FormMap, Triangles) {
  for (std::string attributes : {"{upper = true, k = 1 : i64}", "{upper = false, k = -2 : i64}"})
    expectSame(oneOp("trilu", {"tensor<2x9x20xf32>"}, "tensor<2x9x20xf32>", attributes), {"tensor<2x9x20xf32>"});
}

TEST(FormMap, Gathers) {
  expectSame(oneOp("gather", {"tensor<4x10x6xf32>", "tensor<2x3xi64>"}, "tensor<4x2x3x6xf32>", "{axis = 1 : i64}"),
             [](Program &p) {
               return Tensors{p.random("tensor<4x10x6xf32>", 1), p.ints("tensor<2x3xi64>", {0, 9, -1, -10, 5, 3})};
             });
  expectSame(oneOp("gather_elements", {"tensor<4x10xf32>", "tensor<4x3xi32>"}, "tensor<4x3xf32>", "{axis = 1 : i64}"),
             [](Program &p) { return Tensors{p.random("tensor<4x10xf32>", 1), p.random("tensor<4x3xi32>", 2)}; });
  expectSame(
      oneOp("gather_nd", {"tensor<2x4x10x6xf32>", "tensor<2x5x2xi64>"}, "tensor<2x5x6xf32>", "{batchDims = 1 : i64}"),
      [](Program &p) { return Tensors{p.random("tensor<2x4x10x6xf32>", 1), p.random("tensor<2x5x2xi64>", 2, 4)}; });
}

TEST(FormMap, GatherOutOfRangeNamesTheNode) {
  Program program(R"(
func.func @main(%data: tensor<4xf32> {transept.name = "data"}, %at: tensor<2xi64> {transept.name = "at"})
    -> (tensor<2xf32> {transept.name = "y"}) {
  %y = transept.gather %data, %at {axis = 0 : i64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32> loc("emb/Gather")
  return %y : tensor<2xf32>
})");
  ASSERT_EQ(program.plan(), "");
  program.run({program.random("tensor<4xf32>", 1), program.ints("tensor<2xi64>", {1, -7})});
  EXPECT_NE(program.lastError.find("Gather node 'emb/Gather' reads index -7 outside [-4, 3]"), std::string::npos)
      << program.lastError;
}

TEST(FormMap, Scatters) {
  for (std::string kind : {"replace", "add", "mul", "max", "min"}) {
    SCOPED_TRACE(kind);
    expectSame(oneOp("scatter_nd", {"tensor<6x5xf32>", "tensor<3x1xi64>", "tensor<3x5xf32>"}, "tensor<6x5xf32>", "",
                     kind + " "),
               [](Program &p) {
                 return Tensors{p.random("tensor<6x5xf32>", 1), p.ints("tensor<3x1xi64>", {4, 1, -2}),
                                p.random("tensor<3x5xf32>", 3)};
               });
  }
}

TEST(FormMap, SizesAndPositionsAsData) {
  expectSame(R"(
#d = #transept.dims<[batch, source]>
func.func @main(%x: tensor<?x?xf32, #d> {transept.name = "x"}) -> (tensor<?xi64, #transept.dims<[source]>> {transept.name = "range"}, tensor<3xi64> {transept.name = "dims"}, tensor<?x?xf32, #d> {transept.name = "fill"}) {
  %0 = transept.range {startDim = #transept.dim<batch>, stepValue = 2 : i64} : () -> tensor<?xi64, #transept.dims<[source]>>
  %1 = transept.dim_value [#transept.dim<batch>, #transept.dim<source>, #transept.dim<batch * source + 1>] : tensor<3xi64>
  %2 = transept.fill dense<2.5> : tensor<1xf32> : () -> tensor<?x?xf32, #d>
  return %0, %1, %2 : tensor<?xi64, #transept.dims<[source]>>, tensor<3xi64>, tensor<?x?xf32, #d>
})",
             {"tensor<3x7xf32>"});
}

//===- Loops ------------------------------------------------------------------------------------------------------===//

TEST(FormMap, ReductionsOverAnyAxes) {
  for (std::string kind : {"sum", "mean", "max", "min", "prod", "sum_square", "l1", "l2", "log_sum_exp"})
    for (std::string axes : {"0", "1, 2", "0, 2", "2"}) {
      SCOPED_TRACE(kind + " over " + axes);
      std::string result = axes == "0"      ? "tensor<1x5x37xf32>"
                           : axes == "1, 2" ? "tensor<3x1x1xf32>"
                           : axes == "2"    ? "tensor<3x5x1xf32>"
                                            : "tensor<1x5x1xf32>";
      expectSame(oneOp("reduce", {"tensor<3x5x37xf32>"}, result,
                       "{axes = array<i64: " + axes + ">, keepdims = true, noopWithEmptyAxes = false}", kind + " "),
                 {"tensor<3x5x37xf32>"}, 1e-5);
    }
  expectSame(oneOp("reduce", {"tensor<3x5xi64>"}, "tensor<3xi64>",
                   "{axes = array<i64: 1>, keepdims = false, noopWithEmptyAxes = false}", "mean "),
             {"tensor<3x5xi64>"});
}

TEST(FormMap, ArgMaxAndRunningSums) {
  for (std::string last : {"true", "false"})
    expectSame(oneOp("argmax", {"tensor<4x9x3xi32>"}, "tensor<4x3xi64>",
                     "{axis = 1 : i64, keepdims = false, selectLastIndex = " + last + "}"),
               {"tensor<4x9x3xi32>"});
  for (std::string last : {"true", "false"})
    expectSame(oneOp("argmax", {"tensor<4x9x3xui8>"}, "tensor<4x3xi64>",
                     "{axis = 1 : i64, keepdims = false, selectLastIndex = " + last + ", smallest}"),
               {"tensor<4x9x3xui8>"});
  for (std::string exclusive : {"true", "false"})
    for (std::string reverse : {"true", "false"})
      expectSame(oneOp("cumsum", {"tensor<4x9xf32>"}, "tensor<4x9xf32>",
                       "{axis = 1 : i64, exclusive = " + exclusive + ", reverse = " + reverse + "}"),
                 {"tensor<4x9xf32>"}, 1e-5);
  expectSame(oneOp("cumsum", {"tensor<4x9xf32>"}, "tensor<4x9xf32>",
                   "{axis = 0 : i64, exclusive = true, reverse = false, product}"),
             {"tensor<4x9xf32>"}, 1e-5);
}

TEST(FormMap, AnAxisAndADiagonalThatAreInputs) {
  for (int64_t axis : {0, 1, -1, -3})
    expectSame(
        oneOp("cumsum", {"tensor<4x5x6xf32>", "tensor<i32>"}, "tensor<4x5x6xf32>",
              "{exclusive = false, reverse = true}"),
        [&](Program &p) { return Tensors{p.random("tensor<4x5x6xf32>", 1), p.ints("tensor<i32>", {axis})}; }, 1e-5);
  for (int64_t k : {int64_t(0), int64_t(2), int64_t(-3), INT64_MAX, INT64_MIN})
    expectSame(oneOp("trilu", {"tensor<4x6xf32>", "tensor<i64>"}, "tensor<4x6xf32>", "{upper = false}"),
               [&](Program &p) { return Tensors{p.random("tensor<4x6xf32>", 1), p.ints("tensor<i64>", {k})}; });
}

TEST(FormMap, ProductsOfTwoInputs) {
  std::vector<std::string> types = {"tensor<2x1x3x20xf32>", "tensor<5x20x33xf32>"};
  expectSame(oneOp("matmul", types, "tensor<2x5x3x33xf32>"), types, 1e-5);
  types = {"tensor<20xf32>", "tensor<20x33xf32>"};
  expectSame(oneOp("matmul", types, "tensor<33xf32>"), types, 1e-5);
  types = {"tensor<3x20xf32>", "tensor<20xf32>"};
  expectSame(oneOp("matmul", types, "tensor<3xf32>"), types, 1e-5);
}

} // namespace
