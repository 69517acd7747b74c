#include "ToyArtifact.h"
#include "ToyStepper.h"

#include "runtime/search/Batch.h"
#include "runtime/search/Generator.h"
#include "runtime/search/Scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace transept;
using namespace transept::search;
using namespace transept::tests;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

std::unique_ptr<Generator> generatorFor(const ToyOptions &options = {}, GeneratorOptions own = {}) {
  own.threads = own.threads ? own.threads : 1;
  Result<std::unique_ptr<Generator>> generator = Generator::create(toyArtifact(options), nullptr, own);
  EXPECT_TRUE(generator.ok()) << generator.status().message();
  return generator.take();
}

/// Requests of all kinds over sources of different lengths.
std::vector<json> mixedRequests() {
  const std::vector<json> settings = {
      json::object(),
      {{"num_beams", 4}, {"num_return_sequences", 4}, {"length_penalty", 0.6}},
      {{"num_beams", 3}, {"early_stopping", true}, {"no_repeat_ngram_size", 2}, {"max_new_tokens", 30}},
      {{"repetition_penalty", 1.5}, {"suppress_tokens", {5, 6, 2050}}, {"max_length", 25}},
      {{"num_beams", 4}, {"num_return_sequences", 2}, {"search", "tensor2tensor"}, {"length_penalty", 0.6}},
      {{"decoder_input_ids", {2, 9, 2070, 4}}, {"num_beams", 2}, {"eos_token_id", {1, 7, 8}}, {"max_new_tokens", 20}},
      {{"num_beams", 2}, {"renormalize_logits", true}, {"bad_words_ids", {{3}, {4, 5}}}, {"return_token_scores", true}},
      {{"forced_bos_token_id", 2099}, {"forced_eos_token_id", 1}, {"max_length", 6}},
      {{"do_sample", true}, {"num_return_sequences", 3}, {"top_k", 20}, {"max_new_tokens", 15}}};
  std::vector<json> requests;
  for (int i = 0; i < 32; ++i) {
    json request = settings[i % settings.size()];
    if (request.contains("do_sample"))
      request["seed"] = i;
    for (int j = 0; j <= i * 7 % 13; ++j)
      request["input_ids"].push_back(10 + (i * 5 + j * 3) % 50);
    request["id"] = i;
    requests.push_back(request);
  }
  return requests;
}

std::vector<std::string> answers(Generator &generator, const std::vector<json> &requests) {
  std::vector<Request> parsed(requests.size());
  std::vector<Request *> pointers;
  for (size_t i = 0; i < requests.size(); ++i) {
    parsed[i].status = generator.parse(requests[i], nullptr, parsed[i]);
    EXPECT_TRUE(parsed[i].status.ok()) << parsed[i].status.message();
    pointers.push_back(&parsed[i]);
  }
  Status status = generator.run(pointers);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<std::string> lines;
  for (const Request &request : parsed) {
    EXPECT_TRUE(request.status.ok()) << request.status.message();
    lines.push_back(generator.answer(request).dump());
  }
  return lines;
}

/// The same search without an artifact: over logits computed directly.
std::string direct(const json &request) {
  Settings settings;
  const json defaults = {{"decoder_start_token_id", 2}, {"eos_token_id", 1}, {"max_length", 12}};
  for (const auto &[key, value] : defaults.items())
    EXPECT_TRUE(applySetting(settings, key, value, Origin::Model).ok());
  for (const auto &[key, value] : request.items())
    if (key != "input_ids" && key != "id")
      EXPECT_TRUE(applySetting(settings, key, value, Origin::Request).ok());
  auto search = RequestSearch::create(settings, toyVocabulary, 40, false);
  std::vector<BatchMember> members = {{search.get(), {}}};
  ToyStepper stepper({toyVocabulary, 24, 9, {{1, 1.0f}}}, {toySeed(request["input_ids"])}, false,
                     settings.candidates());
  EXPECT_TRUE(runBatch(stepper, members).ok());
  std::string text;
  for (const Hypothesis &hypothesis : search->hypotheses())
    text += json(hypothesis.ids).dump() + finishName(hypothesis.finish);
  return text;
}

std::string idsOf(const std::string &answer) {
  std::string text;
  const json parsed = json::parse(answer);
  for (const json &hypothesis : parsed["hypotheses"])
    text += hypothesis["ids"].dump() + hypothesis["finish"].get<std::string>();
  return text;
}

