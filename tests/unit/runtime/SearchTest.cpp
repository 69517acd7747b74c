#include "ToyStepper.h"

#include "runtime/search/Batch.h"
#include "runtime/search/RequestSearch.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::search;
using namespace transept::tests;
using nlohmann::json;

namespace {

/// Answers of transformers 4.57 and of the reference statements; made by make_search_fixture.py.
const json &fixture() {
  static const json cases = json::parse(
#include "fixtures/searchFixture.json.inc"
  );
  return cases;
}

Settings settingsOf(const json &object) {
  Settings settings;
  for (const auto &[key, value] : object.items()) {
    Status status = applySetting(settings, key, value, Origin::Request);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return settings;
}

struct Asked {
  Settings settings;
  uint64_t seed;
  const json *expected;
  std::unique_ptr<RequestSearch> search;
};

void expectAnswer(const Asked &asked, const std::string &what) {
  std::vector<Hypothesis> got = asked.search->hypotheses();
  ASSERT_EQ(got.size(), asked.expected->size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    const json &want = (*asked.expected)[i];
    EXPECT_EQ(json(got[i].ids), want["ids"]) << what << " hypothesis " << i;
    EXPECT_EQ(got[i].score.has_value(), !want["score"].is_null()) << what;
    if (got[i].score && !want["score"].is_null())
      EXPECT_NEAR(*got[i].score, want["score"].get<double>(), 2e-5 * std::max(1.0, std::abs(*got[i].score))) << what;
    bool ends = std::count(asked.settings.eosTokenId.begin(), asked.settings.eosTokenId.end(), got[i].ids.back()) > 0;
    EXPECT_EQ(got[i].finish, ends ? Finish::Eos : Finish::Length) << what;
  }
}

/// Runs requests over one toy model in one batch.
void runTogether(std::vector<Asked> &asked, const ToyModel &model, bool incremental, bool keepsLogits = true) {
  std::vector<uint64_t> seeds;
  std::vector<BatchMember> members;
  int64_t topk = 1;
  for (Asked &one : asked) {
    ASSERT_TRUE(checkSettings(one.settings, model.vocabulary, 0).ok());
    one.search = RequestSearch::create(one.settings, model.vocabulary, 0, incremental);
    seeds.push_back(one.seed);
    members.push_back({one.search.get(), {}});
    topk = std::max(topk, one.settings.candidates());
  }
  ToyStepper stepper(model, seeds, incremental, topk, keepsLogits);
  Status status = runBatch(stepper, members);
  ASSERT_TRUE(status.ok()) << status.message();
  for (const BatchMember &member : members)
    ASSERT_TRUE(member.status.ok()) << member.status.message();
}

TEST(Search, AnswersAsTransformersAndTensor2Tensor) {
  int cases = 0;
  for (const json &one : fixture()["cases"])
    for (const json &answer : one["answers"])
      for (bool incremental : {true, false}) {
        std::vector<Asked> asked(1);
        asked[0] = {settingsOf(one["settings"]), answer["seed"], &answer["hypotheses"], nullptr};
        runTogether(asked, ToyModel::fromJson(one["model"]), incremental);
        expectAnswer(asked[0], one["name"].get<std::string>() + " seed " + std::to_string(asked[0].seed));
        ++cases;
      }
  EXPECT_GT(cases, 500);
}

TEST(Search, ABatchOfDifferentSettingsAnswersLikeEachAlone) {
  // All requests of one toy model in batches that mix cases, searches, prompts and lengths.
  std::vector<const json *> models;
  for (const json &one : fixture()["cases"])
    if (std::none_of(models.begin(), models.end(), [&](const json *m) { return *m == one["model"]; }))
      models.push_back(&one["model"]);
  for (const json *model : models) {
    std::vector<Asked> asked;
    auto flush = [&] {
      if (asked.empty())
        return;
      runTogether(asked, ToyModel::fromJson(*model), true);
      for (const Asked &one : asked)
        expectAnswer(one, "batched, seed " + std::to_string(one.seed));
      asked.clear();
    };
    for (size_t a = 0; a < 6; ++a)
      for (const json &one : fixture()["cases"])
        if (one["model"] == *model) {
          const json &answer = one["answers"][a];
          asked.push_back({settingsOf(one["settings"]), answer["seed"], &answer["hypotheses"], nullptr});
          if (asked.size() == 7)
            flush();
        }
    flush();
  }
}

TEST(Search, RenormalisesWithoutLogitsToo) {
  for (const json &one : fixture()["cases"])
    if (one["settings"].contains("renormalize_logits"))
      for (const json &answer : one["answers"]) {
        std::vector<Asked> asked(1);
        asked[0] = {settingsOf(one["settings"]), answer["seed"], &answer["hypotheses"], nullptr};
        runTogether(asked, ToyModel::fromJson(one["model"]), true, /*keepsLogits=*/false);
        expectAnswer(asked[0], one["name"]);
      }
}

TEST(Search, TokenScoresAddUpToTheScore) {
  json settings = {
      {"decoder_start_token_id", 2}, {"eos_token_id", 1},     {"max_length", 12},           {"num_beams", 4},
      {"num_return_sequences", 4},   {"length_penalty", 0.6}, {"return_token_scores", true}};
  for (const char *search : {"transformers", "tensor2tensor"})
    for (int beams : {1, 4}) {
      settings["search"] = search;
      settings["num_beams"] = settings["num_return_sequences"] = beams;
      std::vector<Asked> asked(1);
      asked[0] = {settingsOf(settings), 5, nullptr, nullptr};
      runTogether(asked, {}, true);
      for (const Hypothesis &hypothesis : asked[0].search->hypotheses()) {
        ASSERT_EQ(hypothesis.tokenScores.size(), hypothesis.ids.size() - 1);
        double sum = 0, n = static_cast<double>(hypothesis.tokenScores.size());
        for (size_t i = 0; i < hypothesis.tokenScores.size(); ++i) {
          // The model's own log-probability, by hand.
          std::vector<float> logits = ToyModel().logits(5, {hypothesis.ids.data(), i + 1});
          double total = 0;
          for (float logit : logits)
            total += std::exp(static_cast<double>(logit));
          EXPECT_NEAR(hypothesis.tokenScores[i], logits[hypothesis.ids[i + 1]] - std::log(total), 1e-6);
          sum += hypothesis.tokenScores[i];
        }
        double penalty = std::string(search) == "transformers" ? std::pow(n, 0.6) : std::pow((5 + n) / 6, 0.6);
        ASSERT_TRUE(hypothesis.score);
        EXPECT_NEAR(*hypothesis.score, sum / penalty, 1e-9);
      }
    }
}

TEST(Search, StopsAtTheModelsLastPosition) {
  Settings settings = settingsOf({{"decoder_start_token_id", 2}, {"max_length", 100}, {"num_beams", 2}});
  for (int64_t positions : {1, 5}) {
    auto search = RequestSearch::create(settings, 23, positions, true);
    ToyStepper stepper({}, {7}, true, settings.candidates());
    std::vector<BatchMember> members = {{search.get(), {}}};
    ASSERT_TRUE(runBatch(stepper, members).ok());
    ASSERT_EQ(search->hypotheses().size(), 1u);
    // The last token is not fed, so there is one more token than positions.
    EXPECT_EQ(static_cast<int64_t>(search->hypotheses()[0].ids.size()), positions + 1);
    EXPECT_EQ(search->hypotheses()[0].finish, Finish::Length);
  }
}

TEST(Search, LogitsThatAreNotFiniteFailTheirRequestOnly) {
  Settings settings =
      settingsOf({{"decoder_start_token_id", 2}, {"eos_token_id", 1}, {"max_length", 12}, {"num_beams", 3}});
  std::vector<std::unique_ptr<RequestSearch>> searches;
  std::vector<BatchMember> members;
  for (int i = 0; i < 3; ++i) {
    searches.push_back(RequestSearch::create(settings, 23, 0, true));
    members.push_back({searches.back().get(), {}});
  }
  ToyModel model{23, 24, 6, {{1, -1.0f}}};
  ToyStepper stepper(model, {11, 12, 13}, true, settings.candidates());
  stepper.poison(12, 2);
  ASSERT_TRUE(runBatch(stepper, members).ok());
  EXPECT_TRUE(members[0].status.ok() && members[2].status.ok());
  EXPECT_EQ(members[1].status.code(), Code::InvalidInput);
  EXPECT_EQ(members[1].status.message(), "the model's logits are not finite at step 2 (after 2 decoder tokens)");
}

TEST(Search, SettingsThatExcludeEverythingAreAnError) {
  std::vector<int64_t> all;
  for (int64_t token = 0; token < 23; ++token)
    all.push_back(token);
  for (int beams : {1, 3}) {
    Settings settings = settingsOf(
        {{"decoder_start_token_id", 2}, {"eos_token_id", 1}, {"num_beams", beams}, {"suppress_tokens", all}});
    auto search = RequestSearch::create(settings, 23, 0, true);
    std::vector<BatchMember> members = {{search.get(), {}}};
    ToyStepper stepper({}, {7}, true, settings.candidates());
    ASSERT_TRUE(runBatch(stepper, members).ok());
    EXPECT_NE(members[0].status.message().find("exclude every token at step 1"), std::string::npos);
  }
}

TEST(Search, FirstStepComputesOneRowAndFinishedRequestsLeave) {
  // Beams that have no hypothesis of their own are not computed.
  Settings beam =
      settingsOf({{"decoder_start_token_id", 2}, {"eos_token_id", 1}, {"num_beams", 4}, {"max_new_tokens", 1}});
  Settings longer = settingsOf({{"decoder_start_token_id", 2}, {"max_new_tokens", 6}});
  auto first = RequestSearch::create(beam, 23, 0, true), second = RequestSearch::create(longer, 23, 0, true);
  std::vector<BatchMember> members = {{first.get(), {}}, {second.get(), {}}};
  ToyStepper stepper({}, {7, 8}, true, beam.candidates());
  ASSERT_TRUE(runBatch(stepper, members).ok());
  EXPECT_EQ(stepper.steps, 6);
  EXPECT_EQ(stepper.rowsComputed, 2 + 5);
}

TEST(Search, StreamsWhatIsCertain) {
  Settings settings = settingsOf(
      {{"decoder_start_token_id", 2}, {"eos_token_id", 1}, {"num_beams", 4}, {"max_length", 14}, {"stream", true}});
  ToyModel model{23, 24, 14, {{1, -6.0f}}};
  auto search = RequestSearch::create(settings, 23, 0, true);
  std::vector<BatchMember> members = {{search.get(), {}}};
  ToyStepper stepper(model, {7}, true, settings.candidates());
  std::vector<std::vector<int64_t>> seen;
  auto advanced = [&](size_t) {
    Span<const int64_t> certain = search->certain();
    seen.emplace_back(certain.begin(), certain.end());
  };
  ASSERT_TRUE(runBatch(stepper, members, advanced).ok());
  ASSERT_GT(seen.size(), 4u);
  for (size_t i = 0; i + 1 < seen.size(); ++i) {
    ASSERT_LE(seen[i].size(), seen[i + 1].size());
    EXPECT_TRUE(std::equal(seen[i].begin(), seen[i].end(), seen[i + 1].begin()));
  }
}

} // namespace
