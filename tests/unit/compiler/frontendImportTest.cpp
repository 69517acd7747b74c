//===- frontendImportTest.cpp - real exports become modules that verify and survive their text ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/TensorData.h"
#include "frontend/WireFormat.h"
#include "frontendModels.h"
#include "ir/Transept.h"
#include "ir/WeightStore.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <fstream>
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace mlir::transept;
using transept::testing::importBytes;
using transept::testing::makeModel;
using transept::testing::makeQuietContext;
using transept::testing::parseModel;
using transept::testing::testsFolder;

namespace {
std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, OpPrintingFlags().enableDebugInfo());
  return text;
}

void expectSound(ModuleOp module) {
  EXPECT_TRUE(succeeded(verify(module)));
  std::string text = print(module);
  OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(text, ParserConfig(module.getContext()));
  ASSERT_TRUE(again);
  EXPECT_EQ(print(*again), text);
}

std::vector<std::string> modelsIn(const char *folder) {
  std::vector<std::string> paths;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(testsFolder() / folder))
    if (entry.path().extension() == ".onnx")
      paths.push_back(entry.path().string());
  llvm::sort(paths);
  return paths;
}

/// Cases whose point is that they do not compile.
bool mustFail(const std::string &path) {
  return path.find("unknown_op_error") != path.npos || path.find("external_data_truncated") != path.npos;
}

TEST(FrontendImport, EveryModelAsAGraph) {
  for (const char *folder : {"models", "cases"})
    for (const std::string &path : modelsIn(folder)) {
      SCOPED_TRACE(path);
      std::unique_ptr<MLIRContext> context = makeQuietContext();
      Outcome<ImportResult> result = importModel(path, context.get());
      if (mustFail(path)) {
        EXPECT_FALSE(static_cast<bool>(result));
        continue;
      }
      ASSERT_TRUE(static_cast<bool>(result)) << result.failure().message;
      // Unless the graph is a whole generation, it has an entry of its own.
      bool searches = path.find("beam-search") != path.npos;
      EXPECT_EQ(result->description.generates(), searches);
      EXPECT_EQ(!result->module->lookupSymbol<func::FuncOp>("main"), searches);
      expectSound(*result->module);
    }
}

TEST(FrontendImport, EveryFolderAsAnExport) {
  for (const auto &entry : std::filesystem::directory_iterator(testsFolder() / "models")) {
    if (!entry.is_directory())
      continue;
    SCOPED_TRACE(entry.path().string());
    std::unique_ptr<MLIRContext> context = makeQuietContext();
    Outcome<ImportResult> result = importModel(entry.path().string(), context.get());
    ASSERT_TRUE(static_cast<bool>(result)) << result.failure().message;
    bool encoderAlone = entry.path().filename() == "bert-tiny";
    EXPECT_NE(result->description.generates(), encoderAlone);
    expectSound(*result->module);
  }
}

TEST(FrontendImport, TheSameFilesGiveTheSameText) {
  std::string path = (testsFolder() / "models" / "marian-tiny").string(), first;
  for (int run = 0; run < 2; ++run) {
    std::unique_ptr<MLIRContext> context = makeQuietContext();
    Outcome<ImportResult> result = importModel(path, context.get());
    ASSERT_TRUE(static_cast<bool>(result));
    std::string text = print(*result->module);
    EXPECT_EQ(text.find(testsFolder().string()), text.npos) << "a path of this machine is in the module";
    if (run == 0)
      first = text;
    else
      EXPECT_EQ(text, first);
  }
}

struct Imported {
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;

  explicit Imported(const onnx::ModelProto &model) {
    Outcome<ImportResult> result = importBytes(model.SerializeAsString(), context.get());
    EXPECT_TRUE(static_cast<bool>(result)) << result.failure().message;
    if (!result)
      return;
    module = std::move(result->module);
    function = module->lookupSymbol<func::FuncOp>("main");
    EXPECT_TRUE(succeeded(verify(*module)));
  }
  template <typename Op> size_t count() {
    size_t found = 0;
    function.walk([&](Op) { ++found; });
    return found;
  }
};

