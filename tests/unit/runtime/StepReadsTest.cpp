#include "tools/transept/StepReads.h"

#include <gtest/gtest.h>

using namespace transept;

namespace {

program::Expr constant(int64_t value) {
  program::Expr expr;
  expr.add_terms()->set_value(value);
  return expr;
}

program::Expr symbol(int64_t index) {
  program::Expr expr;
  expr.add_terms()->set_op(program::Expr::SYMBOL);
  expr.mutable_terms(0)->set_value(index);
  return expr;
}

void addConstant(program::Entry &entry, int64_t offset, int64_t bytes) {
  program::Buffer &buffer = *entry.add_buffers();
  buffer.set_storage(program::CONSTANT);
  *buffer.mutable_offset() = constant(offset);
  *buffer.mutable_bytes() = constant(bytes);
}

void addDispatch(program::Entry &entry, uint32_t kernel, std::vector<uint32_t> buffers) {
  program::Dispatch &dispatch = *entry.add_dispatches();
  dispatch.set_kernel(kernel);
  for (uint32_t buffer : buffers)
    dispatch.add_buffers(buffer);
}

void addState(program::Manifest &manifest, const char *role, DType dtype, std::vector<program::Expr> dims) {
  program::State &state = *manifest.add_states();
  state.set_role(role);
  state.set_dtype(dtype);
  for (const program::Expr &dim : dims)
    *state.add_dims() = dim;
}

} // namespace

TEST(StepReads, EachByteOfAConstantOnce) {
  program::Manifest manifest;
  manifest.add_kernels();
  manifest.add_kernels()->add_picked(1);
  program::Entry &entry = *manifest.add_entries();
  addConstant(entry, 0, 1000);   // 0
  addConstant(entry, 256, 512);  // 1: a part of it
  addConstant(entry, 768, 1000); // 2: its end, and more
  addConstant(entry, 4096, 100); // 3: a table
  addConstant(entry, 8192, 7);   // 4: nobody's
  entry.add_buffers()->set_storage(program::ARENA);
  addDispatch(entry, 0, {0, 5});
  addDispatch(entry, 0, {0, 1, 5});
  EXPECT_EQ(tool::constantsRead(manifest, entry), 1000);
  addDispatch(entry, 0, {2, 5});
  EXPECT_EQ(tool::constantsRead(manifest, entry), 1768);
  addDispatch(entry, 1, {5, 3}); // picks rows of it
  EXPECT_EQ(tool::constantsRead(manifest, entry), 1768);
  addDispatch(entry, 1, {3, 5}); // reads all of it
  EXPECT_EQ(tool::constantsRead(manifest, entry), 1868);
}

TEST(StepReads, CachesByRole) {
  program::Manifest manifest;
  for (const char *name : {"rows", "blocks", "batch", "source"})
    manifest.add_generation_symbols()->set_name(name);
  addState(manifest, "self-cache", program::F32, {symbol(1), constant(16 * 48)});
  addState(manifest, "cross-cache", program::F32, {symbol(2), symbol(3), constant(24)});
  addState(manifest, "cross-cache", program::I64, {symbol(2), symbol(3)});
  addState(manifest, "cross-cache", program::F32, {symbol(2), constant(1500), constant(2)}); // of fixed length
  addState(manifest, "recurrent-state", program::F32, {constant(2), symbol(0), constant(5)});
  addState(manifest, "step", program::I64, {symbol(0)});
  Result<tool::CacheReads> reads = tool::cacheReads(manifest, 10);
  ASSERT_TRUE(reads.ok());
  EXPECT_EQ(reads->selfPerPosition, 4 * 48);
  EXPECT_EQ(reads->crossPerSource, 10 * 24 * 4 + 10 * 8 + 1500 * 2 * 4);
  EXPECT_EQ(reads->recurrentPerRow, 2 * 5 * 4);
  addState(manifest, "self-cache", program::F32, {symbol(1), constant(INT64_MAX / 2)});
  EXPECT_FALSE(tool::cacheReads(manifest, 10).ok());
}
