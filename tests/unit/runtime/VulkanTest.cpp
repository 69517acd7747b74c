// Programs on a Vulkan device: the same answers as on the processor, recorded once, split, shared.

#include "VulkanModel.h"

#include "runtime/Session.h"

#include <thread>

using namespace transept;
using namespace transept::tests;

namespace {

const SymbolValues generation = {{"batch", 2}, {"source", 5}, {"rows", 6}};

std::vector<float> floats(const TensorView &view) {
  const float *data = view.as<float>();
  return data ? std::vector<float>(data, data + view.bytes / 4) : std::vector<float>();
}

/// main of tinyManifest(): y = 2 x + bias[ids].
struct MainCall {
  std::vector<int64_t> xDims, idDims, ids;
  std::vector<float> x;

  explicit MainCall(int64_t n) : xDims{n, 4}, idDims{n} {
    for (int64_t i = 0; i < 4 * n; ++i)
      x.push_back(static_cast<float>(i % 977) * 0.5f);
    for (int64_t i = 0; i < n; ++i)
      ids.push_back(i % 3);
  }

  RunArguments arguments() const { return {{view("x", xDims, x), view("ids", idDims, ids)}, {}}; }

  std::vector<float> expected() const {
    std::vector<float> y;
    for (size_t i = 0; i < x.size(); ++i)
      y.push_back(x[i] * 2 + static_cast<float>(10 * ids[i / 4] + static_cast<int64_t>(i % 4)));
    return y;
  }
};

class Vulkan : public VulkanFixture {
protected:
  std::unique_ptr<Session> session(const std::shared_ptr<const Model> &of) {
    Result<std::unique_ptr<Session>> made = of->createSession({1, generation});
    if (!made.ok())
      throw std::runtime_error(made.status().message());
    return made.take();
  }

