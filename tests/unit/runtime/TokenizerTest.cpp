#include "TinyModel.h"

#include "runtime/text/Tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace transept;
using namespace transept::tests;
using nlohmann::json;

namespace {

const std::string folder = TRANSEPT_TEST_MODELS "/marian-tiny/";

struct Files {
  std::map<std::string, std::string> contents;
  Files() {
    for (const char *name : {"source.spm", "target.spm", "vocab.json"})
      contents[name] = readFile(folder + name);
  }
  std::vector<TokenizerFile> list() const {
    std::vector<TokenizerFile> files;
    for (const auto &[name, bytes] : contents)
      files.push_back({name, bytes});
    return files;
  }
};

std::unique_ptr<Tokenizer> marian(const std::string &config) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = makeTokenizer("sentencepiece-pair", Files().list(), config);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return tokenizer.take();
}

/// The cases were made by MarianTokenizer of transformers 4.57.
TEST(Tokenizer, SplitsAndJoinsAsMarianTokenizer) {
  auto tokenizer = marian(readFile(folder + "tokenizer_config.json"));
  json cases = json::parse(readFile(folder + "tokenizer_cases.json"));
  EXPECT_EQ(tokenizer->endOfSource(), cases["eos_token_id"].get<int64_t>());
  ASSERT_GE(cases["encode"].size(), 20u);
  for (const json &one : cases["encode"]) {
    std::string text = one["text"];
    auto ids = one["side"] == "source" ? tokenizer->encodeSource(text, {}) : tokenizer->encodeTarget(text, {});
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    EXPECT_EQ(json(*ids), one["ids"]) << text;
  }
}

TEST(Tokenizer, DecodesAsMarianTokenizer) {
  auto tokenizer = marian(readFile(folder + "tokenizer_config.json"));
  json cases = json::parse(readFile(folder + "tokenizer_cases.json"));
  auto decode = [&](const json &ids) { return tokenizer->decode(ids.get<std::vector<int64_t>>()); };
  for (const json &one : cases["decode_only"])
    EXPECT_EQ(decode(one["ids"]), one["decoded"].get<std::string>());
  for (const json &one : cases["encode"])
    if (one["side"] == "target") // source texts were decoded with the source model
      EXPECT_EQ(decode(one["ids"]), one["decoded"].get<std::string>());
  for (const json &one : cases["end_to_end"]["cases"])
    for (const auto &[name, answer] : one.items())
      if (answer.is_object())
        EXPECT_EQ(decode(answer["output_ids"]), answer["text"].get<std::string>());
}

TEST(Tokenizer, CleansUpWhereTheConfigurationSaysSo) {
  json config = json::parse(readFile(folder + "tokenizer_config.json"));
  config["clean_up_tokenization_spaces"] = true;
  auto tokenizer = marian(config.dump());
  json cases = json::parse(readFile(folder + "tokenizer_cases.json"));
  for (const json &one : cases["encode"])
    if (one["side"] == "target")
      EXPECT_EQ(tokenizer->decode(one["ids"].get<std::vector<int64_t>>()), one["decoded_cleaned"].get<std::string>());
}

TEST(Tokenizer, ALanguageCodeIsOneToken) {
  Files files;
  json vocabulary = json::parse(files.contents["vocab.json"]);
  vocabulary[">>fra<<"] = 273;
  files.contents["vocab.json"] = vocabulary.dump();
  auto tokenizer = makeTokenizer("sentencepiece-pair", files.list(), "");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  std::vector<int64_t> plain = *(*tokenizer)->encodeSource(" the river", {});
  std::vector<int64_t> coded = *(*tokenizer)->encodeSource(">>fra<< the river", {});
  plain.insert(plain.begin(), 273);
  EXPECT_EQ(coded, plain);
  EXPECT_EQ((*(*tokenizer)->encodeSource(">>deu<< the river", {}))[0], 1); // unknown
}

