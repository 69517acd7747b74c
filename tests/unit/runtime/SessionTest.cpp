#include "runtime/Session.h"

#include "TinyModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

using namespace transept;
using namespace transept::tests;

namespace {

const SymbolValues generation = {{"batch", 2}, {"source", 5}, {"rows", 6}};

std::unique_ptr<Session> tinySession(int threads = 0, const SymbolValues &symbols = generation) {
  Result<std::unique_ptr<Session>> session = tinyModel()->createSession({threads, symbols});
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.take();
}

std::vector<float> floats(const TensorView &view) {
  const float *data = view.as<float>();
  return data ? std::vector<float>(data, data + view.bytes / 4) : std::vector<float>();
}

struct MainCall {
  std::vector<int64_t> xDims, idDims;
  std::vector<float> x;
  std::vector<int64_t> ids;
  RunArguments arguments;

  explicit MainCall(int64_t n) : xDims{n, 4}, idDims{n} {
    for (int64_t i = 0; i < 4 * n; ++i)
      x.push_back(static_cast<float>(i));
    for (int64_t i = 0; i < n; ++i)
      ids.push_back(i % 3);
    arguments.inputs = {view("x", xDims, x), view("ids", idDims, ids)};
  }

  std::vector<float> expected(float factor) const {
    std::vector<float> y;
    for (size_t i = 0; i < x.size(); ++i)
      y.push_back(x[i] * factor + static_cast<float>(10 * ids[i / 4] + static_cast<int64_t>(i % 4)));
    return y;
  }
};

TEST(Session, RunsAPlainEntryForSeveralShapesAndThreads) {
  for (int threads : {1, 0}) {
    auto session = tinySession(threads);
    for (int64_t n : {3, 0, 1, 400, 3, 7}) {
      MainCall call(n);
      Status status = session->run("main", call.arguments);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(session->outputs().size(), 1u);
      TensorView y = session->output("y");
      EXPECT_EQ(std::vector<int64_t>(y.dims.begin(), y.dims.end()), call.xDims);
      EXPECT_EQ(floats(y), call.expected(2));
    }
  }
}

TEST(Session, AnInputWithADefaultMayBeGiven) {
  auto session = tinySession();
  MainCall call(5);
  std::vector<float> factor = {-3};
  std::vector<int64_t> one = {1};
  call.arguments.inputs.push_back(view("factor", one, factor));
  ASSERT_TRUE(session->run("main", call.arguments).ok());
  EXPECT_EQ(floats(session->output("y")), call.expected(-3));
}

TEST(Session, WrongCallsAreRefusedByName) {
  auto session = tinySession();
  const std::vector<int64_t> two = {2}, three = {3}, fiveByFour = {5, 4}, negative = {-1, 4}, flat = {8}, wide = {2, 5};
  const std::vector<float> values(5000);
  const std::vector<int64_t> ids(1001);
  const std::vector<int32_t> narrow(2);
  auto sized = [](ConstTensorView input, int64_t bytes) {
    input.bytes = bytes;
    return input;
  };
  struct Case {
    std::function<void(MainCall &)> change;
    std::string words;
  };
  const Case cases[] = {
      {[](MainCall &c) { c.arguments.inputs.pop_back(); }, "input 'ids' is missing"},
      {[](MainCall &c) { c.arguments.inputs[1].name = "idz"; },
       "no input 'idz'; entry 'main' takes 'x', 'factor', 'ids'"},
      {[](MainCall &c) { c.arguments.inputs.push_back(c.arguments.inputs[0]); }, "'x' is given twice"},
      {[&](MainCall &c) { c.arguments.inputs[1] = view("ids", two, narrow); }, "'ids' has type i32, expected i64"},
      {[&](MainCall &c) { c.arguments.inputs[0] = view("x", flat, values); },
       "shape [8], expected 2 dimensions [n, 4]"},
      {[&](MainCall &c) { c.arguments.inputs[0].dims = wide; }, "'x' has shape [2, 5], expected [2, 4]"},
      {[&](MainCall &c) { c.arguments.inputs[1].dims = three; }, "'ids' has shape [3], expected [2]"},
      {[&](MainCall &c) { c.arguments.inputs[0].dims = negative; }, "'x' has shape [-1, 4]"},
      {[&](MainCall &c) { c.arguments.inputs[0] = sized(c.arguments.inputs[0], 31); }, "31 bytes"},
      {[](MainCall &c) {
         c = MainCall(1001);
         c.arguments.inputs = {view("x", c.xDims, c.x), view("ids", c.idDims, c.ids)};
       },
       "'n' is 1001, entry 'main' takes 0 to 1000"},
      {[](MainCall &c) { c.arguments.symbols = {{"m", 3}}; }, "no symbol 'm'"},
      {[](MainCall &c) { c.arguments.symbols = {{"n", 3}}; }, "'x' has shape [2, 4], expected [3, 4]"},
  };
  for (const Case &wrong : cases) {
    MainCall call(2);
    wrong.change(call);
    Status status = session->run("main", call.arguments);
    EXPECT_EQ(status.exitCode(), 8) << wrong.words;
    EXPECT_NE(status.message().find(wrong.words), std::string::npos) << status.message();
  }
  EXPECT_NE(session->run("mian").message().find("no entry 'mian'; the model has 'main', 'encode', 'step'"),
            std::string::npos);
  MainCall call(2);
  EXPECT_TRUE(session->run("main", call.arguments).ok()); // still usable
}

TEST(Session, GuardsAreCheckedBeforeAnythingRuns) {
  auto session = tinySession();
  MainCall call(13);
  Status status = session->run("main", call.arguments);
  EXPECT_EQ(status.exitCode(), 8);
  EXPECT_EQ(status.message(), "Reshape node 'unlucky' cannot split its input: 13 must be other than 13 (n=13)");
}

TEST(Session, ACheckInAKernelBecomesItsMessage) {
  for (int threads : {1, 0}) {
    auto session = tinySession(threads);
    MainCall call(5);
    call.ids[3] = 77;
    Status status = session->run("main", call.arguments);
    EXPECT_EQ(status.exitCode(), 8);
    EXPECT_EQ(status.message(), "Gather node 'bias' reads index 77 outside [0, 2]");
    EXPECT_EQ(session->outputs().size(), 0u);
    call.ids[3] = 0;
    EXPECT_TRUE(session->run("main", call.arguments).ok());
  }
}

TEST(Session, StatesAreSharedByEntriesAndLastUntilResize) {
  auto session = tinySession();
  TensorView memory = session->state("memory"), live = session->state("live"), token = session->state("token");
  ASSERT_EQ(memory.bytes, 40);
  ASSERT_EQ(token.bytes, 48);
  EXPECT_EQ(session->state("nothing").data, nullptr);
  EXPECT_EQ(token.as<float>(), nullptr); // another type
  for (TensorView state : {memory, live, token})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(state.data) % TRANSEPT_BUFFER_ALIGNMENT, 0u);

