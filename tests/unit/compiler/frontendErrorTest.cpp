//===- frontendErrorTest.cpp - what a user reads about files that are no good -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests carry the numbers of the fault table: A bytes that are not a model, B graphs that lie, C tensors and external
// data.

#include "frontendModels.h"
#include "mlir/IR/Verifier.h"
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::transept;
using transept::testing::expectFailure;
using transept::testing::expectPathFailure;
using transept::testing::importBytes;
using transept::testing::makeModel;
using transept::testing::makeQuietContext;
using transept::testing::parseModel;
using transept::testing::TemporaryFolder;

namespace {
onnx::ModelProto simple() {
  return makeModel(
      17, "(float[n,4] x) => (float[] y)",
      "w = Constant<value = float[4,4] {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}>() h = MatMul(x, w) y = Relu(h) ");
}

/// A model with one initializer `w` that lies in model.onnx_data.
onnx::ModelProto external(std::initializer_list<std::pair<std::string, std::string>> entries) {
  onnx::ModelProto model = makeModel(17, "(float[n,16] x, float[16,8] w) => (float[] y)", "y = MatMul(x, w)");
  model.mutable_graph()->mutable_input()->RemoveLast();
  onnx::TensorProto &tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(16);
  tensor.add_dims(8);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto &[key, value] : entries) {
    onnx::StringStringEntryProto &entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  return model;
}

//===- A: bytes -===//

TEST(FrontendError, A1EmptyFile) { expectFailure(std::string(), ExitInvalidModel, {"model.onnx: the file is empty"}); }

TEST(FrontendError, A2NoModel) {
  expectFailure(std::string("\x07\x99", 2), ExitInvalidModel, {"not an ONNX model", "byte"});
}

TEST(FrontendError, A3EveryTruncation) {
  std::string bytes = simple().SerializeAsString();
  for (size_t length = 1; length < bytes.size(); ++length) {
    std::unique_ptr<MLIRContext> context = makeQuietContext();
    Outcome<ImportResult> result = importBytes(bytes.substr(0, length), context.get());
    ASSERT_FALSE(static_cast<bool>(result)) << length;
    EXPECT_EQ(result.failure().exitCode, ExitInvalidModel) << length << ": " << result.failure().message;
  }
}

TEST(FrontendError, A4OtherFormats) {
  expectFailure(std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16), ExitInvalidModel,
                {"a PNG image", "export the model"});
  expectFailure("PK\x03\x04 and more", ExitInvalidModel, {"PyTorch"});
  expectFailure("version https://git-lfs.github.com/spec/v1\noid sha256:", ExitInvalidModel, {"git lfs pull"});
  expectFailure("import torch\nprint(1)\n", ExitInvalidModel, {"a text file"});
  expectFailure(std::string("\x1f\x8b\x08\0\0\0\0\0", 8), ExitInvalidModel, {"gzip"});
}

TEST(FrontendError, A5NumbersThatAreTooLong) {
  expectFailure("\x08" + std::string(11, '\xff'), ExitInvalidModel, {"at byte"});
}

TEST(FrontendError, A6NestedMessages) {
  // Graph, node, attribute, graph …, each inside the one before.
  std::string bytes;
  auto wrap = [&bytes](unsigned field) {
    std::string length;
    for (size_t rest = bytes.size();; rest >>= 7) {
      length += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
      if (rest <= 0x7f)
        break;
    }
    bytes = static_cast<char>(field << 3 | 2) + length + bytes;
  };
  for (int depth = 0; depth < 400; ++depth)
    for (unsigned field : {6, 5, 1})
      wrap(field);
  wrap(7);
  expectFailure("\x08\x08" + bytes, ExitLimit, {"nested", "100"});
}