  void runMain(Session &on, int64_t n) {
    MainCall call(n);
    Status status = on.run("main", call.arguments());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(floats(on.output("y")), call.expected()) << n;
  }
};

TEST_F(Vulkan, ComputesWhatTheProcessorComputes) {
  auto gpu = session(model());
  auto cpu = tinyModel()->createSession({1, generation}).take();
  EXPECT_EQ(gpu->model().device().name().compare(0, 10, "vulkan:0 ("), 0) << gpu->model().device().name();
  EXPECT_EQ(gpu->model().level(), "fp32");
  for (int64_t n : {1, 3, 100, 999, 0}) {
    runMain(*gpu, n);
    MainCall call(n);
    ASSERT_TRUE(cpu->run("main", call.arguments()).ok());
    EXPECT_EQ(floats(gpu->output("y")), floats(cpu->output("y")));
  }
}

TEST_F(Vulkan, AnIndexOutOfRangeIsReportedAndForgotten) {
  auto gpu = session(model());
  MainCall call(50);
  call.ids[17] = -4;
  Status status = gpu->run("main", call.arguments());
  EXPECT_EQ(status.exitCode(), 8);
  EXPECT_EQ(status.message(), "Gather node 'bias' reads index -4 outside [0, 2]");
  runMain(*gpu, 50);
}

TEST_F(Vulkan, AStepIsOneSubmissionOfOneRecording) {
  auto gpu = session(model());
  auto cpu = tinyModel()->createSession({1, generation}).take();
  ASSERT_TRUE(gpu->run("step").ok()); // records
  ASSERT_TRUE(cpu->run("step").ok());
  int recordings = faults.recordings, submits = faults.submits;
  for (int step = 1; step <= 20; ++step) {
    for (Session *both : {gpu.get(), cpu.get()}) {
      *both->state("live").as<int32_t>() = step % 7;
      for (int64_t row = 0; row < 6; ++row)
        both->state("token").as<int64_t>()[row] = step * 10 + row;
      Status status = both->run("step");
      ASSERT_TRUE(status.ok()) << status.message();
    }
    EXPECT_EQ(floats(gpu->state("sum")), floats(cpu->state("sum"))) << step;
  }
  EXPECT_EQ(faults.recordings, recordings);
  EXPECT_EQ(faults.submits, submits + 20);
}

TEST_F(Vulkan, EntriesInTurnAreOneSubmission) {
  VulkanProgram two;
  program::Entry *again = two.manifest.add_entries();
  *again = two.manifest.entries(2); // @step
  again->set_name("again");
  auto gpu = session(model(two));
  ASSERT_TRUE(gpu->runsInTurn());
  *gpu->state("live").as<int32_t>() = 5;
  for (int64_t row = 0; row < 6; ++row)
    gpu->state("token").as<int64_t>()[row] = row + 1;
  const std::vector<Session::KeptState> kept = {{"sum", 24}, {"token", 16}};
  std::vector<uint8_t> log(40 * 4);
  for (int call = 0; call < 3; ++call) {
    int submits = faults.submits, recordings = faults.recordings;
    Status status = gpu->runInTurn("step", "again", 4, kept, log.data());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(faults.submits, submits + 1);
    EXPECT_EQ(faults.recordings, recordings + (call == 0));
    for (int round = 0; round < 4; ++round) { // of @again, the last one is left out
      const auto *sums = reinterpret_cast<const float *>(log.data() + 40 * round);
      for (int64_t row = 0; row < 6; ++row)
        EXPECT_EQ(sums[row], row == 5 ? 0 : static_cast<float>((7 * call + 2 * round + 1) * (row + 1)));
      EXPECT_EQ(reinterpret_cast<const int64_t *>(sums + 6)[1], 2);
    }
  }
  EXPECT_EQ(gpu->runInTurn("step", "main", 2, kept, log.data()).exitCode(), 8); // takes inputs
  EXPECT_EQ(gpu->runInTurn("step", "none", 2, kept, log.data()).exitCode(), 70);
  const std::vector<Session::KeptState> tooMuch = {{"sum", 28}};
  EXPECT_EQ(gpu->runInTurn("step", "again", 2, tooMuch, log.data()).exitCode(), 70);
  ModelOptions traced = options();
  traced.trace = true;
  EXPECT_FALSE(session(load(two, traced).take())->runsInTurn());
}

TEST_F(Vulkan, ABarrierStandsOnlyWhereTheProgramHasOne) {
  auto gpu = session(model());
  runMain(*gpu, 5);
  VulkanProgram without;
  without.manifest.mutable_entries(0)->mutable_dispatches(1)->set_barrier(false);
  auto other = session(model(without));
  int before = faults.barriers;
  MainCall call(6);
  ASSERT_TRUE(gpu->run("main", call.arguments()).ok());
  int with = faults.barriers - before;
  ASSERT_TRUE(other->run("main", call.arguments()).ok());
  EXPECT_EQ(faults.barriers - before - with, with - 1);
}

TEST_F(Vulkan, DispatchesAreSplitWhereTheDeviceTakesFewerWorkgroups) {
  faults.maxGroups = 3;
  auto gpu = session(model());
  int before = faults.dispatches;
  runMain(*gpu, 100);
  // 400 elements: 80 groups of 5 and 25 of 16, at most 3 at once
  EXPECT_EQ(faults.dispatches - before, 27 + 9);
  MainCall call(100);
  call.ids[99] = 3; // the last part looks at its own items
  EXPECT_EQ(gpu->run("main", call.arguments()).exitCode(), 8);
}

TEST_F(Vulkan, TooManyPartsAreRefused) {
  VulkanProgram large;
  *large.code().mutable_shaders(3)->mutable_items() = postfix("size0 1000000000 *", {"size0"});
  faults.maxGroups = 1;
  auto gpu = session(model(large));
  Status status = gpu->run("step");
  EXPECT_EQ(status.exitCode(), 5);
  EXPECT_NE(status.message().find("1500000000 workgroups"), std::string::npos) << status.message();
}

TEST_F(Vulkan, PlansAreReplayedInTurnUntilTheirMemoryMoves) {
  auto gpu = session(model());
  runMain(*gpu, 9);
  runMain(*gpu, 5);
  int recordings = faults.recordings;
  for (int i = 0; i < 3; ++i) {
    runMain(*gpu, 5);
    runMain(*gpu, 9);
  }
  EXPECT_EQ(faults.recordings, recordings);
  runMain(*gpu, 1000); // the arena grows: both must be recorded again
  runMain(*gpu, 5);
  runMain(*gpu, 9);
  EXPECT_GE(faults.recordings, recordings + 3);
}

TEST_F(Vulkan, StatesAreZeroAndCachesStayOnTheDevice) {
  auto gpu = session(model());
  std::vector<int64_t> dims = {2, 5}, ids(10, 7);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(floats(gpu->state("sum")), std::vector<float>(6));
    EXPECT_EQ(gpu->state("memory").data, nullptr); // a cross cache
    EXPECT_EQ(gpu->state("memory").name, "memory");
    EXPECT_EQ(gpu->state("memory").bytes, 40);
    *gpu->state("live").as<int32_t>() = 6;
    std::fill_n(gpu->state("token").as<int64_t>(), 6, 3);
    Status status = gpu->run("encode", {{view("source_ids", dims, ids)}, {}});
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<float> memory(10);
    status = gpu->readState("memory", memory.data(), 40);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(memory, std::vector<float>(10, 7));
    EXPECT_EQ(gpu->readState("memory", memory.data(), 44).exitCode(), 8);
    EXPECT_EQ(gpu->readState("memories", memory.data(), 4).exitCode(), 8);
    ASSERT_TRUE(gpu->run("step").ok());
    EXPECT_EQ(floats(gpu->state("sum")), std::vector<float>(6, 3));
    ASSERT_TRUE(gpu->resize(generation).ok());
  }
}

