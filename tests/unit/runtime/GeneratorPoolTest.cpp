#include "ToyArtifact.h"

#include "runtime/search/GeneratorPool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

using namespace transept;
using namespace transept::search;
using namespace transept::tests;
using nlohmann::json;

namespace {

std::unique_ptr<GeneratorPool> poolOf(int sessions, GeneratorOptions own = {}, const ToyOptions &options = {}) {
  own.threads = own.threads ? own.threads : 1;
  Result<std::unique_ptr<GeneratorPool>> pool = GeneratorPool::create(toyArtifact(options), nullptr, own, sessions);
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return pool.take();
}

/// Sources and outputs of different lengths, some beams.
std::vector<json> manyRequests(int count) {
  std::vector<json> requests;
  for (int i = 0; i < count; ++i) {
    json request = {{"id", i}, {"max_new_tokens", 1 + i * 5 % 11}, {"num_beams", i % 5 == 0 ? 3 : 1}};
    for (int j = 0; j < 1 + i * 7 % 17; ++j)
      request["input_ids"].push_back(10 + (i * 5 + j * 3) % 50);
    requests.push_back(request);
  }
  return requests;
}

struct Requests {
  std::vector<Request> all;

  Requests(GeneratorPool &pool, const std::vector<json> &given) : all(given.size()) {
    for (size_t i = 0; i < given.size(); ++i) {
      Status status = pool.front().parse(given[i], nullptr, all[i]);
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }
};

/// Submits `some` at a time and steps until all are done.
std::vector<std::string> answersOf(GeneratorPool &pool, const std::vector<json> &given, size_t some) {
  Requests requests(pool, given);
  size_t submitted = 0, done = 0;
  while (done < given.size()) {
    for (size_t i = 0; i < some && submitted < given.size(); ++i)
      pool.submit(requests.all[submitted++]);
    Status status = pool.step();
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok())
      return {};
    done += pool.collect().size();
  }
  EXPECT_TRUE(pool.collect().empty());
  std::vector<std::string> answers;
  for (const Request &request : requests.all)
    answers.push_back(request.status.ok() ? pool.front().answer(request).dump()
                                          : Generator::errorAnswer(request, request.status).dump());
  return answers;
}

TEST(RequestQueue, GivesNeighboursTheLongestFirst) {
  RequestQueue queue(100);
  std::vector<Request> requests(6);
  for (size_t i = 0; i < 6; ++i)
    queue.add(requests[i], std::vector<int64_t>{3, 9, 3, 7, 9, 1}[i]);
  std::vector<Request *> taken;
  queue.take(3, taken);
  EXPECT_EQ(taken, (std::vector<Request *>{&requests[1], &requests[4], &requests[3]}));
  queue.take(9, taken);
  EXPECT_EQ(std::vector<Request *>(taken.begin() + 3, taken.end()),
            (std::vector<Request *>{&requests[0], &requests[2], &requests[5]}));
  queue.take(1, taken);
  EXPECT_EQ(taken.size(), 6u);
}

TEST(RequestQueue, NobodyWaitsForEver) {
  RequestQueue queue(10);
  std::vector<Request> requests(40);
  queue.add(requests[0], 1);
  size_t passed = 0;
  std::vector<Request *> taken;
  for (; std::find(taken.begin(), taken.end(), &requests[0]) == taken.end(); ++passed) {
    ASSERT_LT(passed, 20u);
    queue.add(requests[2 * passed + 1], 5);
    queue.add(requests[2 * passed + 2], 5);
    queue.take(1, taken);
  }
  EXPECT_EQ(passed, 12u); // eleven of the others, then it
  queue.take(3, taken);
  EXPECT_EQ(taken.size(), 15u);
}

TEST(RequestQueue, WhatIsLeftIsSharedOut) {
  // Much is there: a batch and another one.
  EXPECT_EQ(requestsToTake(1000, 0, 0, 2, 16), 32);
  EXPECT_EQ(requestsToTake(1000, 20, 60, 2, 16), 12);
  EXPECT_EQ(requestsToTake(1000, 25, 60, 2, 16), 0); // it still has enough to choose from
  // Little: as much for each, what they have in hand counted.
  EXPECT_EQ(requestsToTake(10, 0, 0, 2, 16), 5);
  EXPECT_EQ(requestsToTake(5, 0, 5, 2, 16), 5);
  EXPECT_EQ(requestsToTake(6, 10, 14, 2, 16), 0);
  EXPECT_EQ(requestsToTake(6, 4, 14, 2, 16), 6);
  EXPECT_EQ(requestsToTake(0, 0, 14, 2, 16), 0);
  // Nobody sleeps while one waits.
  for (int64_t sessions : {1, 2, 3, 8})
    for (int64_t waiting : {1, 2, 7})
      for (int64_t others : {0, 1, 5, 200})
        EXPECT_GE(requestsToTake(waiting, 0, others, sessions, 1), 1);
}

TEST(GeneratorPool, AnswersDoNotDependOnSessions) {
  const std::vector<json> requests = manyRequests(40);
  const std::vector<std::string> expected = answersOf(*poolOf(1, {1, 1}), requests, 40);
  ToyOptions recompute;
  recompute.recompute = true; // requests that cannot join others
  for (const ToyOptions &options : {ToyOptions(), recompute})
    for (int sessions : {1, 2, 3})
      for (size_t some : {3u, 40u}) {
        GeneratorOptions own;
        own.batch = 4;
        own.threads = 4;
        auto pool = poolOf(sessions, own, options);
        EXPECT_EQ(pool->sessions(), sessions);
        EXPECT_EQ(answersOf(*pool, requests, some), expected) << sessions << " sessions, " << some << " at a time";
      }
}

TEST(GeneratorPool, EachSessionDoesItsShare) {
  const std::vector<json> requests = manyRequests(120);
  GeneratorOptions own;
  own.batch = 4;
  auto pool = poolOf(3, own);
  answersOf(*pool, requests, 120);
  int64_t sum = 0;
  for (int session = 0; session < 3; ++session) {
    EXPECT_GT(pool->answered(session), 0);
    sum += pool->answered(session);
  }
  EXPECT_EQ(sum, 120);
  EXPECT_EQ(pool->answered(-1), 0);
}

TEST(GeneratorPool, WhatComesAloneIsComputedByTheCaller) {
  auto pool = poolOf(2);
  const std::vector<json> requests = manyRequests(5);
  EXPECT_EQ(answersOf(*pool, {requests[1]}, 1).size(), 1u);
  EXPECT_EQ(pool->answered(-1), 1);
  json streaming = {{"input_ids", {3, 4}}, {"stream", true}, {"min_length", 9}};
  Requests own(*pool, {streaming});
  int pieces = 0;
  own.all[0].onTokens = [&, caller = std::this_thread::get_id()](Span<const int64_t>) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++pieces;
  };
  pool->submit(own.all[0]);
  while (pool->collect().empty())
    ASSERT_TRUE(pool->step().ok());
  EXPECT_GE(pieces, 6);
  EXPECT_EQ(pool->answered(-1), 2);
  EXPECT_EQ(pool->answered(0) + pool->answered(1), 0);
}

