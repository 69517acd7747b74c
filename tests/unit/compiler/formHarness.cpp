#include "tests/unit/compiler/formHarness.h"
#include "codegen/Codegen.h"
#include "codegen/Pack.h"
#include "ir/Interpreter.h"
#include "ir/NarrowTypes.h"
#include "ir/Transept.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Form.h"
#include "passes/Plan.h"
#include "runtime/ArtifactWriter.h"
#include "runtime/Model.h"
#include "runtime/Session.h"
#include "tests/unit/compiler/codegenHarness.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

using namespace mlir;
using namespace mlir::transept;
namespace runtime = ::transept;
using runtime::program::DType;

namespace form_test {

Program::Program(const std::string &text) : context(MLIRContext::Threading::DISABLED) {
  DialectRegistry registry;
  registry.insert<TranseptDialect, kernel::KernelDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect,
                  scf::SCFDialect>();
  kernel::registerCpuDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
}

std::string Program::runPass(std::unique_ptr<Pass> pass) {
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (error.empty())
      error = diagnostic.str();
  });
  PassManager manager(&context);
  manager.addPass(std::move(pass));
  if (failed(manager.run(*module)) && error.empty())
    error = "failed without an error";
  return error;
}

std::string Program::form() { return runPass(createFormPass()); }
std::string Program::plan() {
  std::string error = form();
  return error.empty() ? runPass(createPlanPass()) : error;
}

std::string Program::print() {
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}

int Program::count(llvm::StringRef opName) {
  int found = 0;
  module->walk([&](Operation *op) { found += op->getName().getStringRef() == opName; });
  return found;
}

Tensors Program::interpret(const Tensors &inputs) {
  auto results = mlir::transept::interpret(module->lookupSymbol<func::FuncOp>("main"), inputs);
  EXPECT_TRUE(results) << results.failure().message;
  return results ? *results : Tensors();
}

//===- Compiled -----------------------------------------------------------------------------------------------===//

static const kernel::CpuLevel &bestLevel() { return *kernel::findCpuLevel(codegen_test::runnableLevels().front()); }

std::string Program::compile() {
  const kernel::CpuLevel &level = bestLevel();
  if (failed(kernel::scheduleCpu(*module)))
    return "schedule failed";
  FailureOr<std::string> code = kernel::emitCpu(*module, level);
  if (failed(code))
    return "emit failed";
  auto weights = kernel::PackedWeights::of(*module);
  if (!weights)
    return weights.failure().message;
  kernel::ManifestInputs inputs;
  inputs.weightsSection = "weights";
  inputs.tokenizerKind = "none";
  inputs.code.push_back({"cpu", level.name.str(), {}, "code"});
  auto manifest = kernel::makeManifest(*module, *weights, inputs);
  if (!manifest)
    return manifest.failure().message;
  using runtime::ArtifactSection;
  using runtime::SectionKind;
  std::vector<ArtifactSection> sections;
  sections.push_back(ArtifactSection::fromBytes("manifest", SectionKind::Manifest, manifest->SerializeAsString()));
  sections.push_back(ArtifactSection::fromBytes("code", SectionKind::Code, *code));
  std::string bytes;
  weights->write([&](const void *data, uint64_t count) {
    bytes.append(static_cast<const char *>(data), count);
    return true;
  });
  EXPECT_EQ(bytes.size(), weights->bytes());
  if (!bytes.empty())
    sections.push_back(ArtifactSection::fromBytes("weights", SectionKind::Weights, bytes));
  artifact = testing::TempDir() + "form-" + std::to_string(getpid()) + ".tsp";
  return runtime::writeArtifact(artifact, sections).message();
}

/// Element types by their text.
static const std::map<std::string, DType> &elementTypes() {
  static const std::map<std::string, DType> names = {{"f32", DType::F32},
                                                     {"f64", DType::F64},
                                                     {"f16", DType::F16},
                                                     {"bf16", DType::BF16},
                                                     {"i8", DType::I8},
                                                     {"i16", DType::I16},
                                                     {"i32", DType::I32},
                                                     {"i64", DType::I64},
                                                     {"ui8", DType::U8},
                                                     {"ui16", DType::U16},
                                                     {"ui32", DType::U32},
                                                     {"ui64", DType::U64},
                                                     {"i1", DType::BOOL},
                                                     {"f8E4M3FN", DType::F8E4M3FN},
                                                     {"f8E4M3FNUZ", DType::F8E4M3FNUZ},
                                                     {"f8E5M2", DType::F8E5M2},
                                                     {"f8E5M2FNUZ", DType::F8E5M2FNUZ},
                                                     {"!transept.f8e8m0", DType::F8E8M0},
                                                     {"!transept.f4e2m1", DType::F4E2M1},
                                                     {"i4", DType::I4},
                                                     {"ui4", DType::U4},
                                                     {"i2", DType::I2},
                                                     {"ui2", DType::U2}};
  return names;
}

