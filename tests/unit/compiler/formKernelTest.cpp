// Ops that become contractions, rows and attention, and what is fused with them, against the interpreter.
#include "tests/unit/compiler/formHarness.h"
#include <gtest/gtest.h>

using namespace form_test;

namespace {

/// A [rows, columns] constant with different elements, as text.
std::string matrix(int rows, int columns, double seed) {
  std::string text = "dense<[";
  for (int i = 0; i < rows; ++i) {
    text += i ? ", [" : "[";
    for (int j = 0; j < columns; ++j)
      text += (j ? ", " : "") + std::to_string(((i * 37 + j * 11) % 23 - 11) * 0.05 + seed);
    text += "]";
  }
  return text + "]> : tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
}
std::string vector(int size, double seed) {
  std::string text = "dense<[";
  for (int j = 0; j < size; ++j)
    text += (j ? ", " : "") + std::to_string(((j * 7) % 13 - 6) * 0.1 + seed);
  return text + "]> : tensor<" + std::to_string(size) + "xf32>";
}

const std::string bsn8 = "tensor<?x?x8xf32, #transept.dims<[batch, source, 8]>>";
const std::string bsn70 = "tensor<?x?x70xf32, #transept.dims<[batch, source, 70]>>";

//===- Contractions -----------------------------------------------------------------------------------------------===//

const std::string mlp =
    "func.func @main(%x: " + bsn8 + " {transept.name = \"x\"}) -> (" + bsn8 + " {transept.name = \"y\"}) {\n" + //
    "  %w0 = transept.constant " + matrix(8, 70, 0.01) + "\n" +                                                 //
    "  %w1 = transept.constant " + matrix(8, 70, -0.02) + "\n" +                                                //
    "  %b0 = transept.constant " + vector(70, 0.3) + "\n" +                                                     //
    "  %b1 = transept.constant " + vector(8, -0.1) + "\n" +                                                     //
    "  %half = transept.constant dense<0.5> : tensor<f32>\n" +                                                  //
    "  %0 = transept.linear %x, %w0, %b0 : (" + bsn8 + ", tensor<8x70xf32>, tensor<70xf32>) -> " + bsn70 + "\n" +
    "  %1 = transept.gelu %0 : (" + bsn70 + ") -> " + bsn70 + "\n" +
    "  %2 = transept.linear %1, %w1, %b1 {transposed} : (" + bsn70 + ", tensor<8x70xf32>, tensor<8xf32>) -> " + bsn8 +
    "\n" + "  %3 = transept.mul %2, %half : (" + bsn8 + ", tensor<f32>) -> " + bsn8 + "\n" +
    "  %4 = transept.add %3, %x : (" + bsn8 + ", " + bsn8 + ") -> " + bsn8 + "\n" + "  return %4 : " + bsn8 + "\n}\n";

TEST(FormContract, TakesBiasActivationScaleAndResidual) {
  expectSame(mlp, {"tensor<3x5x8xf32>"}, 1e-5);
  Program program(mlp);
  ASSERT_EQ(program.form(), "");
  EXPECT_EQ(program.count("kernel.contract"), 2);
  EXPECT_EQ(program.count("kernel.map"), 0);
}

TEST(FormContract, KeepsAResultThatOthersReadOutOfTheEpilogue) {
  std::string text =
      "func.func @main(%x: tensor<3x8xf32> {transept.name = \"x\"}) -> (tensor<3x4xf32> {transept.name = \"y\"}, "
      "tensor<3x4xf32> {transept.name = \"z\"}) {\n  %w = transept.constant " +
      matrix(8, 4, 0) +
      "\n  %0 = transept.matmul %x, %w : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>\n"
      "  %1 = transept.relu %0 : (tensor<3x4xf32>) -> tensor<3x4xf32>\n"
      "  return %0, %1 : tensor<3x4xf32>, tensor<3x4xf32>\n}\n";
  expectSame(text, {"tensor<3x8xf32>"}, 1e-5);
  Program program(text);
  ASSERT_EQ(program.form(), "");
  EXPECT_EQ(program.count("kernel.map"), 1);
}

std::string projections(const std::string &between) {
  std::string type = "tensor<3x8xf32>", text = "func.func @main(%x: " + type + " {transept.name = \"x\"}) -> (";
  for (int i = 0; i < 3; ++i)
    text += (i ? ", " : "") + type + " {transept.name = \"y" + std::to_string(i) + "\"}";
  text += ") {\n";
  for (int i = 0; i < 3; ++i) {
    std::string n = std::to_string(i);
    text += "  %w" + n + " = transept.constant " + matrix(8, 8, 0.1 * i) + "\n  %b" + n + " = transept.constant " +
            vector(8, 0.1 * i) + "\n  %y" + n + " = transept.linear " + (i == 2 && !between.empty() ? between : "%x") +
            ", %w" + n + ", %b" + n + " : (" + type + ", tensor<8x8xf32>, tensor<8xf32>) -> " + type + "\n";
  }
  return text + "  return %y0, %y1, %y2 : " + type + ", " + type + ", " + type + "\n}\n";
}

TEST(FormContract, ProjectionsOfTheSameRowsAreOne) {
  expectSame(projections(""), {"tensor<3x8xf32>"}, 1e-5);
  Program program(projections(""));
  ASSERT_EQ(program.form(), "");
  EXPECT_EQ(program.count("kernel.contract"), 1);
  EXPECT_NE(program.print().find("parts [8, 8, 8]"), std::string::npos);
}

TEST(FormContract, ProjectionsOfOtherRowsStayApart) {
  expectSame(projections("%y1"), {"tensor<3x8xf32>"}, 1e-5);
  Program program(projections("%y1"));
  ASSERT_EQ(program.form(), "");
  EXPECT_EQ(program.count("kernel.contract"), 2);
}

TEST(FormContract, AMatrixThatIsNoConstantIsMultipliedInLoops) {
  std::string text =
      "func.func @main(%x: tensor<3x8xf32> {transept.name = \"x\"}, %w: tensor<4x8xf32> {transept.name = \"w\"}, "
      "%b: tensor<4xf32> {transept.name = \"b\"}) -> (tensor<3x4xf32> {transept.name = \"y\"}) {\n"
      "  %0 = transept.linear %x, %w, %b {transposed} : (tensor<3x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> "
      "tensor<3x4xf32>\n"
      "  return %0 : tensor<3x4xf32>\n}\n";
  expectSame(text, {"tensor<3x8xf32>", "tensor<4x8xf32>", "tensor<4xf32>"}, 1e-5);
}

TEST(FormContract, ATiedTableIsStoredOnce) {
  std::string text =
      "func.func @main(%at: tensor<2x3xi64> {transept.name = \"at\"}) -> (tensor<2x3x70xf32> {transept.name = \"y\"}) "
      "{\n"
      "  %table = transept.constant " +
      matrix(70, 8, 0) +
      "\n"
      "  %0 = transept.gather %table, %at {axis = 0 : i64} : (tensor<70x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>\n"
      "  %1 = transept.linear %0, %table {transposed} : (tensor<2x3x8xf32>, tensor<70x8xf32>) -> tensor<2x3x70xf32>\n"
      "  return %1 : tensor<2x3x70xf32>\n}\n";
  expectSame(text, [](Program &p) { return Tensors{p.ints("tensor<2x3xi64>", {0, 69, 64, 63, -1, 12})}; }, 1e-5);
  Program program(text);
  ASSERT_EQ(program.form(), "");
  EXPECT_EQ(program.count("kernel.constant"), 1);
}

TEST(FormContract, ExactIntegerProducts) {
  std::string text = R"(
func.func @main(%a: tensor<3x20xui8> {transept.name = "a"}, %b: tensor<20x17xi8> {transept.name = "b"}, %az: tensor<ui8> {transept.name = "az"},
                %bz: tensor<17xi8> {transept.name = "bz"}) -> (tensor<3x17xi32> {transept.name = "y"}) {
  %0 = transept.matmul_integer %a, %b lhs_zero_point(%az) rhs_zero_point(%bz) : (tensor<3x20xui8>, tensor<20x17xi8>, tensor<ui8>, tensor<17xi8>) -> tensor<3x17xi32>
  return %0 : tensor<3x17xi32>
})";
  expectSame(text, [](Program &p) {
    return Tensors{p.random("tensor<3x20xui8>", 1, 256), p.random("tensor<20x17xi8>", 2, 127),
                   p.random("tensor<ui8>", 3, 256), p.random("tensor<17xi8>", 4, 100)};
  });
}

