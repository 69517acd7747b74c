// Members of a JSON object, read by name; what nobody reads is refused.
#ifndef TRANSEPT_RUNTIME_TEXT_FIELDS_H
#define TRANSEPT_RUNTIME_TEXT_FIELDS_H

#include "runtime/Status.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <set>
#include <string>

namespace transept::text {

/// A value of a wrong kind and a missing member are Code::ArtifactRefused, a member that nobody asked for is
/// Code::Unsupported; the first of them is what done() returns. A null is as good as no member.
class Fields {
public:
  /// `where` names the object in messages: "normalizer 'Strip'". Both outlive the reader.
  Fields(const nlohmann::json &object, std::string where);

  /// The member, or null where there is none.
  const nlohmann::json *find(const char *name);
  bool flag(const char *name, bool missing);
  bool flag(const char *name);
  int64_t integer(const char *name, int64_t missing, int64_t least, int64_t most);
  std::string string(const char *name, const std::string &missing);
  std::string string(const char *name);
  /// A string of one code point.
  char32_t character(const char *name);
  /// Index of the member in `names`; `missing` where there is none.
  int choice(const char *name, const std::vector<std::string> &names, int missing);
  /// Members without influence on ids and texts.
  void ignore(std::initializer_list<const char *> names);

  void fail(Code code, const std::string &sentence);
  bool ok() const { return status_.ok(); }
  const std::string &where() const { return where_; }
  /// Whether everything was read.
  Status done();

private:
  const nlohmann::json &object_;
  std::string where_;
  std::set<std::string> read_;
  Status status_;
};

} // namespace transept::text

#endif