TEST(FrontendImport, SizesKeepTheirLabels) {
  Imported model(
      makeModel(17, "(float[past_sequence,2,3] x, float[n,past_sequence] z) => (float[] y)", "y = Relu(x) "));
  auto type = cast<RankedTensorType>(model.function.getArgumentTypes()[0]);
  SmallVector<DimAttr> dims = dimsOf(type);
  EXPECT_EQ(symbolName(dims[0]), "past_sequence");
  EXPECT_EQ(constantValue(dims[1]), 2);
  // The same label is the same size.
  EXPECT_EQ(dims[0], dimsOf(cast<RankedTensorType>(model.function.getArgumentTypes()[1]))[1]);
  EXPECT_EQ(model.function.getArgAttrOfType<StringAttr>(1, "transept.name").getValue(), "z");
  EXPECT_EQ(model.function.getResultAttrOfType<StringAttr>(0, "transept.name").getValue(), "y");
}

TEST(FrontendImport, UnnamedSizesAreUnrelated) {
  onnx::ModelProto proto = makeModel(17, "(float[a,b] x) => (float[] y)", "y = Relu(x) ");
  for (auto &dim :
       *proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
    dim.clear_dim_param();
  Imported model(proto);
  SmallVector<DimAttr> dims = dimsOf(cast<RankedTensorType>(model.function.getArgumentTypes()[0]));
  EXPECT_EQ(symbolName(dims[0]), "x_dim0");
  EXPECT_EQ(symbolName(dims[1]), "x_dim1");
}

TEST(FrontendImport, LabelsMayHoldAnything) {
  onnx::ModelProto proto = makeModel(17, "(float[a,b] x) => (float[] y)", "y = Relu(x) ");
  auto &shape = *proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.mutable_dim(0)->set_dim_param("past_decoder_sequence_length + decoder_sequence_length");
  shape.mutable_dim(1)->set_dim_param("( \"n\" - 127 ) // 64\n");
  Imported model(proto);
  expectSound(*model.module);
}

TEST(FrontendImport, SmallIntegersAreWrittenOutAndWeightsAreStored) {
  Imported model(makeModel(17, "(float[n,4] x) => (float[] y)",
                           "w = Constant<value = float[4] {1.0, 2.0, 3.0, 4.0}>()"
                           "s = Constant<value = int64[2] {2, -1}>()"
                           "c = Constant<value_float = 0.5>()"
                           "h = Mul(x, w) k = Mul(h, c) y = Reshape(k, s)"));
  EXPECT_EQ(model.count<WeightOp>(), 1u);
  EXPECT_EQ(model.count<ConstantOp>(), 2u);
}

TEST(FrontendImport, AnInitializerThatIsAnInputIsADefault) {
  onnx::ModelProto proto =
      parseModel("<ir_version: 8, opset_import: [\"\": 17]> g (float[n] x, float[1] s) => (float[] y) "
                 "<float[1] s = {2.0}> { y = Mul(x, s) }");
  Imported model(proto);
  ASSERT_EQ(model.function.getNumArguments(), 2u);
  auto value = model.function.getArgAttrOfType<DenseElementsAttr>(1, "transept.default");
  ASSERT_TRUE(value);
  EXPECT_EQ(value.getSplatValue<float>(), 2.0f);
  // Before IR version 4 all initializers were inputs: there they are constants.
  proto.set_ir_version(3);
  Imported old(proto);
  EXPECT_EQ(old.function.getNumArguments(), 1u);
}

TEST(FrontendImport, BranchesSeeOuterNames) {
  Imported model(makeModel(16, "(float[n] x, bool c) => (float[] y)",
                           "h = Relu(x) y = If(c) <then_branch = t () => (float[n] a) { a = Neg(h) },"
                           " else_branch = e () => (float[n] b) { b = Add(h, x) }>"));
  EXPECT_EQ(model.count<IfOp>(), 1u);
}

TEST(FrontendImport, FunctionsAreExpandedWhereTheyAreCalled) {
  Imported model(parseModel(R"(
    <ir_version: 8, opset_import: ["": 17, "local": 1]>
    g (float[n] x) => (float[] y) { y = local.Twice <factor = 3.0> (x) }
    <domain: "local", opset_import: ["": 18]>
    Twice <factor> (a) => (b) { f = Constant <value_float : float = @factor> () b = Mul(a, f) }
  )"));
  EXPECT_EQ(model.count<MulOp>(), 1u);
  model.function.walk(
      [](MulOp op) { EXPECT_EQ(cast<NameLoc>(op.getLoc()).getName().getValue(), "model.onnx:Twice of y/Mul of b"); });
}

TEST(FrontendImport, SoftmaxOfOldOpsetsIsPlainOnTheLastAxis) {
  Imported plain(makeModel(11, "(float[a,b,c] x) => (float[] y)", "y = Softmax<axis = 2>(x)"));
  EXPECT_EQ(plain.count<ReshapeOp>(), 0u);
  Imported flat(makeModel(11, "(float[a,b,c] x) => (float[] y)", "y = Softmax<axis = 1>(x)"));
  EXPECT_EQ(flat.count<ReshapeOp>(), 2u);
}
//===- Large contents -===//

onnx::TensorProto largeTensor(const std::string &name, char fill) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(200);
  tensor.add_dims(100);
  std::string content(80000, fill);
  for (size_t i = 0; i < content.size(); i += 7)
    content[i] = static_cast<char>(i);
  tensor.set_raw_data(content);
  return tensor;
}

/// An initializer, a constant in a branch and one in a function, each of 80,000 bytes.
onnx::ModelProto largeModel() {
  onnx::ModelProto model = parseModel(R"(<ir_version: 8, opset_import: ["": 17, "local": 1]>
    g (float[n,200] x, bool c) => (float[] y) {
      h = MatMul(x, w)
      b = If(c) <then_branch = t () => (float[] p) { k = Constant<value = float[1] {0}>() p = MatMul(x, k) },
                 else_branch = e () => (float[] q) { q = Neg(h) }>
      f = local.F(x) s = Add(b, h) y = Add(s, f) }
    <domain: "local", opset_import: ["": 17]> F (a) => (r) { k = Constant<value = float[1] {0}>() r = MatMul(a, k) })");
  *model.mutable_graph()->add_initializer() = largeTensor("w", 1);
  onnx::GraphProto &branch = *model.mutable_graph()->mutable_node(1)->mutable_attribute(0)->mutable_g();
  *branch.mutable_node(0)->mutable_attribute(0)->mutable_t() = largeTensor("k", 2);
  *model.mutable_functions(0)->mutable_node(0)->mutable_attribute(0)->mutable_t() = largeTensor("k", 3);
  return model;
}

TEST(FrontendImport, LargeContentsAreReadWhereTheyAreNeeded) {
  transept::testing::TemporaryFolder folder;
  std::string path = folder.write("model.onnx", largeModel().SerializeAsString());
  Outcome<OnnxFile> file = openOnnx(path);
  ASSERT_TRUE(static_cast<bool>(file)) << file.failure().message;
  EXPECT_LT(file->model->ByteSizeLong(), 2000u);
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  Outcome<ImportResult> result = importModel(path, context.get());
  ASSERT_TRUE(static_cast<bool>(result)) << result.failure().message;
  std::multiset<std::string> found, wanted;
  result->module->walk([&](WeightOp op) {
    ArrayRef<char> bytes = WeightStore::of(context.get()).lookup(op.getKey()).bytes;
    found.emplace(bytes.begin(), bytes.end());
  });
  for (char fill : {1, 2, 3})
    wanted.insert(largeTensor("", fill).raw_data());
  EXPECT_TRUE(found == wanted) << found.size();
}

/// A mask of a search's vocabulary and weights of its graphs, both large: settings and parts of the file read them.
TEST(FrontendImport, LargeContentsOfASearch) {
  std::ifstream stored(testsFolder() / "models" / "t5-beam-search" / "model.onnx", std::ios::binary);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromIstream(&stored));
  onnx::NodeProto *search = nullptr;
  for (onnx::NodeProto &node : *model.mutable_graph()->mutable_node())
    if (node.op_type() == "BeamSearch")
      search = &node;
  ASSERT_NE(search, nullptr);
  while (search->input_size() < 8)
    search->add_input("");
  search->set_input(7, "large_mask");
  onnx::TensorProto &mask = *model.mutable_graph()->add_initializer();
  mask.set_name("large_mask");
  mask.set_data_type(onnx::TensorProto::INT32);
  std::vector<int32_t> allowed(20000, 1);
  allowed[5] = allowed[19999] = 0;
  mask.add_dims(static_cast<int64_t>(allowed.size()));
  mask.set_raw_data(std::string(reinterpret_cast<const char *>(allowed.data()), allowed.size() * sizeof(int32_t)));
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  Outcome<ImportResult> result = importBytes(model.SerializeAsString(), context.get());
  ASSERT_TRUE(static_cast<bool>(result)) << result.failure().message;
  const std::string &settings = result->description.settings.json;
  EXPECT_NE(settings.find("\"suppress_tokens\":[5,19999"), std::string::npos) << settings.substr(0, 400);
}

