// Entries that set sizes, branch and repeat while they run.
#include "TinyModel.h"

#include "runtime/Session.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::tests;

namespace {

constexpr uint32_t copyIds = 2; // of tinyKernels(): sizes {width}, buffers {i64, f32}

program::Buffer *addBuffer(program::Entry &entry, const std::string &name, program::Storage storage, DType dtype,
                           const std::vector<std::string> &dims, const std::vector<std::string> &symbols) {
  program::Buffer *buffer = entry.add_buffers();
  buffer->set_name(name);
  buffer->set_storage(storage);
  buffer->set_dtype(dtype);
  for (const std::string &dim : dims)
    *buffer->add_dims() = postfix(dim, symbols);
  return buffer;
}

/// head(ids i64 [n], twice bool [1]): y f32 [m], z f32 [k] with m = ids[0]; y = ids[:m]. Where `twice`, k = 2 m, and z
/// stays unset; else k = 1 and z = ids[:1].
program::Manifest segmentedManifest() {
  const std::vector<std::string> symbols = {"n", "m", "k"};
  program::Manifest manifest = tinyManifest();
  program::Entry &entry = *manifest.add_entries();
  entry.set_name("head");
  for (const std::string &name : symbols) {
    program::Symbol *symbol = entry.add_symbols();
    symbol->set_name(name);
    symbol->set_at_run_time(name != "n");
  }
  addBuffer(entry, "ids", program::INPUT, program::I64, {"n"}, symbols);
  addBuffer(entry, "twice", program::INPUT, program::BOOL, {"1"}, symbols);
  addBuffer(entry, "y", program::OUTPUT, program::F32, {"m"}, symbols)->set_arena(1);
  addBuffer(entry, "z", program::OUTPUT, program::F32, {"k"}, symbols)->set_arena(2);
  auto dispatch = [&](const std::string &width, uint32_t to) {
    program::Dispatch *added = entry.add_dispatches();
    added->set_kernel(copyIds);
    *added->mutable_items() = postfix("1", symbols);
    added->add_buffers(0);
    added->add_buffers(to);
    *added->add_sizes() = postfix(width, symbols);
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
  // Both ways set up arena 2, with another size.
  for (const char *size : {"m 2 *", "1"}) {
    program::Segment *way = segment(2, size[0] == '1', 4);
    program::Assignment *assignment = way->add_assignments();
    assignment->set_symbol(2);
    *assignment->mutable_value() = postfix(size, symbols);
  }
  dispatch("k", 3);
  program::Guard *guard = entry.add_guards();
  *guard->mutable_left() = postfix("m", symbols);
  guard->set_relation(program::Guard::LE);
  *guard->mutable_right() = postfix("n", symbols);
  guard->set_message("Slice node 'head' takes more than there is");
  guard->set_segment(1);
  return manifest;
}

struct HeadCall {
  std::vector<int64_t> ids, dims, one = {1};
  std::vector<uint8_t> twice;
  RunArguments arguments;

  HeadCall(std::vector<int64_t> values, bool both)
      : ids(std::move(values)), dims{static_cast<int64_t>(ids.size())}, twice{both} {
    arguments.inputs = {view("ids", dims, ids), {"twice", program::BOOL, one, twice.data(), 1}};
  }
};

std::vector<float> floats(const TensorView &tensor) {
  const float *data = tensor.as<float>();
  return {data, data + tensor.bytes / 4};
}

std::unique_ptr<Session> segmentedSession() {
  auto session = tinyModel(segmentedManifest())->createSession({2, {{"batch", 2}, {"source", 5}, {"rows", 6}}});
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.take();
}

TEST(Segments, SizesAreReadBackAndBranchesFollowTheData) {
  auto session = segmentedSession();
  // Larger, smaller and empty results, one after another in one session.
  for (const std::vector<int64_t> &ids : {std::vector<int64_t>{2, 7, 9}, {3, 8, 5}, {0, 4}, {1, 1, 1}, {3, 8, 5}}) {
    HeadCall call(ids, false);
    Status status = session->run("head", call.arguments);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(floats(session->output("y")), std::vector<float>(ids.begin(), ids.begin() + ids[0]));
    EXPECT_EQ(floats(session->output("z")), std::vector<float>{static_cast<float>(ids[0])});
    HeadCall other(ids, true);
    ASSERT_TRUE(session->run("head", other.arguments).ok());
    EXPECT_EQ(session->output("z").dims[0], 2 * ids[0]);
  }
}

TEST(Segments, SizesThatCannotBeAreRefused) {
  auto session = segmentedSession();
  HeadCall negative({-3, 1}, false), large({7, 1}, false), good({2, 5}, false);
  EXPECT_EQ(session->run("head", negative.arguments).message(), "Slice node 'head' needs a size of -3");
  EXPECT_EQ(session->run("head", large.arguments).message(),
            "Slice node 'head' takes more than there is: 7 must be at most 2 (n=2, m=7)");
  EXPECT_TRUE(session->run("head", good.arguments).ok());
}

TEST(Segments, WhatIsNotKnownYetIsNotUsed) {
  program::Manifest manifest = segmentedManifest();
  // The first segment would need m.
  manifest.mutable_entries(manifest.entries_size() - 1)->mutable_guards(0)->set_segment(0);
  auto session = tinyModel(manifest)->createSession({1, {{"batch", 2}, {"source", 5}, {"rows", 6}}});
  ASSERT_TRUE(session.ok());
  HeadCall call({2, 5}, false);
  EXPECT_EQ((*session)->run("head", call.arguments).code(), Code::ArtifactRefused);
}

TEST(Segments, ASymbolOfRunTimeCannotBeGiven) {
  auto session = segmentedSession();
  HeadCall call({2, 5}, false);
  call.arguments.symbols = {{"m", 2}};
  EXPECT_EQ(session->run("head", call.arguments).message(), "entry 'head' has no symbol 'm'");
}

} // namespace