TEST(Tokenizer, RefusesMissingAndDamagedFiles) {
  auto refused = [](const Files &files, const char *part, const std::string &config = "") {
    auto tokenizer = makeTokenizer("sentencepiece-pair", files.list(), config);
    ASSERT_FALSE(tokenizer.ok());
    EXPECT_EQ(tokenizer.status().code(), Code::ArtifactRefused);
    EXPECT_NE(tokenizer.status().message().find(part), std::string::npos) << tokenizer.status().message();
  };
  Files files;
  files.contents.erase("target.spm");
  refused(files, "lacks 'target.spm'");
  for (const char *bad : {"", "[]", "{\"a\": -1}", "{\"a\": \"b\"}", "{\"a\": 99999999999}", "{\"a\": 1}"}) {
    Files damaged;
    damaged.contents["vocab.json"] = bad;
    refused(damaged, "vocab");
  }
  Files spm;
  spm.contents["source.spm"] = "no model";
  refused(spm, "'source.spm'");
  refused(Files(), "configuration", "[");
  EXPECT_EQ(makeTokenizer("wordpiece", {}, "").status().code(), Code::Unsupported);
}

/// Cases that came with the small exports of BART and T5: BartTokenizerFast and T5TokenizerFast of transformers 4.57,
/// the latter with the whole character map of nmt_nfkc. Both kinds of files give the same ids (slow_ids lists no
/// exception).
TEST(Tokenizer, SmallExportsSplitAndJoinAsInTransformers) {
  struct Case {
    const char *folder, *kind;
    std::vector<std::string> files;
  };
  for (const Case &one : {Case{"bart", "tokenizer.json", {"tokenizer.json"}},
                          {"bart", "byte-level-bpe", {"vocab.json", "merges.txt"}},
                          {"t5", "tokenizer.json", {"tokenizer.json"}},
                          {"t5", "sentencepiece", {"spiece.model"}}}) {
    std::string at = std::string(TRANSEPT_TEST_MODELS "/") + one.folder + "-tiny/";
    json cases = json::parse(readFile(at + "tokenizer_cases.json")), config;
    config = json::parse(readFile(at + "tokenizer_config.json"));
    ASSERT_TRUE(!cases.contains("slow_ids") || cases["slow_ids"].empty());
    for (bool clean : {false, true}) {
      config["clean_up_tokenization_spaces"] = clean;
      std::map<std::string, std::string> contents;
      std::vector<TokenizerFile> files;
      for (const std::string &name : one.files)
        files.push_back({name, contents[name] = readFile(at + name)});
      auto made = makeTokenizer(one.kind, files, config.dump());
      ASSERT_TRUE(made.ok()) << made.status().message();
      EXPECT_EQ((*made)->endOfSource(), cases["eos_token_id"].get<int64_t>());
      ASSERT_GE(cases["encode"].size(), 20u);
      for (const json &text : cases["encode"]) {
        auto ids = text["side"] == "source" ? (*made)->encodeSource(text["text"].get<std::string>(), {})
                                            : (*made)->encodeTarget(text["text"].get<std::string>(), {});
        ASSERT_TRUE(ids.ok()) << ids.status().message();
        EXPECT_EQ(json(*ids), text["ids"]) << text["text"];
        if (std::string(one.kind) != "sentencepiece") // T5Tokenizer strips its texts, T5TokenizerFast does not
          EXPECT_EQ(json((*made)->decode(*ids)), text[clean ? "decoded_cleaned" : "decoded"]);
      }
      for (const json &ids : cases["decode_only"])
        EXPECT_EQ(json((*made)->decode(ids["ids"].get<std::vector<int64_t>>())),
                  ids[clean && ids.contains("decoded_cleaned") ? "decoded_cleaned" : "decoded"]);
      for (const json &both : cases["end_to_end"]["cases"]) {
        EXPECT_EQ(json(*(*made)->encodeSource(both["text"].get<std::string>(), {})), both["input_ids"]);
        for (const auto &[name, answer] : both.items())
          if (answer.is_object() && !clean)
            EXPECT_EQ(json((*made)->decode(answer["output_ids"].get<std::vector<int64_t>>())), answer["text"]);
      }
    }
  }
}

} // namespace
