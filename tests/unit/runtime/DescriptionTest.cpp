#include "tools/transept/Description.h"

#include "TinyModel.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::tests;
using namespace transept::tool;

namespace {

/// The states of the paper's base model: 6 layers, 8 heads of 64, keys and values.
program::Manifest paperManifest() {
  program::Manifest manifest = tinyManifest();
  for (const char *name : {"blocks", "capacity"})
    manifest.add_generation_symbols()->set_name(name);
  auto addState = [&](const std::string &name, const std::string &role, std::vector<std::string> dims) {
    program::State *state = manifest.add_states();
    state->set_name(name);
    state->set_role(role);
    state->set_dtype(program::F32);
    for (const std::string &dim : dims)
      *state->add_dims() = postfix(dim, {"batch", "source", "rows", "blocks", "capacity"});
  };
  addState("cache.self", "self-cache", {"blocks", "98304"}); // 6 layers * 2 * 8 heads * 16 positions * 64
  for (int i = 0; i < 12; ++i)
    addState("cross." + std::to_string(i), "cross-cache", {"batch", "8", "source", "64"});
  manifest.mutable_states(0)->set_role(""); // the tiny model's own
  program::Generation *generation = manifest.mutable_generation();
  generation->set_kind("encoder-decoder");
  generation->set_encode("encode");
  generation->set_step("step");
  generation->set_strategy("cached");
  generation->set_vocabulary(37000);
  return manifest;
}

TEST(Description, CachesOfThePapersBaseModel) {
  auto model = tinyModel(paperManifest());
  SymbolValues set = {{"batch", 1}, {"source", 128}, {"rows", 1}, {"blocks", 8}, {"capacity", 128}};
  nlohmann::ordered_json caches = describe(model->artifact(), set, {true, false})["caches"];
  EXPECT_EQ(caches["self_per_beam_and_token"]["values"], 6144);
  EXPECT_EQ(caches["self_per_beam"]["values"], 786432);
  EXPECT_EQ(caches["self_per_beam"]["bytes"], 3145728);
  EXPECT_EQ(caches["cross_per_source"]["values"], 786432);
  std::string text = descriptionText(describe(model->artifact(), set, {true, true}));
  EXPECT_NE(text.find("self, per beam of 128 tokens: 786432 values, 3145728 bytes (3.0 MiB)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("cache.self: f32 [blocks, 98304], self-cache, 4 * blocks * 98304 = 3145728 bytes (3.0 MiB)"),
            std::string::npos)
      << text;
}

TEST(Description, FormulaeStandAloneWhereSymbolsAreUnknown) {
  nlohmann::ordered_json description = describe(tinyModel()->artifact(), {}, {true, true});
  EXPECT_EQ(description["entries"][0]["arena"]["formula"], "n * 16 + 256");
  EXPECT_FALSE(description["entries"][0]["arena"].contains("value"));
  EXPECT_EQ(description["entries"][0]["inputs"][1]["optional"], true);
  EXPECT_EQ(description["states"][1]["bytes"]["formula"], "4 * rows");
  EXPECT_EQ(description["kernels"][1]["scratch_per_thread"]["formula"], "size0 * 4");
  description = describe(tinyModel()->artifact(), {{"n", int64_t(1) << 62}}, {true, true});
  EXPECT_FALSE(description["entries"][0]["arena"].contains("value")); // it does not fit in 64 bits
  EXPECT_NE(descriptionText(description).find("arena n * 16 + 256 bytes"), std::string::npos);
}

} // namespace