//===- Convolutions
//------------------------------------------------------------------------------------------------===//

TEST(FormConv, WithAndWithoutConstantWeights) {
  std::string weights = "dense<[";
  for (int o = 0; o < 5; ++o) {
    weights += o ? ", [" : "[";
    for (int c = 0; c < 2; ++c) {
      weights += c ? ", [" : "[";
      for (int k = 0; k < 3; ++k)
        weights += (k ? ", " : "") + std::to_string(0.1 * o - 0.2 * c + 0.3 * k - 0.2);
      weights += "]";
    }
    weights += "]";
  }
  weights += "]> : tensor<5x2x3xf32>";
  std::string attributes =
      "{strides = array<i64: 2>, pads = array<i64: 1, 2>, dilations = array<i64: 1>, group = 1 : i64}";
  std::string types = " : (tensor<2x2x9xf32>, tensor<5x2x3xf32>, tensor<5xf32>) -> tensor<2x5x5xf32>\n  return %0 : "
                      "tensor<2x5x5xf32>\n}\n";
  expectSame("func.func @main(%x: tensor<2x2x9xf32> {transept.name = \"x\"}, %b: tensor<5xf32> {transept.name = "
             "\"b\"}) -> (tensor<2x5x5xf32> "
             "{transept.name = \"y\"}) {\n  %w = transept.constant " +
                 weights + "\n  %0 = transept.conv %x, %w, %b " + attributes + types,
             {"tensor<2x2x9xf32>", "tensor<5xf32>"}, 1e-5);
  expectSame(
      "func.func @main(%x: tensor<2x2x9xf32> {transept.name = \"x\"}, %w: tensor<5x2x3xf32> {transept.name = \"w\"}, "
      "%b: tensor<5xf32> "
      "{transept.name = \"b\"}) -> (tensor<2x5x5xf32> {transept.name = \"y\"}) {\n  %0 = transept.conv %x, %w, %b " +
          attributes + types,
      {"tensor<2x2x9xf32>", "tensor<5x2x3xf32>", "tensor<5xf32>"}, 1e-5);
}