/// `depth` Ifs, each in the first branch of the one before it.
onnx::ModelProto nestedIfs(int depth) {
  onnx::ModelProto model = makeModel(16, "(float[n] x, bool c) => (float[] y)", "y = Neg(x)");
  onnx::GraphProto body = model.graph();
  for (int level = 0; level < depth; ++level) {
    const std::string result = "y" + std::to_string(level);
    onnx::GraphProto inner = body, other;
    inner.clear_input();
    other.set_name("else");
    onnx::NodeProto &copy = *other.add_node();
    copy.set_op_type("Identity");
    copy.add_input("x");
    copy.add_output("e" + std::to_string(level));
    *other.add_output() = body.output(0);
    other.mutable_output(0)->set_name(copy.output(0));
    body.clear_node();
    onnx::NodeProto &node = *body.add_node();
    node.set_op_type("If");
    node.add_input("c");
    node.add_output(result);
    for (auto [name, graph] : {std::pair("then_branch", &inner), {"else_branch", &other}}) {
      onnx::AttributeProto &attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(onnx::AttributeProto::GRAPH);
      *attribute.mutable_g() = *graph;
    }
    body.mutable_output(0)->set_name(result);
  }
  *model.mutable_graph() = body;
  return model;
}

TEST(FrontendError, A6NestedIfs) {
  expectFailure(nestedIfs(50), ExitLimit, {"nested", "100"});
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  Outcome<ImportResult> result = importBytes(nestedIfs(30).SerializeAsString(), context.get());
  EXPECT_TRUE(static_cast<bool>(result)) << result.failure().message;
}

TEST(FrontendError, A7HugeLengths) {
  expectFailure(std::string("\x3a\xff\xff\xff\xff\x07", 6), ExitInvalidModel, {"bytes, of which only 0 are there"});
  expectFailure(std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10), ExitInvalidModel, {"are there"});
}

TEST(FrontendError, A9TwoGraphs) {
  std::string bytes = simple().SerializeAsString();
  expectFailure(bytes + bytes, ExitInvalidModel, {"second graph"});
}

TEST(FrontendError, A10StrangeNames) {
  onnx::ModelProto model = simple();
  std::string name = std::string("a\0b\n\x1b[31m", 9) + std::string(1 << 20, 'n');
  model.mutable_graph()->mutable_node(1)->set_name(name);
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  Outcome<ImportResult> result = importBytes(model.SerializeAsString(), context.get());
  ASSERT_TRUE(static_cast<bool>(result)) << result.failure().message;
  model.mutable_graph()->mutable_node(1)->set_op_type("NoSuchOperator");
  expectFailure(model, ExitUnsupported, {"NoSuchOperator", "a\\x00b\\x0a\\x1b[31m"});
}

TEST(FrontendError, A12NodeCount) {
  TemporaryFolder folder;
  ImportRequest request;
  request.limits.nodes = 2;
  expectPathFailure(folder.write("model.onnx", simple().SerializeAsString()), ExitLimit, {"3 nodes", "limit of 2"},
                    request);
}

