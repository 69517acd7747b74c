#include "transept/transept.h"

#include "TinyModel.h"
#include "TwiceModel.h"
#include "VulkanModel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

using namespace transept::tests;

namespace {

template <typename T> T tagged() {
  T value;
  std::memset(static_cast<void *>(&value), 0, sizeof value);
  value.struct_size = sizeof value;
  return value;
}

class CApi : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(transept::writeArtifact(path(), twiceSections()).ok());
    ASSERT_EQ(transept_model_load(path().c_str(), nullptr, &model, &error), TRANSEPT_OK) << error.message;
  }
  void TearDown() override { transept_model_free(model); }

  std::string path() const { return folder.path("twice.tsp"); }

  TemporaryFolder folder;
  transept_model *model = nullptr;
  transept_error error = tagged<transept_error>();
};

TEST_F(CApi, DescribesEntries) {
  EXPECT_STREQ(transept_version(), "0.1.0");
  EXPECT_STREQ(transept_model_level(model), "x86-64");
  ASSERT_EQ(transept_model_entry_count(model), 1u);
  EXPECT_STREQ(transept_model_entry_name(model, 0), "main");
  EXPECT_EQ(transept_model_entry_name(model, 1), nullptr);
  ASSERT_EQ(transept_model_input_count(model, "main"), 1u);
  EXPECT_EQ(transept_model_output_count(model, "main"), 1u);
  EXPECT_EQ(transept_model_input_count(model, "step"), 0u);
  auto info = tagged<transept_tensor_info>();
  ASSERT_EQ(transept_model_input(model, "main", 0, &info, &error), TRANSEPT_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.dtype, TRANSEPT_F32);
  ASSERT_EQ(info.rank, 1u);
  EXPECT_EQ(info.dims[0], -1);
  EXPECT_STREQ(info.dim_texts[0], "n");
  EXPECT_EQ(transept_model_output(model, "main", 1, &info, &error), TRANSEPT_USAGE);
}

TEST_F(CApi, RunsAndOutlivesTheModelHandle) {
  transept_session *session = nullptr;
  ASSERT_EQ(transept_session_create(model, nullptr, &session, &error), TRANSEPT_OK) << error.message;
  transept_model_free(model);
  model = nullptr;
  float x[] = {1, 2, 3};
  int64_t dims[] = {3};
  auto input = tagged<transept_tensor>();
  input.name = "x";
  input.dtype = TRANSEPT_F32;
  input.rank = 1;
  input.dims = dims;
  input.data = x;
  input.bytes = sizeof x;
  auto arguments = tagged<transept_run_arguments>();
  arguments.inputs = &input;
  arguments.input_count = 1;
  ASSERT_EQ(transept_session_run(session, "main", &arguments, &error), TRANSEPT_OK) << error.message;
  ASSERT_EQ(transept_session_output_count(session), 1u);
  auto output = tagged<transept_tensor>();
  ASSERT_EQ(transept_session_output(session, 0, &output, &error), TRANSEPT_OK);
  EXPECT_STREQ(output.name, "y");
  EXPECT_EQ(output.dims[0], 3);
  EXPECT_EQ(static_cast<float *>(output.data)[2], 6);
  auto memory = tagged<transept_memory>();
  ASSERT_EQ(transept_session_memory(session, &memory, &error), TRANSEPT_OK);
  EXPECT_EQ(memory.arena, 512u);

  input.bytes = 8;
  EXPECT_EQ(transept_session_run(session, "main", &arguments, &error), TRANSEPT_INVALID_INPUT);
  EXPECT_EQ(error.status, TRANSEPT_INVALID_INPUT);
  EXPECT_NE(std::strstr(error.message, "input 'x' has 8 bytes"), nullptr) << error.message;
  input.bytes = sizeof x;
  transept_session_cancel(session, 1);
  EXPECT_EQ(transept_session_run(session, "main", &arguments, &error), TRANSEPT_CANCELLED);
  transept_session_cancel(session, 0);
  EXPECT_EQ(transept_session_run(session, "main", &arguments, nullptr), TRANSEPT_OK);
  transept_session_free(session);
}