TEST(FormConv, GroupsDilationAndTwoAxes) {
  expectSame("func.func @main(%x: tensor<1x4x7x6xf32> {transept.name = \"x\"}, %w: tensor<6x2x2x3xf32> {transept.name "
             "= \"w\"}) -> "
             "(tensor<1x6x5x6xf32> {transept.name = \"y\"}) {\n  %0 = transept.conv %x, %w {strides = array<i64: 1, "
             "1>, pads = array<i64: 0, 1, "
             "0, 1>, dilations = array<i64: 2, 1>, group = 2 : i64} : (tensor<1x4x7x6xf32>, tensor<6x2x2x3xf32>) -> "
             "tensor<1x6x5x6xf32>\n"
             "  return %0 : tensor<1x6x5x6xf32>\n}\n",
             {"tensor<1x4x7x6xf32>", "tensor<6x2x2x3xf32>"}, 1e-5);
}

// Weights beyond eight bits are moved into them; the padding is the zero point's.
TEST(FormConv, BytesBehindIntegers) {
  for (auto [type, group, contractions] : {std::tuple("ui8", 1, 1), {"i8", 1, 1}, {"ui8", 2, 0}}) {
    std::string weights = "dense<[", bytes = std::string("tensor<2x4x9x") + type + ">";
    for (int o = 0; o < 6; ++o) {
      weights += o ? ", [" : "[";
      for (int c = 0; c < 4 / group; ++c) {
        weights += c ? ", [" : "[";
        for (int k = 0; k < 3; ++k)
          weights += (k ? ", " : "") + std::to_string((o * 71 + c * 37 + k * 101) % 256 - 100);
        weights += "]";
      }
      weights += "]";
    }
    std::string weightType = "tensor<6x" + std::to_string(4 / group) + "x3xi32>";
    std::string text = "func.func @main(%x: " + bytes + " {transept.name = \"x\"}, %z: tensor<" + type +
                       "> {transept.name = \"z\"}, %b: tensor<6xi32> {transept.name = \"b\"}) -> (tensor<2x6x5xi32> "
                       "{transept.name = \"y\"}) {\n  %w = transept.constant " +
                       weights + "]> : " + weightType + "\n  %0 = transept.cast %x {to = i32} : (" + bytes +
                       ") -> tensor<2x4x9xi32>\n  %1 = transept.cast %z {to = i32} : (tensor<" + type +
                       ">) -> tensor<i32>\n  %2 = transept.sub %0, %1 : (tensor<2x4x9xi32>, tensor<i32>) -> "
                       "tensor<2x4x9xi32>\n  %3 = transept.conv %2, %w, %b {strides = array<i64: 2>, pads = "
                       "array<i64: 1, 2>, dilations = array<i64: 1>, group = " +
                       std::to_string(group) + " : i64} : (tensor<2x4x9xi32>, " + weightType +
                       ", tensor<6xi32>) -> tensor<2x6x5xi32>\n  return %3 : tensor<2x6x5xi32>\n}\n";
    expectSame(text, [&, type = type](Program &p) {
      return Tensors{p.random(bytes, 1, 128), p.random(std::string("tensor<") + type + ">", 2, 128),
                     p.random("tensor<6xi32>", 3, 1000)};
    });
    Program program(text);
    ASSERT_EQ(program.form(), "");
    EXPECT_EQ(program.count("kernel.contract"), contractions);
  }
}

