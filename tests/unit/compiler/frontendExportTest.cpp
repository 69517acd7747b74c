//===- frontendExportTest.cpp - what an export directory is taken for -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontendModels.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace mlir::transept;
using transept::testing::expectPathFailure;
using transept::testing::makeQuietContext;
using transept::testing::parseModel;
using transept::testing::TemporaryFolder;
using transept::testing::testsFolder;

namespace {
std::filesystem::path model(const std::string &name) { return testsFolder() / "models" / name; }

struct Opened {
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  std::optional<ImportResult> result;

  explicit Opened(const std::filesystem::path &path) {
    Outcome<ImportResult> imported = importModel(path.string(), context.get());
    EXPECT_TRUE(static_cast<bool>(imported)) << imported.failure().message;
    if (imported)
      result = std::move(*imported);
  }
  const PortRoles &roles(GraphRole role) const {
    static const PortRoles none;
    for (const ExportGraph &graph : result->description.graphs)
      if (graph.role == role)
        return graph.roles;
    ADD_FAILURE() << "no " << functionName(role).str();
    return none;
  }
  bool has(GraphRole role) { return bool(result->module->lookupSymbol<func::FuncOp>(functionName(role))); }
};

/// A folder with the given files of tests/models, renamed.
struct Folder : TemporaryFolder {
  void copy(const std::string &from, const std::string &to) const {
    std::filesystem::create_directories((path / to).parent_path());
    std::filesystem::copy_file(testsFolder() / "models" / from, path / to);
  }
};

TEST(FrontendExport, HuggingFaceNames) {
  Opened marian(model("marian-tiny"));
  EXPECT_TRUE(marian.has(GraphRole::Encoder));
  EXPECT_TRUE(marian.has(GraphRole::Decoder));
  EXPECT_TRUE(marian.has(GraphRole::DecoderWithPast));
  // Made of the two others.
  EXPECT_FALSE(marian.has(GraphRole::DecoderMerged));
  EXPECT_EQ(marian.roles(GraphRole::Encoder), (PortRoles{{"attention_mask", "source_mask"},
                                                         {"input_ids", "source_ids"},
                                                         {"last_hidden_state", "encoder_states"}}));
  const PortRoles &past = marian.roles(GraphRole::DecoderWithPast);
  EXPECT_EQ(past.at("input_ids"), "target_ids");
  EXPECT_EQ(past.at("encoder_attention_mask"), "source_mask");
  EXPECT_EQ(past.at("past_key_values.1.decoder.value"), "past.self.value.1");
  EXPECT_EQ(past.at("past_key_values.0.encoder.key"), "past.cross.key.0");
  EXPECT_EQ(past.at("present.1.decoder.key"), "present.self.key.1");
  EXPECT_EQ(past.at("logits"), "logits");
}

TEST(FrontendExport, MergedDecoder) {
  Opened merged(model("marian-tiny-opset13"));
  EXPECT_TRUE(merged.has(GraphRole::DecoderMerged));
  EXPECT_EQ(merged.roles(GraphRole::DecoderMerged).at("use_cache_branch"), "use_cache");
}

TEST(FrontendExport, OneGraphWithSourceAndTarget) {
  Opened torch(model("nn-transformer-paper-op14"));
  EXPECT_EQ(torch.roles(GraphRole::Monolith), (PortRoles{{"logits", "logits"},
                                                         {"src", "source_ids"},
                                                         {"src_key_padding_mask", "source_padding"},
                                                         {"tgt", "target_ids"}}));
  Opened log(model("nn-transformer-paper-op17"));
  EXPECT_EQ(log.roles(GraphRole::Monolith).at("log_probs"), "log_probs");
}

TEST(FrontendExport, NamesOfItsOwn) {
  Opened t2t(model("t2t-style"));
  EXPECT_TRUE(t2t.has(GraphRole::Monolith));
  EXPECT_EQ(t2t.roles(GraphRole::Encoder).at("inputs"), "source_ids");
  EXPECT_EQ(t2t.roles(GraphRole::Encoder).at("cross.1.key"), "present.cross.key.1");
  const PortRoles &step = t2t.roles(GraphRole::DecoderWithPast);
  EXPECT_EQ(step.at("last_id"), "target_ids");
  EXPECT_EQ(step.at("step"), "past_length");
  EXPECT_EQ(step.at("encoder_bias"), "encoder_result"); // bound by name
  EXPECT_EQ(step.at("past.1.value"), "past.self.value.1");
  EXPECT_EQ(step.at("cross.0.value"), "past.cross.value.0");
}

TEST(FrontendExport, CacheNames) {
  auto graph = [](const std::string &inputs, const std::string &outputs) {
    return parseModel("<ir_version: 8, opset_import: [\"\": 17]> g (" + inputs + ") => (" + outputs +
                      ") { logits = Cast<to = 1>(input_ids) }")
        .graph();
  };
  std::vector<std::string> unknown;
  PortRoles fast = findPortRoles(graph("int64[b,t] input_ids, int64[b,s] encoder_attention_mask, float[b,s,8] "
                                       "encoder_hidden_states, float[b,h,p,d] pkv_5, float[b,h,s,d] pkv_6",
                                       "float[b,t,v] logits"),
                                 GraphRole::DecoderWithPast, unknown);
  EXPECT_TRUE(unknown.empty());
  EXPECT_EQ(fast.at("pkv_5"), "past.self.value.1");
  EXPECT_EQ(fast.at("pkv_6"), "past.cross.key.1");
  EXPECT_EQ(fast.at("encoder_hidden_states"), "encoder_states");
  PortRoles runtime =
      findPortRoles(graph("int32[b,t] input_ids, float[b,h,p,d] past_key_self_2, float[b,h,s,d] "
                          "past_value_cross_0, int64[1] past_sequence_length, int64[b,c] attention_mask",
                          "float[b,t,v] logits, float[b,h,q,d] present_key_self_2"),
                    GraphRole::DecoderWithPast, unknown);
  EXPECT_TRUE(unknown.empty());
  EXPECT_EQ(runtime.at("past_key_self_2"), "past.self.key.2");
  EXPECT_EQ(runtime.at("past_value_cross_0"), "past.cross.value.0");
  EXPECT_EQ(runtime.at("present_key_self_2"), "present.self.key.2");
  EXPECT_EQ(runtime.at("past_sequence_length"), "past_length");
  EXPECT_EQ(runtime.at("attention_mask"), "target_mask");
}

TEST(FrontendExport, FilesAreKnownByWhatTheyCompute) {
  Folder folder;
  folder.copy("marian-tiny/decoder_with_past_model.onnx", "a.onnx");
  folder.copy("marian-tiny/encoder_model.onnx", "b.onnx");
  folder.copy("marian-tiny/decoder_model.onnx", "c.onnx");
  Opened opened(folder.path);
  EXPECT_TRUE(opened.has(GraphRole::Encoder));
  EXPECT_TRUE(opened.has(GraphRole::Decoder));
  EXPECT_TRUE(opened.has(GraphRole::DecoderWithPast));
}

TEST(FrontendExport, FilesInAFolderNamedOnnx) {
  Folder folder;
  folder.copy("marian-tiny/encoder_model.onnx", "onnx/encoder_model.onnx");
  folder.copy("marian-tiny-opset13/decoder_model_merged.onnx", "onnx/decoder_model_merged.onnx");
  folder.copy("marian-tiny-opset13/decoder_model_merged.onnx", "onnx/decoder_model_merged_quantized.onnx"); // a variant
  folder.copy("marian-tiny/generation_config.json", "generation_config.json");
  Opened opened(folder.path);
  EXPECT_TRUE(opened.has(GraphRole::DecoderMerged));
  EXPECT_NE(opened.result->description.settings.json.find("\"max_length\":64"), std::string::npos);
}

TEST(FrontendExport, IncompleteFolders) {
  Folder none, encoder, decoder, twice;
  expectPathFailure(none.path.string(), ExitInvalidModel, {"holds no .onnx file"});
  encoder.copy("marian-tiny/encoder_model.onnx", "encoder_model.onnx");
  expectPathFailure(encoder.path.string(), ExitInvalidModel, {"'encoder_model.onnx'", "no decoder"});
  decoder.copy("marian-tiny/decoder_model.onnx", "decoder_model.onnx");
  expectPathFailure(decoder.path.string(), ExitInvalidModel, {"'decoder_model.onnx'", "no encoder"});
  twice.copy("marian-tiny/encoder_model.onnx", "a.onnx");
  twice.copy("marian-tiny/encoder_model.onnx", "b.onnx");
  expectPathFailure(twice.path.string(), ExitInvalidModel, {"two files", "'a.onnx'", "'b.onnx'"});
}

TEST(FrontendExport, B21FilesOfTwoModels) {
  Folder folder;
  folder.copy("marian-tiny/encoder_model.onnx", "encoder_model.onnx");
  std::filesystem::copy_file(testsFolder() / "cases" / "gen_bart_merged_greedy" / "decoder_model_merged.onnx",
                             folder.path / "decoder_model_merged.onnx");
  expectPathFailure(folder.path.string(), ExitInvalidModel, {"size 16", "size 64", "different models"});
}

TEST(FrontendExport, SettingsAndWhatIsRefused) {
  Folder folder;
  folder.copy("nn-transformer-paper-op14/model.onnx", "model.onnx");
  folder.write("config.json",
               R"({"model_type": "x", "max_length": 20, "num_beams": 2, "eos_token_id": 2, "license": "mit"})");
  folder.write("generation_config.json",
               R"({"num_beams": 6, "do_sample": true, "top_k": 50, "temperature": 0.7, "num_beam_groups": 1,
                   "diversity_penalty": 0.5, "typical_p": 0.5, "use_cache": true, "made_up": [1, 2], "max_time": null})");
  Opened opened(folder.path);
  const GenerationSettings &settings = opened.result->description.settings;
  EXPECT_EQ(settings.json, R"({"do_sample":true,"eos_token_id":2,"max_length":20,"num_beams":6,)"
                           R"("temperature":0.7,"top_k":50})");
  EXPECT_EQ(settings.refused, (std::vector<std::string>{"diversity_penalty=0.5", "made_up=[1,2]", "typical_p=0.5"}));
  EXPECT_EQ(opened.result->warnings.size(), 3u);
  EXPECT_EQ(opened.result->description.licence, "mit");
  auto attribute = (*opened.result->module)->getAttrOfType<DictionaryAttr>("transept.export");
  ASSERT_TRUE(attribute);
  EXPECT_EQ(attribute.getAs<StringAttr>("kind").getValue(), "encoder-decoder");
  EXPECT_EQ(attribute.getAs<ArrayAttr>("refused").size(), 3u);
}