TEST(Generator, ThroughAnArtifactTheSearchAnswersTheSame) {
  auto generator = generatorFor();
  std::vector<json> requests = mixedRequests();
  std::vector<std::string> lines = answers(*generator, requests);
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(idsOf(lines[i]), direct(requests[i])) << requests[i];
}

TEST(Generator, BatchesOrderAndThreadsChangeNoBit) {
  std::vector<json> requests = mixedRequests();
  std::vector<std::string> expected = answers(*generatorFor({}, {1, 1}), requests);
  std::vector<size_t> order(requests.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  for (int64_t batch : {2, 3, 16, 64})
    for (int threads : {1, 2}) {
      std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(batch)));
      std::vector<json> shuffled;
      for (size_t i : order)
        shuffled.push_back(requests[i]);
      GeneratorOptions options;
      options.threads = threads;
      options.batch = batch;
      auto generator = generatorFor({}, options);
      for (int round = 0; round < 2; ++round) { // the second in a session that was used
        std::vector<std::string> lines = answers(*generator, shuffled);
        for (size_t i = 0; i < order.size(); ++i)
          EXPECT_EQ(lines[i], expected[order[i]]);
      }
    }
}

/// Answers of requests that are submitted in a random order, at most `together` at once, at random between steps.
std::vector<std::string> answersOfArrivals(Generator &generator, const std::vector<json> &requests, unsigned seed,
                                           size_t together = 3) {
  std::mt19937 random(seed);
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<Request> parsed(requests.size());
  std::vector<std::string> lines(requests.size());
  for (size_t next = 0, done = 0; done < requests.size();) {
    for (size_t count = random() % (together + 1); next < order.size() && count > 0; --count, ++next) {
      Request &request = parsed[order[next]];
      EXPECT_TRUE(generator.parse(requests[order[next]], nullptr, request).ok());
      generator.submit(request);
    }
    EXPECT_TRUE(generator.step().ok());
    for (const Request *request : generator.collect()) {
      EXPECT_TRUE(request->status.ok()) << request->status.message();
      lines[static_cast<size_t>(request - parsed.data())] = generator.answer(*request).dump();
      ++done;
    }
  }
  return lines;
}

TEST(Generator, RequestsThatJoinBetweenStepsAnswerLikeAlone) {
  std::vector<json> requests = mixedRequests();
  std::vector<std::string> expected = answers(*generatorFor({}, {1, 1}), requests);
  ToyOptions recompute, equal;
  recompute.recompute = true; // these cannot join; they must not suffer from that
  equal.equalLengths = true;
  for (const ToyOptions &options : {ToyOptions(), recompute, equal})
    for (auto [batch, threads] : {std::pair<int64_t, int>(1, 1), {3, 2}, {16, 1}}) {
      GeneratorOptions own;
      own.threads = threads;
      own.batch = batch;
      auto generator = generatorFor(options, own);
      for (unsigned seed = 0; seed < 2; ++seed) // the second one in a session that was used
        EXPECT_EQ(answersOfArrivals(*generator, requests, seed), expected) << batch << " at once, seed " << seed;
    }
}

TEST(Generator, ARequestTakesThePlaceOfOneThatIsDone) {
  // Outputs of very different lengths: the steps are what the sum of lengths needs, plus at most the longest one.
  std::vector<json> requests;
  int64_t sum = 0, longest = 0;
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t tokens = i % 10 == 0 ? 30 : 1 + i % 4;
    json request = {{"max_new_tokens", tokens}, {"min_new_tokens", tokens}};
    for (int64_t j = 0; j < 1 + i % 17; ++j)
      request["input_ids"].push_back(10 + (i * 5 + j * 3) % 50);
    requests.push_back(request);
    sum += tokens;
    longest = std::max(longest, tokens);
  }
  GeneratorOptions own;
  own.batch = 4;
  std::vector<std::string> expected = answers(*generatorFor({}, {1, 1}), requests);
  for (bool open : {false, true}) {
    auto generator = generatorFor({}, own);
    // Few steps are made before all have arrived.
    EXPECT_EQ(open ? answersOfArrivals(*generator, requests, 7, 60) : answers(*generator, requests), expected);
    const SchedulerCounts &counts = generator->counts();
    EXPECT_EQ(counts.rows, sum);
    EXPECT_LE(counts.steps, sum / own.batch + longest) << (open ? "open" : "all at once");
    EXPECT_LT(counts.encodes, 60);                                // several sources at once
    EXPECT_LE(counts.padding * 2, counts.positions) << "padding"; // the toy's sources are short
  }
}

