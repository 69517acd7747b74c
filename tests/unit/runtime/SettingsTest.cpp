#include "runtime/search/Settings.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::search;
using nlohmann::json;

namespace {

Status set(const char *key, const json &value) {
  Settings settings;
  return applySetting(settings, key, value, Origin::Request);
}

TEST(Settings, RefusesWhatIsNotImplementedByName) {
  for (const auto &[key, value] : std::vector<std::pair<const char *, json>>{{"typical_p", 0.5},
                                                                             {"num_beam_groups", 2},
                                                                             {"penalty_alpha", 0.6},
                                                                             {"constraints", {{{"a", 1}}}},
                                                                             {"epsilon_cutoff", 0.1},
                                                                             {"diversity_penalty", 0.5},
                                                                             {"stop_strings", {"x"}},
                                                                             {"output_attentions", true}}) {
    Status status = set(key, value);
    EXPECT_EQ(status.code(), Code::InvalidInput) << key;
    EXPECT_NE(status.message().find("'" + std::string(key) + "'"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("not implemented; "), std::string::npos) << status.message();
  }
}

TEST(Settings, AcceptsValuesThatMeanOff) {
  for (const auto &[key, value] : std::vector<std::pair<const char *, json>>{{"do_sample", false},
                                                                             {"temperature", 1.0},
                                                                             {"temperature", 1},
                                                                             {"top_k", 50},
                                                                             {"top_p", nullptr},
                                                                             {"num_beam_groups", 1},
                                                                             {"use_cache", true},
                                                                             {"transformers_version", "4.57.6"},
                                                                             {"_from_model_config", true}})
    EXPECT_TRUE(set(key, value).ok()) << key;
}

TEST(Settings, NamesTheNearestKeyOfAMisspeltOne) {
  EXPECT_EQ(set("num_beam", 4).message(), "unknown setting 'num_beam'; the nearest known one is 'num_beams'");
  EXPECT_EQ(nearestSetting("lenght_penalty"), "length_penalty");
  EXPECT_EQ(nearestSetting("max_new_token"), "max_new_tokens");
}

TEST(Settings, ChecksValues) {
  for (const auto &[key, value] :
       std::vector<std::pair<const char *, json>>{{"num_beams", 0},
                                                  {"num_beams", 2.5},
                                                  {"num_beams", "4"},
                                                  {"num_beams", true},
                                                  {"num_beams", 18446744073709551615u},
                                                  {"max_length", -1},
                                                  {"max_new_tokens", 0},
                                                  {"early_stopping", "always"},
                                                  {"early_stopping", 1},
                                                  {"length_penalty", "1"},
                                                  {"repetition_penalty", 0},
                                                  {"bad_words_ids", {1, 2}},
                                                  {"bad_words_ids", json::array({json::array()})},
                                                  {"suppress_tokens", {-1}},
                                                  {"eos_token_id", "x"},
                                                  {"forced_decoder_ids", {{0, 1}}},
                                                  {"search", "beam"},
                                                  {"renormalize_logits", 1},
                                                  {"max_time", 0}}) {
    Status status = set(key, value);
    EXPECT_EQ(status.code(), Code::InvalidInput) << key << " " << value;
    EXPECT_EQ(status.message().find("'" + std::string(key) + "' must be "), 0u) << status.message();
  }
  EXPECT_EQ(set("num_beams", 0).message(), "'num_beams' must be an integer >= 1, got 0");
}

TEST(Settings, NullMeansTheBuiltInDefault) {
  Settings settings;
  settings.numBeams = 4;
  settings.maxLength = 64;
  ASSERT_TRUE(applySetting(settings, "num_beams", nullptr, Origin::Request).ok());
  ASSERT_TRUE(applySetting(settings, "max_length", nullptr, Origin::Request).ok());
  EXPECT_EQ(settings.numBeams, 1);
  EXPECT_FALSE(settings.maxLength);
}

TEST(Settings, EndTokensMayBeOneOrSeveral) {
  Settings settings;
  ASSERT_TRUE(applySetting(settings, "eos_token_id", 3, Origin::Model).ok());
  EXPECT_EQ(settings.eosTokenId, std::vector<int64_t>{3});
  EXPECT_EQ(settings.candidates(), 1);
  settings.numBeams = 4;
  EXPECT_EQ(settings.candidates(), 8);
  ASSERT_TRUE(applySetting(settings, "eos_token_id", {3, 4}, Origin::Model).ok());
  EXPECT_EQ(settings.candidates(), 12);
}

TEST(Settings, LengthLimitsFollowTransformers) {
  Settings settings;
  EXPECT_EQ(settings.lengthLimit(1), 21); // the built-in 20 count new tokens
  ASSERT_TRUE(applySetting(settings, "max_length", 20, Origin::Model).ok());
  EXPECT_EQ(settings.lengthLimit(3), 23);
  ASSERT_TRUE(applySetting(settings, "max_length", 20, Origin::Request).ok());
  EXPECT_EQ(settings.lengthLimit(3), 20);
  ASSERT_TRUE(applySetting(settings, "max_new_tokens", 5, Origin::Model).ok());
  EXPECT_EQ(settings.lengthLimit(3), 8);
}

TEST(Settings, PromptBeginsWithTheStartToken) {
  Settings settings;
  EXPECT_TRUE(settings.prompt().empty());
  settings.decoderInputIds = {9, 4};
  EXPECT_EQ(settings.prompt(), (std::vector<int64_t>{9, 4}));
  settings.decoderStartTokenId = 2;
  EXPECT_EQ(settings.prompt(), (std::vector<int64_t>{2, 9, 4}));
  settings.decoderInputIds = {2, 4};
  EXPECT_EQ(settings.prompt(), (std::vector<int64_t>{2, 4}));
}

TEST(Settings, ChecksSettingsAgainstEachOtherAndTheModel) {
  auto refused = [](auto change, const char *part, int64_t positions = 0) {
    Settings settings;
    settings.decoderStartTokenId = 2;
    change(settings);
    Status status = checkSettings(settings, 23, positions);
    EXPECT_EQ(status.code(), Code::InvalidInput);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused([](Settings &s) { s.decoderStartTokenId.reset(); }, "'decoder_start_token_id' is not set");
  refused([](Settings &s) { s.numReturnSequences = 2; }, "'num_return_sequences' (2) is greater than 'num_beams' (1)");
  refused([](Settings &s) { s.eosTokenId = {23}; }, "'eos_token_id' has token 23, the vocabulary has 23");
  refused([](Settings &s) { s.badWordsIds = {{1}, {2, 40}}; }, "'bad_words_ids' has token 40");
  refused(
      [](Settings &s) {
        s.decoderInputIds = {2, 3, 4};
        s.maxLength = 3;
        s.maxLengthRequested = true;
      },
      "'max_length' is 3");
  refused([](Settings &s) { s.decoderInputIds = {2, 3, 4}; }, "the model has 2 positions", 2);
  refused([](Settings &s) { s.numBeams = 24; }, "vocabulary (23)");
}

TEST(Settings, WhatAnExportAsksForInVainIsRefusedUntilSwitchedOff) {
  std::vector<std::string> refused = {"typical_p=0.6", "num_beam_groups=2"};
  Status status = checkRefusedSettings(refused, json::object(), false);
  EXPECT_EQ(status.code(), Code::InvalidInput);
  EXPECT_NE(status.message().find("num_beam_groups=2"), std::string::npos);
  EXPECT_TRUE(checkRefusedSettings(refused, {{"num_beam_groups", 1}}, false).ok());
  EXPECT_NE(checkRefusedSettings(refused, {{"num_beam_groups", 1}}, true).message().find("typical_p=0.6"),
            std::string::npos);
  std::vector<std::string> unknown = {"future=1"};
  EXPECT_NE(checkRefusedSettings(unknown, json::object(), false).message().find("send \"future\": null"),
            std::string::npos);
  EXPECT_TRUE(checkRefusedSettings(unknown, {{"future", nullptr}}, false).ok());
}

TEST(Settings, FlagsReadListsAndWords) {
  EXPECT_EQ(*settingFromText("suppress_tokens", "1,2"), json({1, 2}));
  EXPECT_EQ(*settingFromText("suppress_tokens", "7"), json::array({7}));
  EXPECT_EQ(*settingFromText("eos_token_id", "7"), json(7));
  EXPECT_EQ(*settingFromText("eos_token_id", "7,8"), json({7, 8}));
  EXPECT_EQ(*settingFromText("bad_words_ids", "[[1,2],[3]]"), json({{1, 2}, json::array({3})}));
  EXPECT_EQ(*settingFromText("early_stopping", "never"), json("never"));
  EXPECT_EQ(*settingFromText("early_stopping", "true"), json(true));
  EXPECT_EQ(*settingFromText("search", "tensor2tensor"), json("tensor2tensor"));
  EXPECT_EQ(*settingFromText("num_beams", "four"), json("four")); // refused by applySetting
}

} // namespace
