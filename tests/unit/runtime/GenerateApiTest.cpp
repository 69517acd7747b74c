#include "ToyArtifact.h"

#include "runtime/capi/Handles.h"
#include "transept/text.h"
#include "transept/transept.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <thread>

using namespace transept::tests;
using nlohmann::json;

namespace {

template <typename T> T tagged() {
  T value;
  std::memset(static_cast<void *>(&value), 0, sizeof value);
  value.struct_size = sizeof value;
  return value;
}

class GenerateApi : public testing::Test {
protected:
  void TearDown() override { transept_generator_free(generator); }

  transept_model model{toyArtifact(), {}};
  transept_generator *generator = nullptr;
  transept_error error = tagged<transept_error>();
  const char *answers = nullptr;
};

/// "10 11" for ids 10 and 11; counts releases in `user`.
transept_tokenizer numbers(int *released) {
  auto tokenizer = tagged<transept_tokenizer>();
  tokenizer.user = released;
  tokenizer.end_of_source = -1;
  tokenizer.encode = [](void *, int32_t, const char *text, size_t bytes, int64_t *ids, size_t room) -> int64_t {
    std::string words(text, bytes);
    if (words == "none")
      return -1;
    std::istringstream stream(words);
    int64_t count = 0;
    for (int64_t id; stream >> id; ++count)
      if (static_cast<size_t>(count) < room)
        ids[count] = id;
    return count;
  };
  tokenizer.decode = [](void *, const int64_t *ids, size_t count, char *text, size_t room) -> int64_t {
    std::string words;
    for (size_t i = 0; i < count; ++i)
      words += "<token " + std::to_string(ids[i]) + ">";
    words.copy(text, room);
    return static_cast<int64_t>(words.size());
  };
  tokenizer.release = [](void *user) { ++*static_cast<int *>(user); };
  return tokenizer;
}

TEST_F(GenerateApi, AnswersJsonWithJson) {
  ASSERT_EQ(transept_generator_create(&model, nullptr, &generator, &error), TRANSEPT_OK) << error.message;
  ASSERT_EQ(transept_generator_run(generator, R"({"input_ids": [3, 4], "num_beams": 2})", &answers, &error),
            TRANSEPT_OK)
      << error.message;
  json answer = json::parse(answers);
  EXPECT_EQ(answer["hypotheses"][0]["ids"][0], 2);
  EXPECT_FALSE(answer["hypotheses"][0].contains("text"));
  EXPECT_EQ(transept_generator_run(generator, R"({"text": "x"})", &answers, &error), TRANSEPT_INVALID_INPUT);
  EXPECT_EQ(answers, nullptr);
  EXPECT_STREQ(error.message, "the artifact has no tokenizer; send 'input_ids'");
  EXPECT_EQ(transept_generator_run(generator, "{", &answers, &error), TRANSEPT_INVALID_INPUT);
}

TEST_F(GenerateApi, TakesATokenizerOver) {
  int released = 0;
  transept_tokenizer tokenizer = numbers(&released);
  auto options = tagged<transept_generator_options>();
  options.tokenizer = &tokenizer;
  ASSERT_EQ(transept_generator_create(&model, &options, &generator, &error), TRANSEPT_OK) << error.message;
  ASSERT_EQ(transept_generator_run(generator, R"([{"text": "3 4"}, {"input_ids": [3, 4]}, {"text": "none"}])", &answers,
                                   &error),
            TRANSEPT_OK);
  json list = json::parse(answers);
  EXPECT_EQ(list[0], list[1]);
  EXPECT_EQ(list[0]["hypotheses"][0]["text"].get<std::string>().substr(0, 9), "<token 2>");
  EXPECT_EQ(list[2]["error"]["message"], "the tokenizer cannot split the text");
  transept_generator_free(generator);
  generator = nullptr;
  EXPECT_EQ(released, 1);
  transept_model plain{nullptr, {}};
  EXPECT_EQ(transept_generator_create(nullptr, &options, &generator, &error), TRANSEPT_USAGE);
  EXPECT_EQ(released, 2);
}

TEST_F(GenerateApi, RequestsJoinBetweenSteps) {
  auto options = tagged<transept_generator_options>();
  options.batch = 2;
  ASSERT_EQ(transept_generator_create(&model, &options, &generator, &error), TRANSEPT_OK) << error.message;
  const std::vector<std::string> requests = {R"({"input_ids": [3, 4], "num_beams": 2, "id": "a"})",
                                             R"({"input_ids": [77]})", R"({"input_ids": [5, 6, 7], "max_length": 4})"};
  std::map<uint64_t, json> got;
  uint64_t number = 0;
  size_t unfinished = 0;
  std::vector<uint64_t> numbers;
  for (const std::string &request : requests) { // a step after each
    ASSERT_EQ(transept_generator_submit(generator, request.c_str(), &number, &error), TRANSEPT_OK) << error.message;
    numbers.push_back(number);
    ASSERT_EQ(transept_generator_step(generator, &unfinished, &error), TRANSEPT_OK) << error.message;
  }
  ASSERT_EQ(transept_generator_run(generator, R"({"input_ids": [9]})", &answers, &error), TRANSEPT_OK);
  while (unfinished > 0)
    ASSERT_EQ(transept_generator_step(generator, &unfinished, &error), TRANSEPT_OK) << error.message;
  for (;;) {
    ASSERT_EQ(transept_generator_collect(generator, &number, &answers, &error), TRANSEPT_OK);
    if (!answers)
      break;
    EXPECT_TRUE(got.emplace(number, json::parse(answers)).second);
  }
  ASSERT_EQ(got.size(), 3u);
  for (int i : {0, 2}) {
    ASSERT_EQ(transept_generator_run(generator, requests[i].c_str(), &answers, &error), TRANSEPT_OK);
    EXPECT_EQ(got[numbers[i]], json::parse(answers));
  }
  EXPECT_EQ(got[numbers[1]]["error"]["message"], "Gather node 'embed' reads index 77 outside [0, 76]");
  EXPECT_EQ(transept_generator_submit(generator, "{", &number, &error), TRANSEPT_INVALID_INPUT);
  EXPECT_EQ(transept_generator_submit(generator, R"({"id": 1})", &number, &error), TRANSEPT_INVALID_INPUT);
}

TEST_F(GenerateApi, GeneratorsOfOneModelWorkSideBySide) {
  json requests = json::array();
  for (int i = 0; i < 40; ++i)
    requests.push_back({{"input_ids", {3 + i % 9, 4, 5 + i}}, {"num_beams", 1 + i % 3}, {"max_length", 4 + i % 20}});
  const std::string text = requests.dump();
  ASSERT_EQ(transept_generator_create(&model, nullptr, &generator, &error), TRANSEPT_OK) << error.message;
  ASSERT_EQ(transept_generator_run(generator, text.c_str(), &answers, &error), TRANSEPT_OK) << error.message;
  const std::string expected = answers;
  std::vector<std::string> got(3);
  std::vector<std::thread> threads;
  for (std::string &own : got)
    threads.emplace_back([&own, &text, this] {
      auto options = tagged<transept_generator_options>();
      options.threads = 1;
      transept_generator *mine = nullptr;
      const char *result = nullptr;
      if (transept_generator_create(&model, &options, &mine, nullptr) == TRANSEPT_OK)
        for (int i = 0; i < 5; ++i)
          if (transept_generator_run(mine, text.c_str(), &result, nullptr) == TRANSEPT_OK)
            own = result;
      transept_generator_free(mine);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &own : got)
    EXPECT_EQ(own, expected);
}

TEST_F(GenerateApi, IsCancelledFromAnywhere) {
  ASSERT_EQ(transept_generator_create(&model, nullptr, &generator, &error), TRANSEPT_OK);
  transept_generator_cancel(generator, 1);
  EXPECT_EQ(transept_generator_run(generator, R"([{"input_ids": [3]}])", &answers, &error), TRANSEPT_CANCELLED);
  transept_generator_cancel(generator, 0);
  EXPECT_EQ(transept_generator_run(generator, R"([{"input_ids": [3]}])", &answers, &error), TRANSEPT_OK);
}

TEST_F(GenerateApi, RefusesNullArguments) {
  EXPECT_EQ(transept_generator_create(&model, nullptr, nullptr, &error), TRANSEPT_USAGE);
  ASSERT_EQ(transept_generator_create(&model, nullptr, &generator, nullptr), TRANSEPT_OK);
  EXPECT_EQ(transept_generator_run(nullptr, "{}", &answers, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_generator_run(generator, nullptr, &answers, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_generator_run(generator, "{}", nullptr, &error), TRANSEPT_USAGE);
  uint64_t number;
  EXPECT_EQ(transept_generator_submit(generator, nullptr, &number, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_generator_submit(generator, "{}", nullptr, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_generator_step(nullptr, nullptr, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_generator_collect(generator, &number, nullptr, &error), TRANSEPT_USAGE);
}

TEST_F(GenerateApi, AModelWithoutATokenizerSaysSo) {
  EXPECT_STREQ(transept_model_tokenizer_kind(&model), "none");
  size_t bytes = 1;
  EXPECT_EQ(transept_model_file(&model, "source.spm", &bytes), nullptr);
  EXPECT_EQ(bytes, 0u);
  auto tokenizer = tagged<transept_tokenizer>();
  EXPECT_EQ(transept_text_open(&model, &tokenizer, &error), TRANSEPT_UNSUPPORTED);
  EXPECT_NE(std::string(error.message).find("token ids work"), std::string::npos);
}

} // namespace