static DType dtypeOf(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return elementTypes().at(name);
}

static Type typeOf(MLIRContext *context, DType dtype) {
  for (const auto &[name, candidate] : elementTypes())
    if (candidate == dtype)
      return parseType(name, context);
  return {};
}

Tensors Program::run(const Tensors &inputs, int threads) {
  std::string error = compile();
  EXPECT_EQ(error, "");
  if (!error.empty())
    return {};
  auto model = runtime::Model::load(artifact);
  unlink(artifact.c_str());
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok())
    return {};
  runtime::SessionOptions options;
  options.threads = threads;
  auto session = (*model)->createSession(options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok())
    return {};
  runtime::RunArguments arguments;
  size_t next = 0;
  for (const auto &buffer : (*model)->manifest().entries(0).buffers()) {
    if (buffer.storage() != runtime::program::INPUT)
      continue;
    const HostTensor &input = inputs.at(next++);
    runtime::ConstTensorView view;
    view.name = buffer.name();
    view.dtype = dtypeOf(input.elementType());
    view.dims = {input.shape().data(), input.shape().size()};
    view.data = input.bytes().data();
    view.bytes = input.bytes().size();
    arguments.inputs.push_back(view);
  }
  runtime::Status status = (*session)->run("main", arguments);
  lastError = status.message();
  Tensors results;
  if (!status.ok())
    return results;
  for (const runtime::TensorView &output : (*session)->outputs()) {
    std::vector<int64_t> dims(output.dims.begin(), output.dims.end());
    auto type = RankedTensorType::get(dims, typeOf(&context, output.dtype));
    results.push_back(HostTensor::fromBytes(type, ArrayRef(static_cast<const char *>(output.data), output.bytes)));
  }
  return results;
}

//===- Inputs and comparison ------------------------------------------------------------------------------------===//

static RankedTensorType parseTensorType(const std::string &text, MLIRContext *context) {
  return cast<RankedTensorType>(parseType(text, context));
}

HostTensor Program::random(const std::string &type, unsigned seed, int64_t below) {
  HostTensor tensor = HostTensor::make(parseTensorType(type, &context));
  std::mt19937 generator(seed);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    if (isa<FloatType>(tensor.elementType()))
      tensor.setDouble(i, std::uniform_real_distribution<float>(-2, 2)(generator));
    else
      tensor.setInt(i, std::uniform_int_distribution<int64_t>(0, below - 1)(generator));
  return tensor;
}

HostTensor Program::ints(const std::string &type, const std::vector<int64_t> &values) {
  HostTensor tensor = HostTensor::make(parseTensorType(type, &context));
  for (auto [i, value] : llvm::enumerate(values))
    tensor.setInt(i, value);
  return tensor;
}

void expectSame(const std::string &text, const std::function<Tensors(Program &)> &makeInputs, double tolerance) {
  Program program(text);
  ASSERT_TRUE(program.moduleOp());
  Tensors inputs = makeInputs(program), expected = program.interpret(inputs);
  ASSERT_EQ(program.plan(), "") << text;
  SCOPED_TRACE(program.print());
  Tensors results = program.run(inputs);
  ASSERT_EQ(program.lastError, "");
  ASSERT_EQ(results.size(), expected.size());
  for (auto [want, got] : llvm::zip(expected, results)) {
    ASSERT_EQ(want.shape(), got.shape());
    ASSERT_EQ(want.elementType(), got.elementType());
    if (isNarrow(want.elementType())) {
      ASSERT_EQ(want.bytes().vec(), got.bytes().vec());
      continue;
    }
    for (int64_t i = 0; i < want.numElements(); ++i) {
      if (!isa<FloatType>(want.elementType())) {
        ASSERT_EQ(want.getInt(i), got.getInt(i)) << "element " << i;
        continue;
      }
      double a = want.getDouble(i), b = got.getDouble(i);
      if (std::isnan(a) || std::isinf(a))
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << "element " << i << ": " << a << ", " << b;
      else
        ASSERT_NEAR(a, b, tolerance * std::max(1.0, std::fabs(a))) << "element " << i;
    }
  }
}

void expectSame(const std::string &text, const std::vector<std::string> &types, double tolerance) {
  expectSame(
      text,
      [&](Program &program) {
        Tensors inputs;
        for (auto [i, type] : llvm::enumerate(types))
          inputs.push_back(program.random(type, i + 1));
        return inputs;
      },
      tolerance);
}

} // namespace form_test
