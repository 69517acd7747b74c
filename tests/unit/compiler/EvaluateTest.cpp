// Evaluation of every op of the graph dialect, through the interpreter, and the elementary functions, against values
// computed elsewhere (make_evaluate_fixture.py).

#include "ir/HostMath.h"
#include "ir/Interpreter.h"
#include "ir/Transept.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

using namespace mlir;
using namespace mlir::transept;
using json = nlohmann::json;

namespace {

const json &fixture() {
  static const json value = json::parse(
#include "evaluateFixture.json.inc"
  );
  return value;
}

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry.insert<TranseptDialect, func::FuncDialect>();
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

HostTensor readTensor(MLIRContext *context, const json &entry) {
  auto type = dyn_cast_or_null<RankedTensorType>(parseType(entry["type"].get<std::string>(), context));
  std::string bytes;
  if (!type || !llvm::tryGetFromHex(entry["data"].get<std::string>(), bytes))
    return {};
  return HostTensor::fromBytes(type, ArrayRef<char>(bytes.data(), bytes.size()));
}

/// Position of a float among all floats of its format: neighbours differ by one.
int64_t ordinal(uint64_t bits, unsigned width) {
  const uint64_t sign = uint64_t{1} << (width - 1);
  return bits & sign ? -static_cast<int64_t>(bits & (sign - 1)) : static_cast<int64_t>(bits);
}

/// Distance in units of the last place; NaN equals NaN.
double distance(const HostTensor &a, const HostTensor &b, int64_t index) {
  const double x = a.getDouble(index), y = b.getDouble(index);
  if (std::isnan(x) || std::isnan(y))
    return std::isnan(x) && std::isnan(y) ? 0 : INFINITY;
  const unsigned width = byteWidth(a.elementType());
  uint64_t left = 0, right = 0;
  std::memcpy(&left, a.bytes().data() + index * width, width);
  std::memcpy(&right, b.bytes().data() + index * width, width);
  if (!isa<FloatType>(a.elementType()) || std::isinf(x) || std::isinf(y) || x == 0 || y == 0)
    return left == right ? 0 : std::isinf(x) || std::isinf(y) ? INFINITY : std::fabs(x - y) == 0 ? 0.5 : INFINITY;
  return std::fabs(static_cast<double>(ordinal(left, width * 8) - ordinal(right, width * 8)));
}

void expectNear(const HostTensor &actual, const HostTensor &expected, double ulps, double absolute) {
  ASSERT_EQ(actual.shape().vec(), expected.shape().vec());
  ASSERT_TRUE(actual.elementType() == expected.elementType());
  for (int64_t i = 0; i < expected.numElements(); ++i)
    EXPECT_TRUE(distance(actual, expected, i) <= ulps ||
                std::fabs(actual.getDouble(i) - expected.getDouble(i)) <= absolute)
        << "element " << i << ": " << actual.getDouble(i) << " where " << expected.getDouble(i) << " was expected";
}

TEST(Evaluate, EveryOpGivesWhatOthersCompute) {
  std::unique_ptr<MLIRContext> context = makeContext();
  std::map<std::string, int> count;
  for (const json &entry : fixture()["cases"]) {
    const auto text = entry["mlir"].get<std::string>();
    SCOPED_TRACE(text);
    ++count[entry["op"].get<std::string>()];
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context.get());
    ASSERT_TRUE(module);
    auto function = module->lookupSymbol<func::FuncOp>("main");
    std::vector<HostTensor> inputs;
    for (const json &input : entry["inputs"]) {
      inputs.push_back(readTensor(context.get(), input));
      ASSERT_TRUE(inputs.back());
    }
    Outcome<std::vector<HostTensor>> outputs = interpret(function, inputs);
    if (entry.contains("error")) {
      ASSERT_FALSE(outputs);
      EXPECT_NE(outputs.failure().message.find(entry["error"].get<std::string>()), std::string::npos)
          << outputs.failure().message;
      continue;
    }
    ASSERT_TRUE(outputs) << outputs.failure().message;
    ASSERT_EQ(outputs->size(), entry["outputs"].size());
    for (size_t i = 0; i < outputs->size(); ++i)
      expectNear((*outputs)[i], readTensor(context.get(), entry["outputs"][i]), entry.value("ulps", 0),
                 entry.value("absolute", 0.0));
  }
  // Six cases at least for every op that can be evaluated alone.
  const std::set<StringRef> notAlone = {"constant",        "weight",     "if",     "yield",        "loop",
                                        "read_sizes",      "state",      "export", "cache_append", "cache_attention",
                                        "cross_attention", "search_head"};
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (StringRef op = name.stripDialect(); name.getDialectNamespace() == "transept" && !notAlone.count(op))
      EXPECT_GE(count[op.str()], 6) << op.str();
}

