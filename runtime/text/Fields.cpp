#include "runtime/text/Fields.h"

#include "runtime/text/Unicode.h"

#include <algorithm>

namespace transept::text {

using nlohmann::json;

Fields::Fields(const json &object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object())
    fail(Code::ArtifactRefused, where_ + " is no JSON object");
}

void Fields::fail(Code code, const std::string &sentence) {
  if (status_.ok())
    status_ = Status(code, sentence);
}

const json *Fields::find(const char *name) {
  if (!object_.is_object())
    return nullptr;
  read_.insert(name);
  auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::flag(const char *name, bool missing) {
  const json *value = find(name);
  if (!value)
    return missing;
  if (!value->is_boolean())
    fail(Code::ArtifactRefused, where_ + ": '" + name + "' must be true or false");
  return *value == true;
}

bool Fields::flag(const char *name) {
  if (!find(name))
    fail(Code::ArtifactRefused, where_ + " lacks '" + name + "'");
  return flag(name, false);
}

int64_t Fields::integer(const char *name, int64_t missing, int64_t least, int64_t most) {
  const json *value = find(name);
  if (!value)
    return missing;
  bool fits = value->is_number_unsigned() ? value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                          : value->is_number_integer();
  int64_t number = fits ? value->get<int64_t>() : 0;
  if (!fits || number < least || number > most) {
    fail(Code::ArtifactRefused,
         where_ + ": '" + name + "' must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return missing;
  }
  return number;
}

std::string Fields::string(const char *name, const std::string &missing) {
  const json *value = find(name);
  if (!value)
    return missing;
  if (value->is_string())
    return value->get<std::string>();
  fail(Code::ArtifactRefused, where_ + ": '" + name + "' must be a string");
  return missing;
}

std::string Fields::string(const char *name) {
  if (!find(name))
    fail(Code::ArtifactRefused, where_ + " lacks '" + name + "'");
  return string(name, "");
}

char32_t Fields::character(const char *name) {
  std::string value = string(name);
  size_t at = 0;
  char32_t c = value.empty() ? 0 : nextChar(value, at);
  if (value.empty() || at != value.size())
    fail(Code::ArtifactRefused, where_ + ": '" + name + "' must be one character");
  return c;
}

int Fields::choice(const char *name, const std::vector<std::string> &names, int missing) {
  const json *value = find(name);
  if (!value)
    return missing;
  for (size_t i = 0; i < names.size(); ++i)
    if (*value == names[i])
      return static_cast<int>(i);
  if (value->is_string())
    fail(Code::Unsupported,
         where_ + ": '" + name + "' is '" + printable(value->get<std::string>(), 60) + "', which is not implemented");
  else
    fail(Code::ArtifactRefused, where_ + ": '" + name + "' must be a string");
  return missing;
}

void Fields::ignore(std::initializer_list<const char *> names) {
  for (const char *name : names)
    read_.insert(name);
}

Status Fields::done() {
  if (status_.ok())
    for (const auto &[name, value] : object_.items())
      if (!read_.count(name)) {
        fail(Code::Unsupported, where_ + " has the key '" + printable(name, 60) + "', which is not implemented");
        break;
      }
  return status_;
}

} // namespace transept::text
