#include "TinyModel.h"

#include "runtime/search/Controls.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::search;
using namespace transept::tests;
using nlohmann::json;

namespace {

/// As generation_config.json of a Whisper model has it.
json whisper() {
  return {{"lang_to_id", {{"<|en|>", 11}, {"<|de|>", 12}, {"<|zh|>", 13}}},
          {"task_to_id", {{"translate", 20}, {"transcribe", 21}}},
          {"no_timestamps_token_id", 30},
          {"is_multilingual", true}};
}

Result<Controls> take(const json &model, json given, std::optional<int64_t> start = 10,
                      const Tokenizer *tokenizer = nullptr) {
  return ControlTable::create(model, start).take(given, tokenizer);
}

json promptOf(const Result<Controls> &controls) {
  EXPECT_TRUE(controls.ok()) << controls.status().message();
  return controls.ok() && controls->settings.contains("decoder_input_ids") ? controls->settings["decoder_input_ids"]
                                                                           : json();
}

void refused(const Result<Controls> &controls, std::initializer_list<const char *> parts) {
  ASSERT_FALSE(controls.ok());
  EXPECT_EQ(controls.status().code(), Code::InvalidInput);
  for (const char *part : parts)
    EXPECT_NE(controls.status().message().find(part), std::string::npos) << controls.status().message();
}

// The prompts are those of WhisperForConditionalGeneration._retrieve_init_tokens of transformers 4.57.
TEST(Controls, WhispersPromptHasLanguageTaskAndNoTimes) {
  EXPECT_EQ(promptOf(take(whisper(), {{"language", "de"}})), (json{10, 12, 21, 30}));
  EXPECT_EQ(promptOf(take(whisper(), {{"language", "German"}, {"task", "translate"}})), (json{10, 12, 20, 30}));
  EXPECT_EQ(promptOf(take(whisper(), {{"language", "<|en|>"}, {"task", "transcribe"}})), (json{10, 11, 21, 30}));
  EXPECT_EQ(promptOf(take(whisper(), {{"language", "mandarin"}})), (json{10, 13, 21, 30}));
  json own = whisper();
  own["language"] = "en";
  own["task"] = "translate";
  EXPECT_EQ(promptOf(take(own, json::object())), (json{10, 11, 20, 30}));
  EXPECT_EQ(promptOf(take(own, {{"language", "de"}})), (json{10, 12, 20, 30}));
  EXPECT_EQ(promptOf(take(whisper(), json::object())), json());
  own.erase("language"); // a task alone changes nothing
  EXPECT_EQ(promptOf(take(own, json::object())), json());
}

TEST(Controls, WhispersLanguagesAndTasksAreListed) {
  refused(take(whisper(), {{"language", "xx"}}), {"'language' 'xx'", "de, en, zh"});
  refused(take(whisper(), {{"language", "french"}}), {"'french'", "de, en, zh"});
  refused(take(whisper(), {{"language", "de"}, {"task", "sing"}}), {"'task' 'sing'", "transcribe, translate"});
  refused(take(whisper(), {{"task", "translate"}}), {"'task' needs 'language'"});
  json english = whisper();
  english["is_multilingual"] = false;
  refused(take(english, {{"language", "en"}}), {"'language'", "English only"});
  refused(take(whisper(), {{"language", "de"}}, std::nullopt), {"decoder_start_token_id"});
}

TEST(Controls, TasksBringAPrefixAndSettings) {
  json model = {{"task_specific_params",
                 {{"summarization", {{"prefix", "summarize: "}, {"num_beams", 4}, {"early_stopping", true}}},
                  {"translation_en_to_de", {{"prefix", "translate English to German: "}, {"max_length", 300}}}}}};
  Result<Controls> controls = take(model, {{"task", "summarization"}});
  ASSERT_TRUE(controls.ok());
  EXPECT_EQ(controls->prefix, "summarize: ");
  EXPECT_EQ(controls->settings, (json{{"num_beams", 4}, {"early_stopping", true}}));
  refused(take(model, {{"task", "translation_en_to_fr"}}),
          {"'translation_en_to_fr'", "summarization, translation_en_to_de"});
  refused(take(json::object(), {{"task", "summarization"}}), {"'task' is not available"});
  refused(take(model, {{"task", 3}}), {"'task' must be"});
  refused(take(model, {{"language", "en"}}), {"'language' is not available"});
}

TEST(Controls, LanguagesAreTheTokenizers) {
  const std::string folder = TRANSEPT_TEST_TOKENIZERS "/";
  json fixture = json::parse(readFile(folder + "expected.json"));
  auto made = [&](const std::string &name) {
    for (const json &entry : fixture["tokenizers"])
      if (entry["name"] == name) {
        std::vector<std::pair<std::string, std::string>> contents;
        for (const auto &[file, path] : entry["files"].items())
          contents.push_back({file, readFile(folder + path.get<std::string>())});
        std::vector<TokenizerFile> files;
        for (const auto &[file, bytes] : contents)
          files.push_back({file, bytes});
        auto tokenizer = makeTokenizer(entry["kind"], files, entry["config"].dump());
        EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
        return tokenizer.take();
      }
    throw std::out_of_range(name);
  };
  // Ids from convert_tokens_to_ids of transformers, as the fixture has them around target texts.
  for (std::string name : {"nllb", "nllb-slow", "m2m100-slow", "mbart50", "mbart50-slow", "mbart", "mbart-slow"}) {
    auto tokenizer = made(name);
    for (const json &entry : fixture["tokenizers"]) {
      if (entry["name"] != name)
        continue;
      for (const json &one : entry["cases"]) {
        if (one["side"] != "target")
          continue;
        bool starts = name.compare(0, 5, "mbart") == 0 && name.compare(0, 7, "mbart50") != 0;
        const json &ids = one["ids"][0]; // of an empty text
        json expected = {{starts ? "decoder_start_token_id" : "forced_bos_token_id", starts ? ids.back() : ids[0]}};
        auto controls = take(json::object(), {{"source_lang", one["source_lang"]}, {"target_lang", one["target_lang"]}},
                             2, tokenizer.get());
        ASSERT_TRUE(controls.ok()) << controls.status().message();
        EXPECT_EQ(controls->settings, expected) << name;
      }
    }
    refused(take(json::object(), {{"target_lang", "Klingon"}}, 2, tokenizer.get()),
            {"'target_lang' 'Klingon'", "the model has"});
    refused(take(json::object(), {{"source_lang", "xx"}}, 2, tokenizer.get()),
            {"'source_lang' 'xx'", name[0] == 'n' ? "deu_Latn, eng_Latn, fra_Latn" : ", "});
  }
  auto bart = made("bart");
  refused(take(json::object(), {{"target_lang", "fr"}}, 2, bart.get()),
          {"'target_lang' is not available", "no languages"});
  refused(take(json::object(), {{"source_lang", "fr"}}, 2), {"no tokenizer"});
}

} // namespace