TEST(FrontendImport, LargeContentsOfTheWrongSizeAreRefused) {
  onnx::ModelProto model = largeModel();
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, 199);
  transept::testing::expectFailure(model, ExitInvalidModel, {"'w'", "needs 79600 bytes", "has 80000"});
}

TEST(FrontendImport, AFileThatChangesIsRefused) {
  transept::testing::TemporaryFolder folder;
  std::string path = folder.write("model.onnx", largeModel().SerializeAsString());
  Outcome<OnnxFile> file = openOnnx(path);
  ASSERT_TRUE(static_cast<bool>(file)) << file.failure().message;
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  context->loadDialect<TranseptDialect>();
  const onnx::TensorProto &tensor = file->model->graph().initializer(0);
  EXPECT_TRUE(static_cast<bool>(decodeTensor(tensor, *file, context.get(), "w")));
  folder.write("model.onnx", "something else");
  Outcome<TensorData> data = decodeTensor(tensor, *file, context.get(), "w");
  ASSERT_FALSE(static_cast<bool>(data));
  EXPECT_EQ(data.failure().exitCode, ExitFile);
}

TEST(FrontendImport, ReferencesOfOtherFilesAreContents) {
  std::string bytes = largeModel().SerializeAsString();
  onnx::ModelProto light;
  ASSERT_TRUE(light.ParseFromString(withoutLargeContents(bytes, std::string(64, 'a'), 100)));
  llvm::StringRef reference = light.graph().initializer(0).raw_data();
  std::optional<ContentRange> range = referredRange(reference, std::string(64, 'a'));
  ASSERT_TRUE(range.has_value());
  EXPECT_TRUE(bytes.substr(range->offset, range->bytes) == largeTensor("", 1).raw_data());
  EXPECT_FALSE(referredRange(reference, std::string(64, 'b')).has_value());
  EXPECT_FALSE(referredRange(reference, "").has_value());
}