TEST(FrontendExport, ConfigurationThatIsNoJson) {
  Folder folder;
  folder.copy("nn-transformer-paper-op14/model.onnx", "model.onnx");
  folder.write("generation_config.json", "{\"num_beams\": ");
  expectPathFailure(folder.path.string(), ExitInvalidModel, {"generation_config.json"});
  folder.write("generation_config.json", "[1]");
  expectPathFailure(folder.path.string(), ExitInvalidModel, {"generation_config.json", "object"});
}

TEST(FrontendExport, TokenizerFiles) {
  Opened marian(model("marian-tiny"));
  const TokenizerFiles &tokenizer = marian.result->description.tokenizer;
  EXPECT_EQ(tokenizer.kind, "marian");
  std::vector<std::string> names;
  for (const TokenizerFiles::File &file : tokenizer.files)
    names.push_back(file.name);
  EXPECT_EQ(names, (std::vector<std::string>{"source.spm", "special_tokens_map.json", "target.spm",
                                             "tokenizer_config.json", "vocab.json"}));
  EXPECT_EQ(Opened(model("t2t-style")).result->description.tokenizer.kind, "none");
}

TEST(FrontendExport, InputsNobodyKnows) {
  Folder folder;
  folder.copy("marian-tiny/encoder_model.onnx", "encoder_model.onnx");
  folder.write(
      "decoder_model.onnx",
      parseModel(
          "<ir_version: 8, opset_import: [\"\": 17]> g (int64[b,t] input_ids, float[b,s,64] "
          "encoder_hidden_states, float[b,7] weather) => (float[b,t] logits) { logits = Cast<to = 1>(input_ids) }")
          .SerializeAsString());
  expectPathFailure(folder.path.string(), ExitUnsupported, {"decoder_model.onnx", "'weather'"});
}
} // namespace