TEST(GeneratorPool, AFailureIsItsRequestsOwn) {
  std::vector<json> requests = manyRequests(40);
  const std::vector<std::string> expected = answersOf(*poolOf(1, {1, 1}), requests, 40);
  for (int bad : {7, 23})
    requests[bad]["input_ids"] = {10, 77}; // out of range for the encoder
  GeneratorOptions own;
  own.batch = 3;
  const std::vector<std::string> got = answersOf(*poolOf(2, own), requests, 40);
  for (int i = 0; i < 40; ++i)
    if (i == 7 || i == 23)
      EXPECT_EQ(json::parse(got[i])["error"]["code"], 8) << got[i];
    else
      EXPECT_EQ(got[i], expected[i]);
}

TEST(GeneratorPool, CancelsAndForgets) {
  std::atomic<bool> cancelled{false};
  GeneratorOptions own;
  own.batch = 2;
  own.cancelled = &cancelled;
  auto pool = poolOf(2, own);
  const std::vector<json> given = manyRequests(40);
  {
    Requests requests(*pool, given);
    for (Request &request : requests.all)
      pool->submit(request);
    ASSERT_TRUE(pool->step().ok());
    cancelled = true;
    Status status;
    while ((status = pool->step()).ok())
      for (Request *request : pool->collect()) // work does not run out before somebody looks
        pool->submit(*request);
    EXPECT_EQ(status.code(), Code::Cancelled);
    EXPECT_EQ(pool->step().code(), Code::Cancelled);
    pool->forget();
  } // nobody works on them any more
  cancelled = false;
  EXPECT_EQ(answersOf(*pool, given, 40), answersOf(*poolOf(1), given, 40));

  Requests dropped(*pool, given); // in the middle of the work
  for (Request &request : dropped.all)
    pool->submit(request);
  ASSERT_TRUE(pool->step().ok());
  pool.reset();
}

TEST(GeneratorPool, RefusesWhatAGeneratorRefuses) {
  ToyOptions options;
  options.settings = R"({"no_such_setting": 1})";
  Result<std::unique_ptr<GeneratorPool>> pool = GeneratorPool::create(toyArtifact(options), nullptr, {}, 2);
  EXPECT_EQ(pool.status().code(), Code::ArtifactRefused);
}

} // namespace