TEST_F(Vulkan, SessionsShareWeightsAndRunAtTheSameTime) {
  auto shared = model();
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(session(shared));
  int before = faults.allocations;
  sessions.push_back(session(shared));
  EXPECT_LE(faults.allocations - before, 5); // states and arena of two kinds each, the error word; no weights
  std::atomic<int> failures{0};
  std::vector<std::thread> users;
  for (size_t user = 0; user < sessions.size(); ++user)
    users.emplace_back([&, user] {
      for (int i = 0; i < 20; ++i) {
        MainCall call(static_cast<int64_t>(user) * 20 + i % 3 + 1);
        Status status = sessions[user]->run("main", call.arguments());
        failures += !status.ok() || floats(sessions[user]->output("y")) != call.expected();
      }
    });
  for (std::thread &user : users)
    user.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(Vulkan, WeightsLargerThanAnAllocationComeInParts) {
  VulkanProgram large;
  large.weights.resize(2048);
  large.weights += large.weights.substr(0, 48);
  program::Entry *second = large.manifest.add_entries();
  *second = large.manifest.entries(0);
  second->set_name("second");
  *second->mutable_buffers(4)->mutable_offset() = postfix("2048");
  faults.maxAllocation = 3000;
  auto gpu = session(model(large));
  runMain(*gpu, 4);
  MainCall call(4);
  Status status = gpu->run("second", call.arguments());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(floats(gpu->output("y")), call.expected());
  EXPECT_LE(faults.largestAllocation, faults.maxAllocation);

  MainCall tooMuch(200);
  status = gpu->run("main", tooMuch.arguments());
  EXPECT_EQ(status.exitCode(), 9);
  EXPECT_NE(status.message().find("allocates at most 1976 at once"), std::string::npos) << status.message();
  runMain(*gpu, 4);

  large.manifest.mutable_entries(0)->mutable_buffers(4)->mutable_bytes()->mutable_terms(0)->set_value(2096);
  EXPECT_EQ(load(large).status().exitCode(), 9);
}

/// head(ids i64 [n], twice bool [1]): y f32 [m] = ids[:m], m = ids[0]; z f32 [1] = ids[:1] unless `twice`.
void addSegmentedEntry(program::Manifest &manifest) {
  const std::vector<std::string> symbols = {"n", "m"};
  program::Entry &entry = *manifest.add_entries();
  entry.set_name("head");
  for (const std::string &name : symbols) {
    program::Symbol *symbol = entry.add_symbols();
    symbol->set_name(name);
    symbol->set_at_run_time(name == "m");
  }
  auto buffer = [&](const char *name, program::Storage storage, DType dtype, const char *dim, uint32_t arena) {
    program::Buffer *added = entry.add_buffers();
    added->set_name(name);
    added->set_storage(storage);
    added->set_dtype(dtype);
    *added->add_dims() = postfix(dim, symbols);
    added->set_arena(arena);
  };
  buffer("ids", program::INPUT, program::I64, "n", 0);
  buffer("twice", program::INPUT, program::BOOL, "1", 0);
  buffer("y", program::OUTPUT, program::F32, "m", 1);
  buffer("z", program::OUTPUT, program::F32, "1", 2);
  auto dispatch = [&](const char *width, uint32_t to) {
    program::Dispatch *added = entry.add_dispatches();
    added->set_kernel(2);
    *added->mutable_items() = postfix("1", symbols);
    added->add_buffers(0);
    added->add_buffers(to);
    *added->add_sizes() = postfix(width, symbols);
    *added->add_sizes() = postfix("1", symbols);
  };
  auto segment = [&](uint32_t arena, uint32_t dispatches, uint32_t next) {
    program::Segment *added = entry.add_segments();
    added->set_arena(arena);
    added->set_dispatches(dispatches);
    added->set_next(next);
    return added;
  };
  program::ReadBack *read = segment(0, 0, 1)->add_read_backs();
  read->set_buffer(0);
  read->add_symbols(1);
  read->set_source("Slice node 'head'");
  program::Segment *branch = segment(1, 1, 2);
  branch->set_branches(true);
  branch->set_condition(1);
  branch->set_otherwise(3);
  dispatch("m", 2);
  segment(2, 0, 4);
  segment(2, 1, 4);
  dispatch("1", 3);
}

TEST_F(Vulkan, SizesAndBranchesAreReadBack) {
  VulkanProgram segmented;
  addSegmentedEntry(segmented.manifest);
  auto gpu = session(model(segmented));
  std::vector<int64_t> dims = {5}, one = {1};
  for (int64_t count : {3, 5, 3})
    for (uint8_t twice : {0, 1}) {
      std::vector<int64_t> ids = {count, 20, 30, 40, 50};
      ConstTensorView flag{"twice", program::BOOL, one, &twice, 1};
      Status status = gpu->run("head", {{view("ids", dims, ids), flag}, {}});
      ASSERT_TRUE(status.ok()) << status.message();
      std::vector<float> expected(ids.begin(), ids.begin() + count);
      EXPECT_EQ(floats(gpu->output("y")), expected);
      if (!twice)
        EXPECT_EQ(floats(gpu->output("z")), std::vector<float>{static_cast<float>(count)});
    }
  std::vector<int64_t> ids = {-1, 20, 30, 40, 50};
  uint8_t twice = 0;
  Status status = gpu->run("head", {{view("ids", dims, ids), {"twice", program::BOOL, one, &twice, 1}}, {}});
  EXPECT_EQ(status.exitCode(), 8);
  EXPECT_EQ(status.message(), "Slice node 'head' needs a size of -1");
}

/// What is read back may lie where the host sees nothing: in a cache, in the arena, in the weights.
TEST_F(Vulkan, ReadsBackFromMemoryOfTheDevice) {
  VulkanProgram program;
  addSegmentedEntry(program.manifest);
  program::Entry *entry = program.manifest.mutable_entries(3);
  program::Buffer *constant = entry->add_buffers();
  constant->set_name("count");
  constant->set_storage(program::CONSTANT);
  constant->set_dtype(program::I64);
  *constant->mutable_offset() = postfix("256");
  *constant->mutable_bytes() = postfix("8");
  entry->mutable_segments(0)->mutable_read_backs(0)->set_buffer(4);
  program.weights.resize(256);
  const int64_t four = 4;
  program.weights.append(reinterpret_cast<const char *>(&four), sizeof four);
  auto gpu = session(model(program));
  std::vector<int64_t> dims = {5}, one = {1}, ids = {9, 20, 30, 40, 50};
  uint8_t twice = 1;
  Status status = gpu->run("head", {{view("ids", dims, ids), {"twice", program::BOOL, one, &twice, 1}}, {}});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(floats(gpu->output("y")), (std::vector<float>{9, 20, 30, 40}));
}

/// Where memory is near to kernels or to the host, each has its own, and runs begin and end with copies.
TEST_F(Vulkan, TheHostMayWorkInACopy) {
  VulkanProgram program;
  addSegmentedEntry(program.manifest);
  faults.noCachedMemory = true;
  auto gpu = session(model(program));
  auto other = session(model(program));
  for (int64_t n : {3, 100, 990, 5}) { // the arena grows
    runMain(*gpu, n);
    runMain(*other, n + 1);
  }
  MainCall call(50);
  call.ids[17] = -4;
  EXPECT_EQ(gpu->run("main", call.arguments()).message(), "Gather node 'bias' reads index -4 outside [0, 2]");
  runMain(*gpu, 50);
  int recordings = 0;
  for (int step = 1; step <= 5; ++step) {
    *gpu->state("live").as<int32_t>() = 6;
    std::fill_n(gpu->state("token").as<int64_t>(), 6, step);
    ASSERT_TRUE(gpu->run("step").ok());
    EXPECT_EQ(floats(gpu->state("sum")), std::vector<float>(6, static_cast<float>(step * (step + 1) / 2)));
    recordings = step == 1 ? faults.recordings.load() : recordings;
  }
  EXPECT_EQ(faults.recordings, recordings);
  std::vector<float> sums(6);
  ASSERT_TRUE(gpu->readState("sum", sums.data(), 24).ok());
  EXPECT_EQ(sums, std::vector<float>(6, 15));
  ASSERT_TRUE(gpu->resize(generation).ok());
  EXPECT_EQ(floats(gpu->state("sum")), std::vector<float>(6));
  std::vector<int64_t> dims = {5}, one = {1}, ids = {3, 20, 30, 40, 50};
  uint8_t twice = 0;
  Status status = gpu->run("head", {{view("ids", dims, ids), {"twice", program::BOOL, one, &twice, 1}}, {}});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(floats(gpu->output("y")), (std::vector<float>{3, 20, 30}));
  EXPECT_EQ(floats(gpu->output("z")), std::vector<float>{3});
}

TEST_F(Vulkan, CancelStopsUntilCleared) {
  auto gpu = session(model());
  gpu->cancel();
  EXPECT_EQ(gpu->run("step").code(), Code::Cancelled);
  gpu->clearCancel();
  EXPECT_TRUE(gpu->run("step").ok());
}

} // namespace