//===- Rows
//--------------------------------------------------------------------------------------------------------===//

TEST(FormRows, SoftmaxOverAnyAxis) {
  for (std::string axis : {"-1", "1"})
    for (std::string logarithm : {"", ", logarithm"}) {
      std::string type = "tensor<3x5x37xf32>";
      expectSame("func.func @main(%x: " + type + " {transept.name = \"x\"}) -> (" + type +
                     " {transept.name = \"y\"}) {\n  %0 = transept.softmax %x "
                     "{axis = " +
                     axis + " : i64" + logarithm + "} : (" + type + ") -> " + type + "\n  return %0 : " + type +
                     "\n}\n",
                 {type}, 1e-5);
    }
}

std::string layerNorm(const std::string &extra, const std::string &scaleType) {
  return "func.func @main(%x: " + bsn70 + " {transept.name = \"x\"}, %r: " + bsn70 +
         " {transept.name = \"r\"}, %s: " + scaleType + " {transept.name = \"s\"}, %b: " + scaleType +
         " {transept.name = \"b\"}) -> (" + bsn70 + " {transept.name = \"y\"}) {\n" + "  %0 = transept.add %x, %r : (" +
         bsn70 + ", " + bsn70 + ") -> " + bsn70 + "\n" +
         "  %1 = transept.layer_norm %0 scale(%s) bias(%b) {axis = -1 : i64, epsilon = 1.0e-5 : f32" + extra + "} : (" +
         bsn70 + ", " + scaleType + ", " + scaleType + ") -> " + bsn70 + "\n  return %1 : " + bsn70 + "\n}\n";
}

TEST(FormRows, NormsTakeTheResidualSum) {
  for (std::string extra : {"", ", rms"}) {
    expectSame(layerNorm(extra, "tensor<70xf32>"),
               {"tensor<2x3x70xf32>", "tensor<2x3x70xf32>", "tensor<70xf32>", "tensor<70xf32>"}, 2e-5);
    expectSame(layerNorm(extra, "tensor<1xf32>"),
               {"tensor<2x3x70xf32>", "tensor<2x3x70xf32>", "tensor<1xf32>", "tensor<1xf32>"}, 2e-5);
  }
  Program program(layerNorm("", "tensor<70xf32>"));
  ASSERT_EQ(program.form(), "");
  EXPECT_EQ(program.count("kernel.rows"), 1);
  EXPECT_EQ(program.count("kernel.map"), 0);
}

TEST(FormRows, NormOverTwoAxes) {
  std::string type = "tensor<3x5x7xf32>";
  expectSame("func.func @main(%x: " + type +
                 " {transept.name = \"x\"}, %s: tensor<5x1xf32> {transept.name = \"s\"}) -> (" + type +
                 " {transept.name = \"y\"}) {\n  %1 = transept.layer_norm %x scale(%s) {axis = 1 : i64, epsilon = "
                 "1.0e-5 : f32} : (" +
                 type + ", tensor<5x1xf32>) -> " + type + "\n  return %1 : " + type + "\n}\n",
             {type, "tensor<5x1xf32>"}, 2e-5);
}