  std::vector<int64_t> dims = {2, 5}, ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  ASSERT_TRUE(session->run("encode", {{view("source_ids", dims, ids)}, {}}).ok());
  EXPECT_EQ(floats(memory), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));

  *live.as<int32_t>() = 4;
  for (int64_t i = 0; i < 6; ++i)
    token.as<int64_t>()[i] = i + 1;
  ASSERT_TRUE(session->run("step").ok());
  ASSERT_TRUE(session->run("step").ok());
  EXPECT_EQ(floats(session->state("sum")), (std::vector<float>{2, 4, 6, 8, 0, 0}));

  ASSERT_TRUE(session->resize({{"batch", 1}, {"source", 3}, {"rows", 2}}).ok());
  EXPECT_EQ(session->symbol("rows"), 2);
  EXPECT_EQ(session->symbol("columns"), -1);
  EXPECT_EQ(floats(session->state("sum")), (std::vector<float>{0, 0}));
}

TEST(Session, AFailedResizeChangesNothing) {
  auto session = tinySession();
  void *before = session->state("memory").data;
  EXPECT_EQ(session->resize({{"batch", 2}, {"source", 65}, {"rows", 6}}).exitCode(), 8);
  EXPECT_EQ(session->resize({{"batch", 2}, {"source", 5}}).exitCode(), 8);
  EXPECT_EQ(session->resize({{"batch", 2}, {"source", 5}, {"rows", 6}, {"beams", 1}}).exitCode(), 8);
  EXPECT_EQ(session->state("memory").data, before);
  EXPECT_EQ(session->symbol("source"), 5);
}

