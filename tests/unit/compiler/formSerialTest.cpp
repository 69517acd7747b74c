// Ops that become kernels with memory, against the interpreter.
#include "tests/unit/compiler/formHarness.h"
#include <gtest/gtest.h>

using namespace form_test;

namespace {

const std::string batchSource = "tensor<?x?xf32, #transept.dims<[batch, source]>>";

/// A function that returns the results of `call` on its arguments.
std::string function(const std::vector<std::string> &arguments, const std::vector<std::string> &results,
                     const std::string &call, const std::string &attributes) {
  std::string head, types, outputs, list;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string n = std::to_string(i), separator = i ? ", " : "";
    head += separator + "%a" + n + ": " + arguments[i] + " {transept.name = \"a" + n + "\"}";
    types += separator + arguments[i];
  }
  for (size_t i = 0; i < results.size(); ++i) {
    outputs += (i ? ", " : "") + results[i] + " {transept.name = \"y" + std::to_string(i) + "\"}";
    list += (i ? ", " : "") + results[i];
  }
  std::string count = std::to_string(results.size());
  std::string values = "%y#0";
  for (size_t i = 1; i < results.size(); ++i)
    values += ", %y#" + std::to_string(i);
  return "func.func @main(" + head + ") -> (" + outputs + ") {\n  %y:" + count + " = transept." + call + " {" +
         attributes + "} : (" + types + ") -> (" + list + ")\n  return " + values + " : " + list + "\n}\n";
}

TEST(FormSerial, SumsAndProductsRunAlongAnyAxis) {
  for (std::string options : {"exclusive = false, reverse = false", "exclusive = true, reverse = true, product"})
    for (std::string axis : {"0", "1"})
      expectSame(
          function({batchSource}, {batchSource}, "cumsum %a0", "axis = " + axis + " : i64, " + options),
          [](Program &p) { return Tensors{p.random("tensor<7x33xf32>", 3)}; }, 1e-5);
}

TEST(FormSerial, TopKSortsLinesOfAnyLength) {
  for (std::string length : {"1", "2", "9", "64", "100"})
    for (std::string largest : {"true", "false"}) {
      std::string type = "tensor<3x" + length + "x2xf32>", index = "tensor<3x" + length + "x2xi64>";
      expectSame(function({type}, {type, index}, "top_k %a0",
                          "axis = 1 : i64, largest = " + largest + ", k = #transept.dim<" + length + ">"),
                 {type});
    }
}

TEST(FormSerial, TopKKeepsEqualElementsInOrder) {
  auto inputs = [](Program &p) { return Tensors{p.random("tensor<4x50xi32>", 5, 4)}; };
  expectSame(function({"tensor<4x50xi32>"}, {"tensor<4x20xi32>", "tensor<4x20xi64>"}, "top_k %a0",
                      "axis = 1 : i64, largest = true, k = #transept.dim<20>"),
             inputs);
}

TEST(FormSerial, ScattersWithEveryReduction) {
  for (std::string kind : {"replace", "add", "mul", "max", "min"}) {
    SCOPED_TRACE(kind);
    auto inputs = [](Program &p) {
      return Tensors{p.random("tensor<4x6xf32>", 1), p.random("tensor<3x5xi64>", 2, 6), p.random("tensor<3x5xf32>", 3)};
    };
    std::vector<std::string> types = {"tensor<4x6xf32>", "tensor<3x5xi64>", "tensor<3x5xf32>"};
    expectSame(function(types, {"tensor<4x6xf32>"}, "scatter_elements " + kind + " %a0, %a1, %a2", "axis = 1 : i64"),
               inputs);
    // Slices of more than one part, and single elements.
    expectSame(function({"tensor<3x1500xf32>", "tensor<4x1xi64>", "tensor<4x1500xf32>"}, {"tensor<3x1500xf32>"},
                        "scatter_nd " + kind + " %a0, %a1, %a2", ""),
               [](Program &p) {
                 return Tensors{p.random("tensor<3x1500xf32>", 1), p.random("tensor<4x1xi64>", 2, 3),
                                p.random("tensor<4x1500xf32>", 3)};
               });
    expectSame(function({"tensor<3x4xf32>", "tensor<5x2xi64>", "tensor<5xf32>"}, {"tensor<3x4xf32>"},
                        "scatter_nd " + kind + " %a0, %a1, %a2", ""),
               [](Program &p) {
                 return Tensors{p.random("tensor<3x4xf32>", 1), p.random("tensor<5x2xi64>", 2, 3),
                                p.random("tensor<5xf32>", 3)};
               });
  }
}

