#include "ShaderText.h"

#include <gtest/gtest.h>
#include <spirv-tools/libspirv.h>

namespace transept::tests {

namespace {

constexpr const char *head = R"(
OpCapability Shader
OpCapability Int64
OpCapability PhysicalStorageBufferAddresses
OpMemoryModel PhysicalStorageBuffer64 GLSL450
OpEntryPoint GLCompute %main "main" %group %local %call
OpExecutionMode %main LocalSize GROUP_SIZE 1 1
OpDecorate %group BuiltIn WorkgroupId
OpDecorate %local BuiltIn LocalInvocationId
OpDecorate %Call Block
OpMemberDecorate %Call 0 Offset 0
OpMemberDecorate %Call 1 Offset 8
OpMemberDecorate %Call 2 Offset 16
OpMemberDecorate %Call 3 Offset 24
OpMemberDecorate %Call 4 Offset 32
GROUP_DECORATIONS
%void = OpTypeVoid
%function = OpTypeFunction %void
%bool = OpTypeBool
%i32 = OpTypeInt 32 1
%u32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%f32 = OpTypeFloat 32
%u32x3 = OpTypeVector %u32 3
%Input = OpTypePointer Input %u32x3
%InputWord = OpTypePointer Input %u32
%Call = OpTypeStruct %i64 %i64 %i64 %i64 %i64
%CallPointer = OpTypePointer PushConstant %Call
%CallWord = OpTypePointer PushConstant %i64
%pointer_f32 = OpTypePointer PhysicalStorageBuffer %f32
%pointer_i32 = OpTypePointer PhysicalStorageBuffer %i32
%pointer_i64 = OpTypePointer PhysicalStorageBuffer %i64
%group = OpVariable %Input Input
%local = OpVariable %Input Input
%call = OpVariable %CallPointer PushConstant
%u0 = OpConstant %u32 0
%u1 = OpConstant %u32 1
%u2 = OpConstant %u32 2
%u3 = OpConstant %u32 3
%u4 = OpConstant %u32 4
GROUP_CONSTANTS
)";

constexpr const char *entry = R"(
%main = OpFunction %void None %function
%start = OpLabel
GROUP_CODE
%buffers_at = OpAccessChain %CallWord %call %u0
%buffers = OpLoad %i64 %buffers_at
%sizes_at = OpAccessChain %CallWord %call %u1
%sizes = OpLoad %i64 %sizes_at
%error_at = OpAccessChain %CallWord %call %u2
%error = OpLoad %i64 %error_at
%begin_at = OpAccessChain %CallWord %call %u3
%begin = OpLoad %i64 %begin_at
%end_at = OpAccessChain %CallWord %call %u4
%end = OpLoad %i64 %end_at
%group_x_at = OpAccessChain %InputWord %group %u0
%group_x = OpLoad %u32 %group_x_at
%group_wide = OpUConvert %i64 %group_x
%local_x_at = OpAccessChain %InputWord %local %u0
%local_x = OpLoad %u32 %local_x_at
%local_wide = OpUConvert %i64 %local_x
%first_of_group = OpIMul %i64 %group_wide %per_group
%first = OpIAdd %i64 %begin %first_of_group
%item = OpIAdd %i64 %first %local_wide
%has_item = OpSLessThan %bool %local_wide %per_group
%is_inside = OpSLessThan %bool %item %end
%works = OpLogicalAnd %bool %has_item %is_inside
OpSelectionMerge %finish None
OpBranchConditional %works %work %finish
%work = OpLabel
)";

constexpr const char *tail = R"(
OpBranch %finish
%finish = OpLabel
OpReturn
OpFunctionEnd
)";

std::string replaced(std::string text, const std::string &word, const std::string &by) {
  return text.replace(text.find(word), word.size(), by);
}

} // namespace

std::string ShaderBody::add(const std::string &type, const std::string &instruction) {
  std::string id = "%v" + std::to_string(next_++);
  size_t space = instruction.find(' ');
  line(id + " = " + instruction.substr(0, space) + " %" + type + instruction.substr(space));
  return id;
}

std::string ShaderBody::constant(int64_t value) {
  std::string id = "%c" + std::to_string(next_++);
  constants_ += id + " = OpConstant %i64 " + std::to_string(value) + "\n";
  return id;
}

