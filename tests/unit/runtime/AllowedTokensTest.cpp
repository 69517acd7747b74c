// allowed_token_ids: as if the model gave all other tokens the logit -infinity.
#include "ToyStepper.h"

#include "runtime/search/RequestSearch.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

using namespace transept;
using namespace transept::search;
using namespace transept::tests;
using nlohmann::json;

namespace {

/// Settings of transformers' and other searches over small models; made by make_search_fixture.py.
const json &fixture() {
  static const json cases = json::parse(
#include "fixtures/searchFixture.json.inc"
  );
  return cases;
}

Settings settingsOf(const json &object) {
  Settings settings;
  for (const auto &[key, value] : object.items())
    EXPECT_TRUE(applySetting(settings, key, value, Origin::Request).ok()) << key;
  return settings;
}

struct Outcome {
  std::vector<Hypothesis> hypotheses;
  Status status;
};

/// All requests in one batch; request i has seed i.
std::vector<Outcome> run(const ToyModel &model, const std::vector<Settings> &settings, bool keepsLogits = true) {
  std::vector<std::unique_ptr<RequestSearch>> searches;
  std::vector<BatchMember> members;
  std::vector<uint64_t> seeds;
  int64_t topk = 1;
  for (const Settings &one : settings) {
    searches.push_back(RequestSearch::create(one, model.vocabulary, 0, /*stepwise=*/true));
    seeds.push_back(seeds.size());
    members.push_back({searches.back().get(), {}});
    topk = std::max(topk, one.candidates());
  }
  ToyStepper stepper(model, seeds, /*incremental=*/true, topk, keepsLogits);
  Status status = runBatch(stepper, members);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < members.size(); ++i)
    outcomes.push_back({searches[i]->hypotheses(), members[i].status});
  return outcomes;
}

/// What may be generated: the list, and what ends or is forced.
std::set<int64_t> allowedBy(const Settings &settings) {
  std::set<int64_t> allowed(settings.allowedTokenIds.begin(), settings.allowedTokenIds.end());
  allowed.insert(settings.eosTokenId.begin(), settings.eosTokenId.end());
  allowed.insert(settings.forcedEosTokenId.begin(), settings.forcedEosTokenId.end());
  if (settings.forcedBosTokenId)
    allowed.insert(*settings.forcedBosTokenId);
  for (const ForcedToken &forced : settings.forcedDecoderIds)
    allowed.insert(forced.token);
  return allowed;
}

void expectSame(const Outcome &got, const Outcome &want, const std::string &what) {
  ASSERT_EQ(got.status.message(), want.status.message()) << what;
  ASSERT_EQ(got.hypotheses.size(), want.hypotheses.size()) << what;
  for (size_t i = 0; i < got.hypotheses.size(); ++i) {
    const Hypothesis &a = got.hypotheses[i], &b = want.hypotheses[i];
    EXPECT_EQ(a.ids, b.ids) << what << " hypothesis " << i;
    ASSERT_EQ(a.score.has_value(), b.score.has_value()) << what;
    if (a.score)
      EXPECT_NEAR(*a.score, *b.score, 1e-5) << what; // sums of a block are f32
  }
}

TEST(AllowedTokens, AreThoseOfAModelWithoutTheOthers) {
  int cases = 0;
  std::vector<json> settingsList;
  for (const json &one : fixture()["cases"])
    settingsList.push_back(one);
  for (const json &more : {json{{"do_sample", true}, {"seed", 3}, {"num_return_sequences", 3}},
                           json{{"do_sample", true}, {"top_k", 4}, {"top_p", 0.7}, {"repetition_penalty", 1.3}}}) {
    settingsList.push_back({{"model", fixture()["cases"][0]["model"]}, {"name", "sampling"}, {"settings", more}});
    settingsList.back()["settings"].update({{"decoder_start_token_id", 2}, {"eos_token_id", 1}, {"max_length", 12}});
  }
  for (const json &one : settingsList)
    for (int64_t step : {2, 3, 7}) {
      const ToyModel model = ToyModel::fromJson(one["model"]);
      std::vector<Settings> settings(3, settingsOf(one["settings"])), free = settings;
      for (int64_t token = 3; token < model.vocabulary; token += step)
        for (Settings &restricted : settings)
          restricted.allowedTokenIds.push_back(token);
      ToyModel without = model;
      const std::set<int64_t> allowed = allowedBy(settings[0]);
      for (int64_t token = 0; token < model.vocabulary; ++token)
        if (!allowed.count(token))
          without.bias.emplace_back(token, -std::numeric_limits<float>::infinity());
      std::vector<Outcome> got = run(model, settings), want = run(without, free);
      for (size_t i = 0; i < got.size(); ++i) {
        expectSame(got[i], want[i], one["name"].get<std::string>() + " every " + std::to_string(step));
        for (const Hypothesis &hypothesis : got[i].hypotheses) {
          const size_t prompt = settings[i].prompt().size();
          for (size_t place = prompt; place < hypothesis.ids.size(); ++place)
            EXPECT_TRUE(allowed.count(hypothesis.ids[place])) << one["name"];
        }
        ++cases;
      }
    }
  EXPECT_GT(cases, 300);
}

TEST(AllowedTokens, AreOfEachRequestAlone) {
  const json &one = fixture()["cases"][0];
  const ToyModel model = ToyModel::fromJson(one["model"]);
  std::vector<Settings> settings;
  for (int64_t i = 0; i < 5; ++i) {
    settings.push_back(settingsOf({{"decoder_start_token_id", 2}, {"eos_token_id", 1}, {"max_length", 12}}));
    settings.back().numBeams = 1 + i % 3;
    for (int64_t token = 3 + i; i < 4 && token < model.vocabulary; token += 2 + i)
      settings.back().allowedTokenIds.push_back(token);
  }
  std::vector<Outcome> together = run(model, settings);
  for (size_t i = 0; i < settings.size(); ++i) {
    std::vector<Settings> others(settings.size(), settingsOf({{"decoder_start_token_id", 2}, {"max_length", 3}}));
    others[i] = settings[i];
    expectSame(together[i], run(model, others)[i], "request " + std::to_string(i));
  }
}

TEST(AllowedTokens, NeedLogits) {
  const ToyModel model = ToyModel::fromJson(fixture()["cases"][0]["model"]);
  Settings settings = settingsOf({{"decoder_start_token_id", 2}, {"max_length", 4}, {"allowed_token_ids", {4, 5}}});
  Outcome outcome = run(model, {settings}, /*keepsLogits=*/false)[0];
  EXPECT_EQ(outcome.status.code(), Code::InvalidInput);
  EXPECT_NE(outcome.status.message().find("allowed_token_ids"), std::string::npos);
}

TEST(AllowedTokens, AreInTheVocabulary) {
  Settings settings = settingsOf({{"decoder_start_token_id", 2}, {"allowed_token_ids", {4, 23}}});
  Status status = checkSettings(settings, 23, 0);
  EXPECT_EQ(status.message(), "'allowed_token_ids' has token 23, the vocabulary has 23");
}

} // namespace