TEST(Session, FixedSymbolsHoldForInputs) {
  auto session = tinySession();
  std::vector<int64_t> dims = {2, 4}, ids(8);
  Status status = session->run("encode", {{view("source_ids", dims, ids)}, {}});
  EXPECT_EQ(status.exitCode(), 8);
  EXPECT_NE(status.message().find("shape [2, 4], expected [2, 5]"), std::string::npos) << status.message();
}

TEST(Session, ACallMayUseAPartOfTheStates) {
  auto session = tinySession();
  std::vector<int64_t> dims = {2, 3};
  std::vector<int64_t> ids = {1, 2, 3, 4, 5, 6};
  RunArguments arguments = {{view("source_ids", dims, ids)}, {{"source", 3}}};
  ASSERT_TRUE(session->run("encode", arguments).ok());
  std::vector<float> memory = floats(session->state("memory"));
  EXPECT_EQ(memory, (std::vector<float>{1, 2, 3, 4, 5, 6, 0, 0, 0, 0}));
  arguments.symbols[0].value = 6; // more than the session has
  dims[1] = 6;
  ids.resize(12);
  arguments.inputs = {view("source_ids", dims, ids)};
  EXPECT_EQ(session->run("encode", arguments).exitCode(), 8);
}

TEST(Session, ImpossibleSizesAreErrorsNotAllocations) {
  program::Manifest manifest = tinyManifest();
  for (auto &symbol : *manifest.mutable_generation_symbols())
    symbol.set_max(0);
  auto model = tinyModel(manifest);
  const int64_t most = int64_t(1) << 62;
  for (int64_t size : {most, most / 4, int64_t(1) << 44}) {
    Result<std::unique_ptr<Session>> session =
        model->createSession({1, {{"batch", size}, {"source", size}, {"rows", 1}}});
    ASSERT_FALSE(session.ok());
    EXPECT_TRUE(session.status().exitCode() == 5 || session.status().exitCode() == 9) << session.status().message();
  }
}

TEST(Session, BuffersOutsideTheArenaAreRefused) {
  for (const char *offset : {"512", "-256", "9223372036854775552", "128"}) {
    program::Manifest manifest = tinyManifest();
    *manifest.mutable_entries(0)->mutable_buffers(3)->mutable_offset() = postfix(offset);
    auto session = tinyModel(manifest)->createSession({1, generation}).take();
    MainCall call(1);
    EXPECT_EQ(session->run("main", call.arguments).exitCode(), 7) << offset;
  }
  program::Manifest manifest = tinyManifest();
  *manifest.mutable_states(0)->mutable_dims(1) = postfix("3");
  EXPECT_EQ(tinyModel(manifest)->createSession({1, generation}).status().exitCode(), 8);
}

TEST(Session, CancelStopsUntilCleared) {
  auto session = tinySession();
  session->cancel();
  EXPECT_EQ(session->run("step").code(), Code::Cancelled);
  session->clearCancel();
  EXPECT_TRUE(session->run("step").ok());
}

TEST(Session, ManySessionsOfOneModel) {
  auto model = tinyModel();
  std::atomic<int> failures{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user)
    users.emplace_back([&, user] {
      auto session = model->createSession({1, generation}).take();
      for (int i = 0; i < 50; ++i) {
        MainCall call(user * 20 + i % 3 + 1);
        bool right = session->run("main", call.arguments).ok() && floats(session->output("y")) == call.expected(2);
        failures += !right;
      }
    });
  for (std::thread &user : users)
    user.join();
  EXPECT_EQ(failures, 0);
}

TEST(Session, MemoryIsAccountedFor) {
  auto session = tinySession(1);
  MemoryUse use = session->memory();
  EXPECT_EQ(use.weights, 48u);
  EXPECT_EQ(use.states, 4u * 256u); // four small states
  MainCall call(100);
  ASSERT_TRUE(session->run("main", call.arguments).ok());
  use = session->memory();
  // 256 + 1600 for the program, rounded to 256; x, factor, ids and y behind it
  EXPECT_EQ(use.arena, 2048u + 1792u + 256u + 1024u + 1792u);
  EXPECT_GE(use.reserved, use.arena + use.states);
  EXPECT_EQ(use.scratch, 64u);
}

} // namespace
