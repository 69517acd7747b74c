// Step state must not change what a device would have recorded: sizes, item counts and addresses.

#include "RecordingDevice.h"
#include "TinyModel.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::tests;

namespace {

const SymbolValues generation = {{"batch", 2}, {"source", 5}, {"rows", 6}};

std::vector<float> sums(Session &session) {
  TensorView sum = session.state("sum");
  return {sum.as<float>(), sum.as<float>() + sum.bytes / 4};
}

/// What a decode step changes between runs.
void writeStepState(Session &session, int step) {
  *session.state("live").as<int32_t>() = step % 7;
  for (int64_t row = 0; row < 6; ++row)
    session.state("token").as<int64_t>()[row] = step * 10 + row;
}

TEST(Recording, OneRecordingServesAllSteps) {
  auto session = tinyModel()->createSession({0, generation}).take();
  auto reference = tinyModel()->createSession({1, generation}).take();
  Recording recording = Recording::of(*session, "step");
  ASSERT_EQ(recording.dispatches().size(), 1u);
  for (int step = 0; step < 20; ++step) {
    writeStepState(*session, step);
    writeStepState(*reference, step);
    ASSERT_TRUE(reference->run("step").ok());
    if (step % 2 == 0)
      recording.replay();
    else
      ASSERT_TRUE(session->run("step").ok());
    EXPECT_TRUE(Recording::of(*session, "step") == recording) << "step " << step;
    EXPECT_EQ(sums(*session), sums(*reference));
  }
}

TEST(Recording, OtherEntriesDoNotDisturbIt) {
  auto session = tinyModel()->createSession({0, generation}).take();
  Recording recording = Recording::of(*session, "step");
  std::vector<int64_t> dims = {900, 4}, idDims = {900}, sourceDims = {2, 5};
  std::vector<float> x(3600);
  std::vector<int64_t> ids(900), source(10);
  ASSERT_TRUE(session->run("encode", {{view("source_ids", sourceDims, source)}, {}}).ok());
  ASSERT_TRUE(session->run("main", {{view("x", dims, x), view("ids", idDims, ids)}, {}}).ok()); // the arena grows
  EXPECT_TRUE(Recording::of(*session, "step") == recording);
}

TEST(Recording, OtherSymbolsGiveAnotherRecording) {
  auto session = tinyModel()->createSession({0, generation}).take();
  Recording recording = Recording::of(*session, "step");
  ASSERT_TRUE(session->resize({{"batch", 2}, {"source", 5}, {"rows", 3}}).ok());
  EXPECT_FALSE(Recording::of(*session, "step") == recording);
  EXPECT_EQ(Recording::of(*session, "step").dispatches()[0].items, 3);
}

} // namespace