TEST(FrontendError, A13NotAFile) {
  TemporaryFolder folder;
  ImportRequest graph;
  graph.kind = ImportRequest::AsGraph;
  expectPathFailure(folder.path.string(), ExitUsage, {"is a directory"}, graph);
  std::string fifo = (folder.path / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expectPathFailure(fifo, ExitFile, {"not a regular file"});
  expectPathFailure("/dev/zero", ExitFile, {"not a regular file"});
}

TEST(FrontendError, A14Unreadable) {
  TemporaryFolder folder;
  expectPathFailure((folder.path / "missing.onnx").string(), ExitFile, {"No such file"});
  std::string loop = (folder.path / "loop.onnx").string();
  ASSERT_EQ(::symlink("loop.onnx", loop.c_str()), 0);
  expectPathFailure(loop, ExitFile, {"symbolic links"});
}

//===- B: graphs -===//

TEST(FrontendError, B1NoOutputs) {
  onnx::ModelProto model = simple();
  model.clear_graph();
  expectFailure(model, ExitInvalidModel, {"no graph"});
}

TEST(FrontendError, B2Versions) {
  onnx::ModelProto model = simple();
  model.set_ir_version(999);
  expectFailure(model, ExitUnsupported, {"IR version 999", "3 to 14"});
  model.set_ir_version(0);
  expectFailure(model, ExitInvalidModel, {"IR version 0"});
  // The newest one brings floats of 6 bits, which are refused where they occur.
  model = simple();
  model.set_ir_version(14);
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(27);
  expectFailure(model, ExitUnsupported, {"type 27"});
  model = simple();
  model.mutable_opset_import(0)->set_version(9999);
  expectFailure(model, ExitUnsupported, {"opset 9999 is newer", "7 to 26"});
  model.mutable_opset_import(0)->set_version(99);
  expectFailure(model, ExitUnsupported, {"opset 99 is newer"});
  model.mutable_opset_import(0)->set_version(5);
  expectFailure(model, ExitUnsupported, {"opset 5 is older"});
  model.mutable_opset_import(0)->set_version(0);
  expectFailure(model, ExitInvalidModel, {"opset 0"});
  model.clear_opset_import();
  expectFailure(model, ExitInvalidModel, {"which version of the ONNX operators"});
  model = simple();
  onnx::OperatorSetIdProto &second = *model.add_opset_import();
  second.set_domain("ai.onnx");
  second.set_version(13);
  expectFailure(model, ExitInvalidModel, {"twice", "17", "13"});
}

TEST(FrontendError, B3UndefinedInput) {
  onnx::ModelProto model = simple();
  model.mutable_graph()->mutable_node(2)->set_input(0, "nowhere");
  expectFailure(model, ExitInvalidModel, {"'nowhere'", "Relu"});
}

TEST(FrontendError, B4TwoMakersOfOneName) {
  onnx::ModelProto model = simple();
  model.mutable_graph()->mutable_node(2)->set_output(0, "h");
  expectFailure(model, ExitInvalidModel, {"SSA", "'h'"});
}

TEST(FrontendError, B4NamesTwice) {
  onnx::ModelProto model = simple();
  *model.mutable_graph()->add_input() = model.graph().input(0);
  expectFailure(model, ExitInvalidModel, {"'x'"});
  model = simple();
  for (int i = 0; i < 2; ++i) {
    onnx::TensorProto &tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name("twice");
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(1);
    tensor.add_float_data(static_cast<float>(i));
  }
  expectFailure(model, ExitInvalidModel, {"twice", "not unique"});
}

TEST(FrontendError, B4NamesThatAreNotUtf8) {
  onnx::ModelProto model = simple();
  model.mutable_graph()->mutable_node(0)->set_name("\xff\xfe");
  expectFailure(model, ExitInvalidModel, {"NodeProto.name", "\\xff\\xfe", "is not UTF-8"});
  model = simple();
  model.mutable_graph()->mutable_input(0)->set_name("\xc3");
  expectFailure(model, ExitInvalidModel, {"ValueInfoProto.name", "is not UTF-8"});
}

/// A nested graph may read outer names, not make them again.
TEST(FrontendError, B4BranchThatMakesAnOuterName) {
  expectFailure(makeModel(16, "(float[n] x, bool c) => (float[] y)",
                          "h = Neg(x) y = If(c) <then_branch = t () => (float[n] h) { h = Abs(x) },"
                          " else_branch = e () => (float[n] b) { b = Neg(h) }>"),
                ExitInvalidModel, {"SSA", "'h'"});
}

TEST(FrontendError, B5AndB6Order) {
  onnx::ModelProto model = simple();
  model.mutable_graph()->mutable_node()->SwapElements(1, 2);
  expectFailure(model, ExitInvalidModel, {"topologically sorted", "'h'"});
}

TEST(FrontendError, B6Cycle) {
  onnx::ModelProto model = simple();
  model.mutable_graph()->mutable_node(1)->set_input(0, "y"); // h from y, y from h
  expectFailure(model, ExitInvalidModel, {"topologically sorted", "'y'"});
  model.mutable_graph()->mutable_node(1)->set_input(0, "h");
  expectFailure(model, ExitInvalidModel, {"topologically sorted", "'h'"});
}

TEST(FrontendError, B7OutputWithoutMaker) {
  onnx::ModelProto model = simple();
  model.mutable_graph()->mutable_output(0)->set_name("z");
  expectFailure(model, ExitInvalidModel, {"'z'"});
}

TEST(FrontendError, B8DefaultOfAnotherType) {
  expectFailure(parseModel("<ir_version: 8, opset_import: [\"\": 17]> g (float[n] x, int64[1] s) => (float[] y) "
                           "<float[1] s = {2.0}> { y = Relu(x) }"),
                ExitInvalidModel, {"'s'", "differ in type"});
}

TEST(FrontendError, B11FunctionsThatCallThemselves) {
  expectFailure(parseModel(R"(<ir_version: 8, opset_import: ["": 17, "local": 1]>
    g (float[n] x) => (float[] y) { y = local.F(x) }
    <domain: "local", opset_import: ["": 17, "local": 1]> F (a) => (b) { b = local.F(a) })"),
                ExitLimit, {"'F'", "100"});
}

TEST(FrontendError, B12LongChains) {
  onnx::ModelProto model = makeModel(17, "(float[n] x) => (float[] y)", "y = Identity(x)");
  onnx::GraphProto &graph = *model.mutable_graph();
  graph.mutable_node(0)->set_output(0, "v0");
  for (int index = 0; index < 100000; ++index) {
    onnx::NodeProto &node = *graph.add_node();
    node.set_op_type("Identity");
    node.add_input("v" + std::to_string(index));
    node.add_output(index == 99999 ? "y" : "v" + std::to_string(index + 1));
  }
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  EXPECT_TRUE(static_cast<bool>(importBytes(model.SerializeAsString(), context.get())));
}

TEST(FrontendError, B13DeclaredOutputType) {
  expectFailure(makeModel(17, "(float[n] x) => (int64[] y)", "y = Relu(x)"), ExitInvalidModel,
                {"'y'", "INT64", "FLOAT"});
}

TEST(FrontendError, B14Sizes) {
  onnx::ModelProto model = simple();
  auto &shape = *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.mutable_dim(0)->set_dim_value(-1);
  expectFailure(model, ExitInvalidModel, {"'x'", "size -1", "axis 0"});
  shape.mutable_dim(0)->set_dim_param(std::string(1 << 20, 'n'));
  expectFailure(model, ExitLimit, {"'x'", "characters"});
  for (int axis = 0; axis < 1000; ++axis)
    shape.add_dim()->set_dim_value(1);
  expectFailure(model, ExitLimit, {"1002 axes"});
}

TEST(FrontendError, B15Arity) {
  onnx::ModelProto model = simple();
  model.mutable_graph()->mutable_node(1)->mutable_input()->RemoveLast();
  expectFailure(model, ExitInvalidModel, {"MatMul", "1"});
}

// Operators that the checker of ONNX does not know.
TEST(FrontendError, B15ArityOfContributedOperators) {
  for (auto [node, input] : {std::pair("FusedMatMul(x)", "leaves out input 1"),
                             {"SkipLayerNormalization(x, , x)", "leaves out input 1"},
                             {"MatMulNBits<K = 4, N = 1, block_size = 16>(x, x)", "leaves out input 2"}}) {
    std::string text = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> "
                       "g (float[n,4] x) => (float[] y) { y = com.microsoft.";
    expectFailure(parseModel(text + node + " }").SerializeAsString(), ExitInvalidModel, {input});
  }
}

TEST(FrontendError, B16AllUnknownOperatorsAtOnce) {
  onnx::ModelProto model = parseModel(R"(<ir_version: 8, opset_import: ["": 17, "my.ops": 3]>
    g (float[n] x) => (float[] y)
    { a = my.ops.One(x) b = my.ops.Two(a) c = StringNormalizer(x) d = Gelu(b) e = my.ops.Two(d) y = Relu(e) })");
  expectFailure(model, ExitUnsupported,
                {"operator my.ops::One, version 3", "operator my.ops::Two, version 3", "and 1 more", "--report"});
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  Outcome<ImportResult> result = importBytes(model.SerializeAsString(), context.get());
  ASSERT_FALSE(static_cast<bool>(result));
  ASSERT_EQ(result.failure().details.size(), 4u);
  EXPECT_NE(result.failure().details[1].find("'Two of b', 'Two of e'"), std::string::npos);
  EXPECT_NE(result.failure().details[3].find("Gelu"), std::string::npos);
  EXPECT_NE(result.failure().details[3].find("from opset 20"), std::string::npos);
}

TEST(FrontendError, B17Attributes) {
  expectFailure(
      makeModel(17, "(float[n,4] x, float[4] s) => (float[] y)", "y = LayerNormalization<stash_type = 10>(x, s)"),
      ExitUnsupported, {"stash_type FLOAT16", "LayerNormalization of y"});
  expectFailure(makeModel(17, "(float[n,4] x) => (float[] y)", "y = Relu<color = 3>(x)"), ExitInvalidModel, {"color"});
  expectFailure(makeModel(17, "(float[n,4] x) => (float[] y)", "y = Transpose<perm = [0, 0]>(x)"), ExitInvalidModel,
                {"perm"});
  onnx::ModelProto model =
      makeModel(17, "(float[n,4] x, float[4] s) => (float[] y)", "y = LayerNormalization<epsilon = 1.0>(x, s)");
  model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->set_f(std::nanf(""));
  expectFailure(model, ExitInvalidModel, {"epsilon"});
}

TEST(FrontendError, B18BranchesThatDiffer) {
  expectFailure(makeModel(16, "(float[n] x, bool c) => (float[] y)",
                          "y = If(c) <then_branch = t () => (float[n] a) { a = Neg(x) },"
                          " else_branch = e () => (int64[n] b) { b = Cast<to = 7>(x) }>"),
                ExitInvalidModel, {"If", "element type"});
}

TEST(FrontendError, B22OtherThanTensors) {
  expectFailure(makeModel(17, "(seq(float[n]) x) => (float[] y)", "z = Constant<value_int = 0>() y = SequenceAt(x, z)"),
                ExitUnsupported, {"SequenceAt"});
  expectFailure(makeModel(17, "(string[n] x) => (string[] y)", "y = Identity(x)"), ExitUnsupported, {"'x'", "STRING"});
}

//===- C: tensors -===//

TEST(FrontendError, C1WrongByteCount) {
  onnx::ModelProto model = simple();
  onnx::TensorProto &tensor = *model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t();
  tensor.clear_float_data();
  tensor.set_raw_data(std::string(60, '\0'));
  expectFailure(model, ExitInvalidModel, {"needs 64 bytes", "has 60"});
}

TEST(FrontendError, C2TwoKindsOfData) {
  onnx::ModelProto model = simple();
  model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t()->set_raw_data(std::string(64, '\0'));
  expectFailure(model, ExitInvalidModel, {"one and only one value field"});
}

TEST(FrontendError, C3AndC4Sizes) {
  onnx::ModelProto model = simple();
  onnx::TensorProto &tensor = *model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t();
  tensor.set_dims(0, int64_t(1) << 32);
  tensor.set_dims(1, int64_t(1) << 32);
  expectFailure(model, ExitInvalidModel, {"too large"});
  tensor.set_dims(0, -4);
  expectFailure(model, ExitInvalidModel, {"negative size -4"});
}

TEST(FrontendError, C6ElementTypes) {
  for (int type : {0, 99, INT32_MAX}) {
    onnx::ModelProto model = simple();
    model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t()->set_data_type(type);
    expectFailure(model, ExitInvalidModel, {"element type"});
  }
}

TEST(FrontendError, C7Locations) {
  for (std::string location : {"../x", "a/../../x", "/etc/passwd", "C:\\x", "\\\\host\\x", "..\\x", "", ".", "a//b"})
    expectFailure(external({{"location", location}}), ExitInvalidModel, {"'w'", "inside the model's folder"});
  expectFailure(external({{"location", std::string("a\0b", 3)}}), ExitInvalidModel, {"'w'"});
  expectFailure(external({{"location", std::string(5000, 'a')}}), ExitInvalidModel, {"'w'"});
}

TEST(FrontendError, C8AndC9Links) {
  TemporaryFolder model, elsewhere, cache;
  std::string bytes = external({{"location", "model.onnx_data"}}).SerializeAsString();
  std::string outside = elsewhere.write("secret", std::string(512, '\1'));
  std::string path = model.write("model.onnx", bytes);
  ASSERT_EQ(::symlink(outside.c_str(), (model.path / "model.onnx_data").c_str()), 0);
  expectPathFailure(path, ExitInvalidModel, {"'w'", "outside the model's folder"});

  // Both are links into one folder: the layout of the Hugging Face cache.
  std::filesystem::create_directories(cache.path / "blobs");
  std::filesystem::create_directories(cache.path / "snapshots");
  cache.write("blobs/one", bytes);
  cache.write("blobs/two", std::string(512, '\1'));
  ASSERT_EQ(::symlink("../blobs/one", (cache.path / "snapshots/model.onnx").c_str()), 0);
  ASSERT_EQ(::symlink("../blobs/two", (cache.path / "snapshots/model.onnx_data").c_str()), 0);
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  Outcome<ImportResult> result = importModel((cache.path / "snapshots/model.onnx").string(), context.get());
  EXPECT_TRUE(static_cast<bool>(result)) << result.failure().message;
}

TEST(FrontendError, C11DataThatIsNoFile) {
  TemporaryFolder folder;
  std::string path = folder.write("model.onnx", external({{"location", "data"}}).SerializeAsString());
  expectPathFailure(path, ExitFile, {"'w'", "No such file"});
  ASSERT_EQ(::mkfifo((folder.path / "data").c_str(), 0600), 0);
  expectPathFailure(path, ExitFile, {"'w'", "not a regular file"});
}

TEST(FrontendError, C12Offsets) {
  for (std::string offset : {"-1", "x", "18446744073709551615", "0x10", ""})
    expectFailure(external({{"location", "data"}, {"offset", offset}}), ExitInvalidModel, {"'w'", "offset"});
  expectFailure(external({{"location", "data"}, {"length", "-1"}}), ExitInvalidModel, {"'w'", "length"});
}

TEST(FrontendError, C13AndC14Lengths) {
  TemporaryFolder folder;
  folder.write("data", std::string(300, '\0'));
  auto write = [&](const onnx::ModelProto &model) { return folder.write("model.onnx", model.SerializeAsString()); };
  expectPathFailure(write(external({{"location", "data"}})), ExitInvalidModel, {"'w'", "0 to 512", "has 300"});
  expectPathFailure(write(external({{"location", "data"}, {"offset", "9223372036854775807"}})), ExitInvalidModel,
                    {"'w'", "has 300"});
  expectPathFailure(write(external({{"location", "data"}, {"length", "100"}})), ExitInvalidModel,
                    {"'w'", "needs 512", "100"});
}

TEST(FrontendError, C15KeysTwice) {
  expectFailure(external({{"location", "data"}, {"location", "data"}}), ExitInvalidModel, {"'w'", "twice"});
}

TEST(FrontendError, C16Checksums) {
  TemporaryFolder folder;
  folder.write("data", std::string(512, '\0'));
  // sha1sum of 512 zero bytes
  std::string right = "5c3eb80066420002bc3dcc7ca4ab6efad7ed4ae5";
  std::string path =
      folder.write("model.onnx", external({{"location", "data"}, {"checksum", right}}).SerializeAsString());
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  Outcome<ImportResult> result = importModel(path, context.get());
  EXPECT_TRUE(static_cast<bool>(result)) << result.failure().message;
  right[0] = '6';
  path = folder.write("model.onnx", external({{"location", "data"}, {"checksum", right}}).SerializeAsString());
  expectPathFailure(path, ExitInvalidModel, {"'w'", "'data'", "checksum"});
}

//===- Mutations: whatever the bytes, one line and an exit code -===//

TEST(FrontendError, MutatedModelsNeverCrash) {
  std::ifstream file(transept::testing::testsFolder() / "cases" / "if_outer_scope_nested" / "model.onnx",
                     std::ios::binary);
  std::string original((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(original.empty());
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = original;
    for (unsigned change = 0; change <= random() % 3; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    std::unique_ptr<MLIRContext> context = makeQuietContext();
    Outcome<ImportResult> result = importBytes(bytes, context.get());
    if (result)
      EXPECT_TRUE(succeeded(verify(*result->module)));
    else
      EXPECT_EQ(result.failure().message.find('\n'), std::string::npos) << result.failure().message;
  }
}
} // namespace