TEST_F(CApi, NullAndUnsizedArgumentsAreErrors) {
  transept_model *other = model;
  EXPECT_EQ(transept_model_load(nullptr, nullptr, &other, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_model_load("x", nullptr, nullptr, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_model_load("/no/such/file", nullptr, &other, &error), TRANSEPT_FILE_ERROR);
  EXPECT_EQ(other, nullptr);
  transept_session *session = nullptr;
  EXPECT_EQ(transept_session_create(nullptr, nullptr, &session, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_session_create(model, nullptr, nullptr, &error), TRANSEPT_USAGE);
  transept_session_options options{};
  EXPECT_EQ(transept_session_create(model, &options, &session, &error), TRANSEPT_USAGE);
  EXPECT_STREQ(error.message, "struct_size is not set");
  ASSERT_EQ(transept_session_create(model, nullptr, &session, &error), TRANSEPT_OK);
  EXPECT_EQ(transept_session_run(nullptr, "main", nullptr, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_session_run(session, nullptr, nullptr, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_session_run(session, "main", nullptr, &error), TRANSEPT_INVALID_INPUT);
  auto arguments = tagged<transept_run_arguments>();
  arguments.input_count = 1;
  EXPECT_EQ(transept_session_run(session, "main", &arguments, &error), TRANSEPT_USAGE);
  transept_tensor unsized{};
  arguments.inputs = &unsized;
  EXPECT_EQ(transept_session_run(session, "main", &arguments, &error), TRANSEPT_USAGE);
  auto tensor = tagged<transept_tensor>();
  arguments.inputs = &tensor;
  EXPECT_EQ(transept_session_run(session, "main", &arguments, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_session_output(session, 0, &tensor, &error), TRANSEPT_USAGE);
  EXPECT_EQ(transept_session_state(session, "nothing", &tensor, &error), TRANSEPT_INVALID_INPUT);
  EXPECT_EQ(transept_session_memory(session, nullptr, &error), TRANSEPT_USAGE);
  transept_session_free(session);
  transept_session_free(nullptr);
  transept_model_free(nullptr);
  transept_session_cancel(nullptr, 1);
}

TEST_F(CApi, MessagesFitTheCallersStruct) {
  struct {
    size_t structSize;
    transept_status status;
    char message[12];
    char guard[8];
  } small = {offsetof(transept_error, message) + 12, TRANSEPT_OK, "", "guard"};
  transept_model *other = nullptr;
  EXPECT_EQ(transept_model_load("/no/such/file", nullptr, &other, reinterpret_cast<transept_error *>(&small)),
            TRANSEPT_FILE_ERROR);
  EXPECT_STREQ(small.message, "/no/such/fi");
  EXPECT_STREQ(small.guard, "guard");
}

TEST_F(CApi, TheLogSaysWhatWasLoaded) {
  std::string log;
  auto options = tagged<transept_model_options>();
  options.log = [](void *user, const char *message) { *static_cast<std::string *>(user) += message; };
  options.log_user = &log;
  options.cpu = "x86-64";
  transept_model *other = nullptr;
  ASSERT_EQ(transept_model_load(path().c_str(), &options, &other, &error), TRANSEPT_OK);
  EXPECT_NE(log.find("CPU level x86-64"), std::string::npos);
  transept_model_free(other);
  options.cpu = "i386";
  EXPECT_EQ(transept_model_load(path().c_str(), &options, &other, &error), TRANSEPT_USAGE);
}

TEST_F(CApi, ADeviceIsChosen) {
  EXPECT_STREQ(transept_model_device(model), "cpu");
  EXPECT_STREQ(transept_model_device(nullptr), "");
  auto options = tagged<transept_model_options>();
  transept_model *other = nullptr;
  options.device = "gpu";
  EXPECT_EQ(transept_model_load(path().c_str(), &options, &other, &error), TRANSEPT_USAGE);
  options.device = "vulkan:0";
  EXPECT_EQ(transept_model_load(path().c_str(), &options, &other, &error), TRANSEPT_ARTIFACT_REFUSED);
  const std::string shaders = folder.path("vulkan.tsp"), cache = folder.path("cache");
  ASSERT_TRUE(transept::writeArtifact(shaders, VulkanProgram().sections()).ok());
  options.cache_folder = cache.c_str();
  ASSERT_EQ(transept_model_load(shaders.c_str(), &options, &other, &error), TRANSEPT_OK) << error.message;
  EXPECT_EQ(std::string(transept_model_device(other)).compare(0, 10, "vulkan:0 ("), 0);
  EXPECT_STREQ(transept_model_level(other), "fp32");

  const transept_symbol symbols[] = {{"batch", 1}, {"source", 2}, {"rows", 1}};
  auto sessionOptions = tagged<transept_session_options>();
  sessionOptions.symbols = symbols;
  sessionOptions.symbol_count = 3;
  transept_session *session = nullptr;
  ASSERT_EQ(transept_session_create(other, &sessionOptions, &session, &error), TRANSEPT_OK) << error.message;
  transept_model_free(other);
  auto state = tagged<transept_tensor>();
  ASSERT_EQ(transept_session_state(session, "live", &state, &error), TRANSEPT_OK);
  *static_cast<int32_t *>(state.data) = 1;
  ASSERT_EQ(transept_session_state(session, "token", &state, &error), TRANSEPT_OK);
  *static_cast<int64_t *>(state.data) = 40;
  EXPECT_EQ(transept_session_run(session, "step", nullptr, &error), TRANSEPT_OK) << error.message;
  ASSERT_EQ(transept_session_state(session, "sum", &state, &error), TRANSEPT_OK);
  EXPECT_EQ(*static_cast<float *>(state.data), 40);
  EXPECT_EQ(transept_session_state(session, "memory", &state, &error), TRANSEPT_INVALID_INPUT);
  EXPECT_STREQ(error.message, "state 'memory' lies in memory of a device");
  transept_session_free(session);
  EXPECT_FALSE(std::filesystem::is_empty(cache));
}

} // namespace