/// Largest error in units of the last place over the points of one function; the nearest double is at 0.
double worstError(StringRef name, llvm::function_ref<double(double, double)> function) {
  double worst = 0;
  for (const json &entry : fixture()["points"]) {
    if (entry[0].get<std::string>() != name)
      continue;
    auto number = [&](int index) { return std::strtod(entry[index].get<std::string>().c_str(), nullptr); };
    const double actual = function(number(1), number(2)), expected = number(3);
    uint64_t left, right;
    std::memcpy(&left, &actual, 8);
    std::memcpy(&right, &expected, 8);
    const double error = left == right ? 0 : std::fabs(static_cast<double>(ordinal(left, 64) - ordinal(right, 64)));
    EXPECT_EQ(static_cast<float>(actual), static_cast<float>(expected)) << name.str() << " of " << number(1);
    worst = std::max(worst, error);
  }
  return worst;
}

TEST(HostMath, IsCloseToTheNearestDouble) {
  EXPECT_LE(worstError("exp", [](double x, double) { return math::exp(x); }), 1);
  EXPECT_LE(worstError("log", [](double x, double) { return math::log(x); }), 1);
  EXPECT_LE(worstError("sin", [](double x, double) { return math::sin(x); }), 1);
  EXPECT_LE(worstError("cos", [](double x, double) { return math::cos(x); }), 1);
  EXPECT_LE(worstError("tanh", [](double x, double) { return math::tanh(x); }), 2);
  EXPECT_LE(worstError("erf", [](double x, double) { return math::erf(x); }), 2);
  EXPECT_LE(worstError("tan", [](double x, double) { return math::tan(x); }), 3);
  EXPECT_LE(worstError("log1p", [](double x, double) { return math::log1p(x); }), 2);
  EXPECT_LE(worstError("asin", [](double x, double) { return math::asin(x); }), 4);
  EXPECT_LE(worstError("acos", [](double x, double) { return math::acos(x); }), 4);
  EXPECT_LE(worstError("atan", [](double x, double) { return math::atan(x); }), 4);
  EXPECT_LE(worstError("sinh", [](double x, double) { return math::sinh(x); }), 4);
  EXPECT_LE(worstError("cosh", [](double x, double) { return math::cosh(x); }), 4);
  EXPECT_LE(worstError("asinh", [](double x, double) { return math::asinh(x); }), 4);
  EXPECT_LE(worstError("acosh", [](double x, double) { return math::acosh(x); }), 4);
  EXPECT_LE(worstError("atanh", [](double x, double) { return math::atanh(x); }), 4);
  EXPECT_EQ(worstError("pow", [](double x, double y) { return math::pow(x, y); }), 0);
}

TEST(HostTensor, RoundsSixteenBitFloatsOnce) {
  MLIRContext context;
  Builder builder(&context);
  HostTensor half = HostTensor::make(RankedTensorType::get({1}, builder.getF16Type()));
  HostTensor brain = HostTensor::make(RankedTensorType::get({1}, builder.getBF16Type()));
  auto halfOf = [&](double value) {
    half.setDouble(0, value);
    return half.data<uint16_t>()[0];
  };
  auto brainOf = [&](double value) {
    brain.setDouble(0, value);
    return brain.data<uint16_t>()[0];
  };
  EXPECT_EQ(halfOf(65504), 0x7bff);
  EXPECT_EQ(halfOf(65519.99), 0x7bff);
  EXPECT_EQ(halfOf(65520), 0x7c00);
  EXPECT_EQ(halfOf(0x1p-24), 0x0001);
  EXPECT_EQ(halfOf(0x1p-25), 0x0000);
  EXPECT_EQ(halfOf(0x1.8p-25), 0x0001);
  EXPECT_EQ(halfOf(-0.0), 0x8000);
  EXPECT_EQ(halfOf(0x1.ffcp-15), 0x0400); // the largest subnormal rounds up into the normal ones
  EXPECT_EQ(brainOf(1 + 0x1p-8), 0x3f80);
  EXPECT_EQ(brainOf(1 + 0x1p-8 + 0x1p-40), 0x3f81);
  EXPECT_EQ(brainOf(-INFINITY), 0xff80);
  for (unsigned bits = 0; bits < 0x10000; ++bits) { // every value comes back as it is
    half.data<uint16_t>()[0] = brain.data<uint16_t>()[0] = static_cast<uint16_t>(bits);
    if (double value = half.getDouble(0); !std::isnan(value))
      ASSERT_EQ(halfOf(value), bits);
    if (double value = brain.getDouble(0); !std::isnan(value))
      ASSERT_EQ(brainOf(value), bits);
  }
}

} // namespace