//===- Attention
//----------------------------------------------------------------------------------------------------===//

TEST(FormAttend, MasksBiasAndProbabilities) {
  std::string q = "tensor<2x3x4x8xf32>", kv = "tensor<2x5x2x8xf32>", p = "tensor<2x4x3x5xf32>";
  std::string text = "func.func @main(%q: " + q + " {transept.name = \"q\"}, %k: " + kv +
                     " {transept.name = \"k\"}, %v: " + kv +
                     " {transept.name = \"v\"}, %m: tensor<2x5xi64> {transept.name = \"m\"}, %b: tensor<4x3x5xf32> "
                     "{transept.name = \"b\"}) -> (" +
                     q + " {transept.name = \"y\"}, " + p +
                     " {transept.name = \"p\"}) {\n  %0, %1 = transept.attention %q, %k, %v key_mask(%m) bias(%b) "
                     "empty_row zero {scale = 0.35 : f32} : (" +
                     q + ", " + kv + ", " + kv + ", tensor<2x5xi64>, tensor<4x3x5xf32>) -> (" + q + ", " + p +
                     ")\n  return %0, %1 : " + q + ", " + p + "\n}\n";
  expectSame(
      text,
      [&](Program &program) {
        return Tensors{program.random(q, 1), program.random(kv, 2), program.random(kv, 3),
                       program.ints("tensor<2x5xi64>", {1, 1, 1, 0, 0, 0, 1, 0, 1, 1}),
                       program.random("tensor<4x3x5xf32>", 4)};
      },
      1e-5);
}

TEST(FormAttend, CausalWithAFloatMask) {
  std::string q = "tensor<2x5x2x8xf32>";
  std::string text = "func.func @main(%q: " + q +
                     " {transept.name = \"q\"}, %m: tensor<2x5xf32> {transept.name = \"m\"}) -> (" + q +
                     " {transept.name = \"y\"}) {\n  %0 = transept.attention %q, %q, %q key_mask(%m) empty_row uniform "
                     "{scale = 0.35 : f32, causal} : (" +
                     q + ", " + q + ", " + q + ", tensor<2x5xf32>) -> " + q + "\n  return %0 : " + q + "\n}\n";
  expectSame(
      text,
      [&](Program &program) {
        return Tensors{program.random(q, 1), program.ints("tensor<2x5xf32>", {1, 0, 1, 1, 0, 1, 1, 0, 0, 1})};
      },
      1e-5);
}

//===- Conditionals
//---------------------------------------------------------------------------------------------------===//

const char *conditional = R"(
func.func @main(%c: tensor<i1> {transept.name = "c"}, %x: tensor<4xf32> {transept.name = "x"}, %at: tensor<4xi64> {transept.name = "at"})
    -> (tensor<4xf32> {transept.name = "y"}) {
  %0 = transept.if %c {
    %1 = transept.gather %x, %at {axis = 0 : i64} : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
    transept.yield %1 : tensor<4xf32>
  } else {
    %1 = transept.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    transept.yield %1 : tensor<4xf32>
  } : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
})";

TEST(FormIf, SelectsABranchAndChecksOnlyThatOne) {
  for (int64_t condition : {0, 1})
    expectSame(conditional, [&](Program &p) {
      return Tensors{
          p.ints("tensor<i1>", {condition}), p.random("tensor<4xf32>", 1),
          p.ints("tensor<4xi64>", condition ? std::vector<int64_t>{3, 2, -1, 0} : std::vector<int64_t>{9, 9, 9, 9})};
    });
}

//===- Refusals
//-----------------------------------------------------------------------------------------------------===//

TEST(Form, NamesWhatItCannotForm) {
  Program program(R"(
func.func @main(%n: tensor<i64> {transept.name = "n"}) -> (tensor<?xi64, #transept.dims<["range.0"]>> {transept.name = "y"}) {
  %0 = transept.constant dense<1> : tensor<i64>
  %1 = transept.range from(%0) to(%n) by(%0) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, #transept.dims<["range.0"]>> loc("m.onnx:/Range")
  return %1 : tensor<?xi64, #transept.dims<["range.0"]>>
})");
  EXPECT_EQ(program.form(), "'transept.range' of node 'm.onnx:/Range' has a result whose shape only its data says");
}

} // namespace