TEST(Generator, OneCallShowsWhatPaddingIs) {
  // Sources of one length, in longer slots: only the first call of the encoder has a position more for each.
  std::vector<json> requests;
  for (int64_t i = 0; i < 60; ++i)
    requests.push_back({{"input_ids", {10 + i % 50, 11, 12, 13, 14}}, {"max_new_tokens", 1 + i % 5}});
  GeneratorOptions own;
  own.batch = 4;
  const std::vector<std::string> expected = answers(*generatorFor({}, {1, 1}), requests);
  auto generator = generatorFor({}, own);
  EXPECT_EQ(answersOfArrivals(*generator, requests, 7, 60), expected);
  const SchedulerCounts &counts = generator->counts();
  EXPECT_EQ(counts.positions, 60 * 5 + counts.padding);
  EXPECT_GT(counts.padding, 0);
  EXPECT_LE(counts.padding, own.batch);
  // In a session that was used and set up again for longer ones, it is shown again.
  requests[0]["input_ids"] = std::vector<int64_t>(18, 20);
  EXPECT_EQ(answersOfArrivals(*generator, requests, 7, 60), answers(*generatorFor({}, {1, 1}), requests));
}

TEST(Generator, SourcesOfAStepStayWithinTheirBudget) {
  std::vector<json> requests;
  for (int64_t i = 0; i < 40; ++i) {
    json request = {{"max_new_tokens", 1 + i % 7}, {"min_new_tokens", 1 + i % 7}, {"num_beams", 1 + i % 3}};
    for (int64_t j = 0; j < 1 + i * 7 % 17; ++j)
      request["input_ids"].push_back(10 + (i * 5 + j * 3) % 50);
    requests.push_back(request);
  }
  const std::vector<std::string> expected = answers(*generatorFor({}, {1, 1}), requests);
  ToyOptions equal;
  equal.equalLengths = true; // a batch begins together
  for (const ToyOptions &options : {ToyOptions(), equal})
    for (int64_t budget : {1, 24, 60, 100000})
      for (bool open : {false, true}) {
        GeneratorOptions own;
        own.batchTokens = budget;
        auto generator = generatorFor(options, own);
        EXPECT_EQ(open ? answersOfArrivals(*generator, requests, 7, 40) : answers(*generator, requests), expected);
        const SchedulerCounts &counts = generator->counts();
        EXPECT_LE(counts.peak, std::max<int64_t>(budget, 24)) << budget; // one alone may have more, padded to 24
        if (budget == 1)
          EXPECT_EQ(counts.encodes, 40);
        if (budget == 100000 && !options.equalLengths)
          EXPECT_GT(counts.peak, 60);
      }
}

TEST(Generator, CancelsBetweenStepsAndGoesOn) {
  std::atomic<bool> cancelled{false};
  GeneratorOptions own;
  own.cancelled = &cancelled;
  auto generator = generatorFor({}, own);
  Request request;
  ASSERT_TRUE(generator->parse({{"input_ids", {3, 4}}, {"min_length", 9}}, nullptr, request).ok());
  const std::string expected = answers(*generatorFor(), {{{"input_ids", {3, 4}}, {"min_length", 9}}})[0];
  generator->submit(request);
  ASSERT_TRUE(generator->step().ok());
  cancelled = true;
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(generator->step().code(), Code::Cancelled);
  EXPECT_EQ(generator->counts().steps, 1);
  cancelled = false;
  while (generator->collect().empty())
    ASSERT_TRUE(generator->step().ok());
  EXPECT_EQ(generator->answer(request).dump(), expected);

  Request dropped, kept;
  ASSERT_TRUE(generator->parse({{"input_ids", {5}}, {"min_length", 9}}, nullptr, dropped).ok());
  ASSERT_TRUE(generator->parse({{"input_ids", {3, 4}}, {"min_length", 9}}, nullptr, kept).ok());
  generator->submit(dropped);
  ASSERT_TRUE(generator->step().ok());
  generator->forget();
  ASSERT_TRUE(generator->run({&kept}).ok());
  EXPECT_EQ(generator->answer(kept).dump(), expected);
  EXPECT_TRUE(generator->collect().empty());
}

TEST(Generator, WithoutACacheOrAMaskTheAnswerIsTheSame) {
  std::vector<json> requests = mixedRequests();
  std::vector<std::string> expected = answers(*generatorFor(), requests);
  ToyOptions recompute, equal;
  recompute.recompute = true;
  equal.equalLengths = true;
  EXPECT_EQ(answers(*generatorFor(recompute), requests), expected);
  EXPECT_EQ(answers(*generatorFor(equal), requests), expected);
}