TEST(FormSerial, AnIndexOutOfRangeIsReported) {
  Program program(function({"tensor<4xf32>", "tensor<2xi64>", "tensor<2xf32>"}, {"tensor<4xf32>"},
                           "scatter_elements replace %a0, %a1, %a2", "axis = 0 : i64"));
  Tensors inputs = {program.random("tensor<4xf32>", 1), program.ints("tensor<2xi64>", {1, 4}),
                    program.random("tensor<2xf32>", 2)};
  ASSERT_EQ(program.form(), "");
  ASSERT_EQ(program.plan(), "");
  EXPECT_TRUE(program.run(inputs).empty());
  EXPECT_NE(program.lastError.find("reads index 4 outside [-4, 3]"), std::string::npos) << program.lastError;
}

TEST(FormSerial, RecurrentLayersOfEveryKind) {
  const std::string activations[] = {"\"Tanh\"", "\"Sigmoid\", \"Tanh\"", "\"Sigmoid\", \"Tanh\", \"Tanh\""};
  const std::string zeros[] = {"0.0", "0.0, 0.0", "0.0, 0.0, 0.0"}, kinds[] = {"rnn", "gru", "lstm"};
  for (int kind = 0; kind < 3; ++kind)
    for (std::string options : {"", ", reverse", ", linearBeforeReset", ", coupled"}) {
      if ((options == ", linearBeforeReset" && kind != 1) || (options == ", coupled" && kind != 2))
        continue;
      SCOPED_TRACE(kinds[kind] + options);
      std::string gates = std::to_string(20 * (kind == 0 ? 1 : kind == 1 ? 3 : 4));
      std::string input = "tensor<?x?x" + gates + "xf32, #transept.dims<[source, batch, " + gates + "]>>";
      std::string state = "tensor<?x20xf32, #transept.dims<[batch, 20]>>";
      std::string sequence = "tensor<?x?x20xf32, #transept.dims<[source, batch, 20]>>";
      std::string lengths = "tensor<?xi32, #transept.dims<[batch]>>", weight = "tensor<20x" + gates + "xf32>";
      std::vector<std::string> results = {sequence, state};
      if (kind == 2)
        results.push_back(state);
      std::string attributes = "alpha = array<f32: " + zeros[kind] + ">, beta = array<f32: " + zeros[kind] +
                               ">, activations = [" + activations[kind] + "], clip = 0.0 : f32" + options;
      expectSame(
          function({input, weight, lengths, state}, results,
                   "recurrent " + kinds[kind] + " %a0, %a1 lengths(%a2) hidden(%a3)", attributes),
          [&](Program &p) {
            return Tensors{p.random("tensor<5x3x" + gates + "xf32>", 1), p.random(weight, 2),
                           p.ints("tensor<3xi32>", {5, 0, 3}), p.random("tensor<3x20xf32>", 4)};
          },
          1e-5);
    }
}

TEST(FormSerial, Determinants) {
  expectSame(function({"tensor<5x4x4xf32>"}, {"tensor<5xf32>"}, "det %a0", ""), {"tensor<5x4x4xf32>"}, 1e-4);
}

TEST(FormSerial, WindowsOfSymbolicAxes) {
  std::string attributes = "kernel = array<i64: 2, 3>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 2>";
  std::string input = "tensor<3x?x?xf32, #transept.dims<[3, batch, source]>>";
  std::string result = "tensor<3x?x?x2x3xf32, #transept.dims<[3, floordiv(batch + -2, 2) + 1, source + -4, 2, 3]>>";
  expectSame(function({input}, {result}, "windows %a0", attributes),
             [](Program &p) { return Tensors{p.random("tensor<3x7x8xf32>", 1)}; });
}

} // namespace