std::string ShaderBody::pointer(const std::string &type, const std::string &address) {
  return add("pointer_" + type, "OpConvertUToPtr " + address);
}

std::string ShaderBody::word(const std::string &table, int index) {
  std::string address = add("i64", "OpIAdd " + table + " " + constant(8 * index));
  return add("i64", "OpLoad " + pointer("i64", address) + " Aligned 8");
}

std::string ShaderBody::element(const std::string &type, int buffer, const std::string &index) {
  std::string offset = add("i64", "OpIMul " + index + " " + constant(type == "i64" ? 8 : 4));
  return pointer(type, add("i64", "OpIAdd " + word("%buffers", buffer) + " " + offset));
}

std::string ShaderBody::load(const std::string &type, int buffer, const std::string &index) {
  std::string from = element(type, buffer, index);
  return add(type, "OpLoad " + from + " Aligned " + (type == "i64" ? "8" : "4"));
}

void ShaderBody::store(const std::string &type, int buffer, const std::string &index, const std::string &value) {
  std::string to = element(type, buffer, index);
  line("OpStore " + to + " " + value + " Aligned " + (type == "i64" ? "8" : "4"));
}

void ShaderBody::reportError(int id, const std::string &value) {
  std::string number = "%e" + std::to_string(next_++), none = number + "_none";
  constants_ += number + " = OpConstant %i32 " + std::to_string(id) + "\n" + none + " = OpConstant %i32 0\n";
  std::string word = pointer("i32", "%error");
  std::string before = add("i32", "OpAtomicCompareExchange " + word + " %u1 %u0 %u0 " + number + " " + none);
  std::string merge = beginIf(add("bool", "OpIEqual " + before + " " + none));
  std::string place = pointer("i64", add("i64", "OpIAdd %error " + constant(8)));
  line("OpStore " + place + " " + value + " Aligned 8");
  endIf(merge);
}

std::string ShaderBody::beginIf(const std::string &condition) {
  std::string yes = "%b" + std::to_string(next_++), merge = yes + "_end";
  line("OpSelectionMerge " + merge + " None");
  line("OpBranchConditional " + condition + " " + yes + " " + merge);
  line(yes + " = OpLabel");
  return merge;
}

void ShaderBody::endIf(const std::string &merge) {
  line("OpBranch " + merge);
  line(merge + " = OpLabel");
}

std::vector<uint32_t> assembleShader(const ShaderBody &body, uint32_t groupSize, uint32_t itemsPerGroup,
                                     bool validate) {
  const std::string size = std::to_string(groupSize), items = std::to_string(itemsPerGroup);
  const bool isChosen = itemsPerGroup == 0;
  std::string text = replaced(head, "GROUP_SIZE", size);
  text = replaced(text, "GROUP_DECORATIONS",
                  isChosen ? "OpDecorate %group_size SpecId 0\nOpDecorate %group_sizes BuiltIn WorkgroupSize" : "");
  text = replaced(text, "GROUP_CONSTANTS",
                  isChosen ? "%group_size = OpSpecConstant %u32 " + size +
                                 "\n%group_sizes = OpSpecConstantComposite %u32x3 %group_size %u1 %u1"
                           : "%per_group = OpConstant %i64 " + items);
  text += body.constants() + replaced(entry, "GROUP_CODE", isChosen ? "%per_group = OpUConvert %i64 %group_size" : "") +
          body.text() + tail;
  spv_context context = spvContextCreate(SPV_ENV_VULKAN_1_2);
  spv_binary binary = nullptr;
  spv_diagnostic diagnostic = nullptr;
  spv_result_t result = spvTextToBinary(context, text.data(), text.size(), &binary, &diagnostic);
  std::vector<uint32_t> module;
  if (result == SPV_SUCCESS)
    module.assign(binary->code, binary->code + binary->wordCount);
  if (result == SPV_SUCCESS && validate) {
    spv_const_binary_t view = {binary->code, binary->wordCount};
    result = spvValidate(context, &view, &diagnostic);
  }
  EXPECT_EQ(result, SPV_SUCCESS) << (diagnostic ? diagnostic->error : "") << "\n" << text;
  spvDiagnosticDestroy(diagnostic);
  spvBinaryDestroy(binary);
  spvContextDestroy(context);
  return module;
}

} // namespace transept::tests