/// Offsets that 32 bits cannot say, in a file with a hole.
TEST(FrontendImport, ExternalDataBehindFourGigabytes) {
  transept::testing::TemporaryFolder folder;
  const uint64_t offset = (uint64_t(1) << 32) + 4096;
  onnx::ModelProto model = makeModel(17, "(float[n,200] x) => (float[] y)", "y = MatMul(x, w)");
  onnx::TensorProto &tensor = *model.mutable_graph()->add_initializer();
  tensor = largeTensor("w", 5);
  std::string data = folder.write("data", "");
  std::filesystem::resize_file(data, offset);
  std::ofstream(data, std::ios::binary | std::ios::app) << tensor.raw_data();
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (auto [key, value] :
       {std::pair<std::string, std::string>("location", "data"), {"offset", std::to_string(offset)}}) {
    tensor.add_external_data()->set_key(key);
    tensor.mutable_external_data()->rbegin()->set_value(value);
  }
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  Outcome<ImportResult> result = importModel(folder.write("model.onnx", model.SerializeAsString()), context.get());
  ASSERT_TRUE(static_cast<bool>(result)) << result.failure().message;
  result->module->walk([&](WeightOp op) {
    ArrayRef<char> bytes = WeightStore::of(context.get()).lookup(op.getKey()).bytes;
    EXPECT_TRUE(std::string(bytes.begin(), bytes.end()) == largeTensor("", 5).raw_data());
  });
}
} // namespace