TEST(Generator, AFailingRequestLeavesTheOthersAlone) {
  auto generator = generatorFor();
  std::vector<json> requests = {
      {{"input_ids", {10, 11}}}, {{"input_ids", {10, 77}}}, {{"input_ids", {66, 3}}}, {{"input_ids", {12}}}};
  std::vector<Request> parsed(requests.size());
  std::vector<Request *> pointers;
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(generator->parse(requests[i], {{"num_beams", 2}, {"min_length", 4}}, parsed[i]).ok());
    pointers.push_back(&parsed[i]);
  }
  ASSERT_TRUE(generator->run(pointers).ok());
  EXPECT_TRUE(parsed[0].status.ok());
  EXPECT_EQ(parsed[1].status.message(), "Gather node 'embed' reads index 77 outside [0, 76]");
  EXPECT_EQ(parsed[2].status.message(), "the model's logits are not finite at step 2 (after 2 decoder tokens)");
  EXPECT_TRUE(parsed[3].status.ok());
  for (int ok : {0, 3})
    EXPECT_FALSE(parsed[ok].hypotheses.empty());
}

TEST(Generator, AFailureAmongThoseThatJoinIsItsOwn) {
  // An id that the encoder refuses makes a call over several sources fail; NaN ends a search.
  std::vector<json> requests;
  for (int i = 0; i < 24; ++i)
    requests.push_back({{"input_ids", {i % 6 == 2 ? 77 : i % 6 == 4 ? 66 : 10 + i, 11}}, {"min_length", 4 + i % 5}});
  GeneratorOptions own;
  for (int64_t batch : {3, 24}) {
    own.batch = batch;
    auto generator = generatorFor({}, own);
    std::vector<Request> parsed(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_TRUE(generator->parse(requests[i], nullptr, parsed[i]).ok());
      generator->submit(parsed[i]);
    }
    for (size_t done = 0; done < requests.size(); done += generator->collect().size())
      ASSERT_TRUE(generator->step().ok());
    for (size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(parsed[i].status.message(), i % 6 == 2 ? "Gather node 'embed' reads index 77 outside [0, 76]"
                                            : i % 6 == 4
                                                ? "the model's logits are not finite at step 2 (after 2 decoder tokens)"
                                                : "");
  }
}

TEST(Generator, RefusesRequestsWithASentence) {
  auto generator = generatorFor();
  auto refused = [&](const json &request, Code code, const std::string &sentence) {
    Request parsed;
    Status status = generator->parse(request, nullptr, parsed);
    EXPECT_EQ(status.code(), code) << request;
    EXPECT_NE(status.message().find(sentence), std::string::npos) << status.message();
  };
  refused(json::array(), Code::InvalidInput, "must be a JSON object");
  refused(json::object(), Code::InvalidInput, "none of 'text', 'input_ids' and 'inputs'");
  refused({{"text", "a"}, {"input_ids", {1}}}, Code::InvalidInput, "only one of");
  refused({{"text", "a"}}, Code::InvalidInput, "no tokenizer; send 'input_ids'");
  refused({{"inputs", "x.npz"}}, Code::InvalidInput, "'inputs' is not available");
  refused({{"input_ids", json::array()}}, Code::InvalidInput, "'input_ids' is empty");
  refused({{"input_ids", {1, -1}}}, Code::InvalidInput, "no token id at index 1");
  refused({{"input_ids", {1, 2.5}}}, Code::InvalidInput, "no token id at index 1");
  refused({{"input_ids", "1"}}, Code::InvalidInput, "must be a list");
  refused({{"input_ids", {1}}, {"id", {1}}}, Code::InvalidInput, "'id' must be");
  refused({{"input_ids", {1}}, {"num_beams", 0}}, Code::InvalidInput, "'num_beams' must be");
  refused({{"input_ids", {1}}, {"num_beam_groups", 2}}, Code::InvalidInput, "'num_beam_groups' = 2 is not implemented");
  refused({{"input_ids", {1}}, {"temperature", 0.5}}, Code::InvalidInput, "no meaning without 'do_sample'");
  refused({{"input_ids", {1}}, {"do_sample", true}, {"num_beams", 2}}, Code::InvalidInput,
          "'do_sample' with 'num_beams' 2");
  refused({{"input_ids", {1}}, {"beams", 2}}, Code::InvalidInput, "unknown setting 'beams'");
  refused({{"input_ids", {1}}, {"return_alignments", true}}, Code::InvalidInput, "'return_alignments'");
  refused({{"input_ids", {1}}, {"eos_token_id", toyVocabulary}}, Code::InvalidInput, "the vocabulary has 2100");
  refused({{"input_ids", std::vector<int>(21, 3)}}, Code::LimitExceeded, "the input has 21 tokens, the model takes 20");
}

TEST(Generator, CutsSourcesThatAreTooLongWhereAskedTo) {
  GeneratorOptions options;
  options.truncate = true;
  auto generator = generatorFor({}, options);
  std::vector<int64_t> ids;
  for (int i = 0; i < 24; ++i)
    ids.push_back(10 + i);
  Request plain, ended;
  ASSERT_TRUE(generator->parse({{"input_ids", ids}}, nullptr, plain).ok());
  EXPECT_EQ(plain.source.ids, std::vector<int64_t>(ids.begin(), ids.begin() + 20));
  EXPECT_EQ(plain.truncatedTokens, 4);
  ids.back() = 1; // an end token stays
  ASSERT_TRUE(generator->parse({{"input_ids", ids}}, nullptr, ended).ok());
  EXPECT_EQ(ended.source.ids.size(), 20u);
  EXPECT_EQ(ended.source.ids.back(), 1);
}

TEST(Generator, SettingsOfTheArtifactAreDefaults) {
  ToyOptions options;
  options.settings = R"({"decoder_start_token_id": 2, "eos_token_id": 1, "num_beams": 3, "max_length": 5})";
  options.refused = {"num_beam_groups=3", "typical_p=0.6"};
  auto generator = generatorFor(options);
  Request request;
  Status status = generator->parse({{"input_ids", {3}}}, nullptr, request);
  EXPECT_NE(status.message().find("the model asks for num_beam_groups=3"), std::string::npos) << status.message();
  ASSERT_TRUE(
      generator->parse({{"input_ids", {3}}, {"num_beam_groups", 1}, {"max_length", 7}}, {{"num_beams", 2}}, request)
          .ok());
  EXPECT_EQ(request.settings.numBeams, 2);  // a flag goes before the artifact
  EXPECT_EQ(request.settings.maxLength, 7); // a request goes before both
}

TEST(Generator, RefusesAnArtifactWithSettingsItDoesNotKnow) {
  ToyOptions options;
  options.settings = R"({"future_setting": 1})";
  Result<std::unique_ptr<Generator>> generator = Generator::create(toyArtifact(options), nullptr, {});
  ASSERT_FALSE(generator.ok());
  EXPECT_EQ(generator.status().code(), Code::ArtifactRefused);
}

TEST(Generator, AnswersJsonWithJson) {
  auto generator = generatorFor();
  Result<std::string> one = generate(*generator, R"({"input_ids": [3, 4], "id": "a"})");
  ASSERT_TRUE(one.ok());
  json answer = json::parse(*one);
  EXPECT_EQ(answer["id"], "a");
  EXPECT_EQ(answer["input_tokens"], 2);
  EXPECT_TRUE(answer["hypotheses"][0]["score"].is_null());
  EXPECT_EQ(answer["output_tokens"], answer["hypotheses"][0]["ids"].size() - 1);
  Result<std::string> list = generate(*generator, R"([{"input_ids": [3, 4]}, {"id": 7}])");
  ASSERT_TRUE(list.ok());
  json answers = json::parse(*list);
  EXPECT_EQ(answers[0]["hypotheses"], answer["hypotheses"]);
  EXPECT_EQ(answers[1]["error"]["code"], 8);
  EXPECT_EQ(answers[1]["id"], 7);
  EXPECT_FALSE(generate(*generator, "[").ok());
  EXPECT_FALSE(generate(*generator, "{}").ok());
}

TEST(Generator, StreamsTokensInOrder) {
  auto generator = generatorFor();
  for (int beams : {1, 3}) {
    Request request;
    ASSERT_TRUE(generator
                    ->parse({{"input_ids", {3, 4}}, {"stream", true}, {"num_beams", beams}, {"min_length", 9}}, nullptr,
                            request)
                    .ok());
    std::vector<int64_t> last;
    int pieces = 0;
    request.onTokens = [&](Span<const int64_t> certain) {
      ASSERT_TRUE(certain.size() >= last.size() && std::equal(last.begin(), last.end(), certain.begin()));
      last.assign(certain.begin(), certain.end());
      ++pieces;
    };
    ASSERT_TRUE(generator->run({&request}).ok());
    if (beams == 1) {
      EXPECT_GE(pieces, 6);
      EXPECT_TRUE(std::equal(last.begin(), last.end(), request.hypotheses[0].ids.begin() + 1));
    }
  }
}

TEST(Generator, MemoryThatDoesNotExistIsAnError) {
  ToyOptions options;
  options.positionLimit = 0;
  auto generator = generatorFor(options);
  Request request;
  ASSERT_TRUE(
      generator->parse({{"input_ids", {3}}, {"max_length", int64_t(1) << 60}, {"num_beams", 2}}, nullptr, request)
          .ok());
  ASSERT_TRUE(generator->run({&request}).ok());
  EXPECT_EQ(request.status.code(), Code::OutOfMemory) << request.status.message();
}

/// By hand, from the toy's logits.
std::vector<double> logProbabilities(const std::vector<int64_t> &source, std::vector<int64_t> prefix,
                                     const std::vector<int64_t> &target) {
  std::vector<double> scores;
  for (int64_t token : target) {
    std::vector<float> logits = ToyModel{toyVocabulary, 24, 9, {{1, 1.0f}}}.logits(toySeed(source), prefix);
    double sum = 0;
    for (float logit : logits)
      sum += std::exp(static_cast<double>(logit));
    scores.push_back(logits[token] - std::log(sum));
    prefix.push_back(token);
  }
  return scores;
}

TEST(Scorer, LogProbabilitiesOfGivenTargets) {
  for (int kind = 0; kind < 3; ++kind) { // teacher forcing, steps with a cache, steps without
    ToyOptions options;
    options.score = kind == 0;
    options.recompute = kind == 2;
    auto generator = generatorFor(options);
    std::vector<json> pairs = {{{"input_ids", {10, 11, 12}}, {"target_ids", {5, 2077, 1}}},
                               {{"input_ids", {13}}, {"target_ids", {2, 5, 6, 7, 8, 1}}}, // with the start token
                               {{"input_ids", {14, 15}}, {"target_ids", {9}}, {"decoder_input_ids", {2, 30, 31}}}};
    std::vector<ScoreRequest> parsed(pairs.size());
    std::vector<ScoreRequest *> pointers;
    for (size_t i = 0; i < pairs.size(); ++i) {
      ASSERT_TRUE(parseScore(*generator, pairs[i], nullptr, parsed[i]).ok());
      pointers.push_back(&parsed[i]);
    }
    GeneratorOptions own;
    ASSERT_TRUE(runScores(*generator, own, pointers).ok());
    std::vector<std::vector<double>> expected = {logProbabilities({10, 11, 12}, {2}, {5, 2077, 1}),
                                                 logProbabilities({13}, {2}, {5, 6, 7, 8, 1}),
                                                 logProbabilities({14, 15}, {2, 30, 31}, {9})};
    for (size_t i = 0; i < pairs.size(); ++i) {
      ASSERT_TRUE(parsed[i].status.ok()) << parsed[i].status.message();
      ASSERT_EQ(parsed[i].tokenScores.size(), expected[i].size());
      for (size_t j = 0; j < expected[i].size(); ++j)
        EXPECT_NEAR(parsed[i].tokenScores[j], expected[i][j], 2e-5);
      EXPECT_NEAR(scoreAnswer(parsed[i])["score"].get<double>(),
                  std::accumulate(expected[i].begin(), expected[i].end(), 0.0), 1e-4);
    }
  }
}

TEST(Scorer, RefusesRequestsWithASentence) {
  auto generator = generatorFor();
  auto refused = [&](const json &request, const std::string &sentence) {
    ScoreRequest parsed;
    Status status = parseScore(*generator, request, nullptr, parsed);
    EXPECT_NE(status.message().find(sentence), std::string::npos) << status.message();
  };
  refused({{"input_ids", {1}}}, "one of 'target' and 'target_ids'");
  refused({{"input_ids", {1}}, {"target_ids", json::array()}}, "'target_ids' is empty");
  refused({{"input_ids", {1}}, {"target_ids", {toyVocabulary}}}, "no token id below 2100 at index 0");
  refused({{"input_ids", {1}}, {"target_ids", std::vector<int>(41, 3)}},
          "needs 41 decoder positions, the model has 40");
  refused({{"input_ids", {1}}, {"target", "x"}}, "no tokenizer");
  refused({{"target_ids", {1}}}, "none of 'text'");
}

} // namespace
