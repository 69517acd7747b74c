// Tokenizers of many families against what transformers and tokenizers compute: see make_tokenizer_fixture.py.
#include "TinyModel.h"

#include "runtime/text/Tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace transept;
using namespace transept::tests;
using nlohmann::json;

namespace {

const std::string folder = TRANSEPT_TEST_TOKENIZERS "/";

const json &fixture() {
  static const json parsed = json::parse(readFile(folder + "expected.json"));
  return parsed;
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const json &entry : fixture()["tokenizers"])
    result.push_back(entry["name"]);
  return result;
}

const json &entryOf(const std::string &name) {
  for (const json &entry : fixture()["tokenizers"])
    if (entry["name"] == name)
      return entry;
  throw std::out_of_range(name);
}

class TokenizerFixture : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    std::map<std::string, std::string> contents;
    for (const auto &[name, path] : entry["files"].items())
      contents[name] = readFile(folder + path.get<std::string>());
    std::vector<TokenizerFile> files;
    for (const auto &[name, bytes] : contents)
      files.push_back({name, bytes});
    auto made = makeTokenizer(entry["kind"], files, entry["config"].dump());
    ASSERT_TRUE(made.ok()) << made.status().message();
    tokenizer = made.take();
  }

  const json &entry = entryOf(GetParam());
  std::unique_ptr<Tokenizer> tokenizer;
};

TEST_P(TokenizerFixture, SplitsTexts) {
  for (const json &one : entry["cases"]) {
    LanguagePair languages{one["source_lang"], one["target_lang"]};
    bool source = one["side"] == "source";
    for (size_t i = 0; i < one["ids"].size(); ++i) {
      std::string text = fixture()["texts"][i];
      auto ids = source ? tokenizer->encodeSource(text, languages) : tokenizer->encodeTarget(text, languages);
      ASSERT_TRUE(ids.ok()) << ids.status().message();
      EXPECT_EQ(json(*ids), one["ids"][i]) << json(text);
    }
  }
}

TEST_P(TokenizerFixture, JoinsTokens) {
  for (const json &one : entry["cases"])
    for (size_t i = 0; one.contains("decoded") && i < one["ids"].size(); ++i)
      EXPECT_EQ(json(tokenizer->decode(one["ids"][i].get<std::vector<int64_t>>())), one["decoded"][i]) << one["ids"][i];
  for (const json &one : entry["decode"])
    EXPECT_EQ(json(tokenizer->decode(one["ids"].get<std::vector<int64_t>>())), one["text"]) << one["ids"];
}

INSTANTIATE_TEST_SUITE_P(, TokenizerFixture, testing::ValuesIn(names()), [](const auto &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

} // namespace
