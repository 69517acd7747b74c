// Small compute shaders for tests, written as SPIR-V assembly around a body.
#ifndef TRANSEPT_TESTS_SHADERTEXT_H
#define TRANSEPT_TESTS_SHADERTEXT_H

#include <cstdint>
#include <string>
#include <vector>

namespace transept::tests {

/// The body of a shader as it is written: functions append an instruction and return the id of its result.
class ShaderBody {
public:
  std::string add(const std::string &type, const std::string &instruction);
  void line(const std::string &instruction) { text_ += instruction + "\n"; }

  /// An i64 constant.
  std::string constant(int64_t value);
  /// The item of this invocation, i64.
  std::string item() const { return "%item"; }
  /// Size `index` of the dispatch, i64.
  std::string size(int index) { return word("%sizes", index); }
  /// Element `index` (an i64 id) of buffer `buffer`; `type` is f32, i32 or i64.
  std::string load(const std::string &type, int buffer, const std::string &index);
  void store(const std::string &type, int buffer, const std::string &index, const std::string &value);
  /// Writes the error word {id, value} where it holds none yet.
  void reportError(int id, const std::string &value);
  /// Lines between are for items where `condition` holds.
  std::string beginIf(const std::string &condition);
  void endIf(const std::string &merge);

  const std::string &text() const { return text_; }
  const std::string &constants() const { return constants_; }

private:
  std::string word(const std::string &table, int index);
  std::string pointer(const std::string &type, const std::string &address);
  std::string element(const std::string &type, int buffer, const std::string &index);

  std::string text_, constants_;
  int next_ = 0;
};

/// The module of a kernel with these workgroups; of no items per group, with the size of a group as the specialisation
/// constant of abi.h and one item for each invocation. Fails the test where it does not assemble; `validate`: or where
/// spirv-val has an objection.
std::vector<uint32_t> assembleShader(const ShaderBody &body, uint32_t groupSize, uint32_t itemsPerGroup,
                                     bool validate = true);

} // namespace transept::tests

#endif
