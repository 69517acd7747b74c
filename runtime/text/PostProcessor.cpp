#include "runtime/text/PostProcessor.h"

#include "runtime/text/Fields.h"
#include "runtime/text/Vocabulary.h"

#include <algorithm>

namespace transept::text {

using nlohmann::json;

namespace {

bool isId(const json &value) {
  return value.is_number_unsigned() && value.get<uint64_t>() < static_cast<uint64_t>(Vocabulary::maxId);
}

/// ["</s>", 2]
Status readPair(Fields &fields, const char *name, std::vector<int64_t> &ids) {
  const json *pair = fields.find(name);
  if (!pair || !pair->is_array() || pair->size() != 2 || !(*pair)[0].is_string() || !isId((*pair)[1]))
    return {Code::ArtifactRefused, fields.where() + ": '" + name + "' must be a token and its id"};
  ids.push_back((*pair)[1].get<int64_t>());
  return {};
}

Result<Template> readClassAndSeparator(Fields &fields) {
  std::vector<int64_t> before, after;
  TRANSEPT_TRY(readPair(fields, "cls", before));
  TRANSEPT_TRY(readPair(fields, "sep", after));
  return Template::around(std::move(before), std::move(after));
}

Status addSpecial(const std::string &name, const json *specials, Template &result, const std::string &where) {
  auto found = specials && specials->is_object() ? specials->find(name) : json::const_iterator();
  if (!specials || !specials->is_object() || found == specials->end())
    return {Code::ArtifactRefused, where + " has no special token '" + printable(name, 60) + "'"};
  Fields fields(*found, where + ": special token '" + printable(name, 60) + "'");
  fields.ignore({"id", "tokens"});
  const json *ids = fields.find("ids");
  TRANSEPT_TRY(fields.done());
  if (!ids || !ids->is_array() || !std::all_of(ids->begin(), ids->end(), isId))
    return {Code::ArtifactRefused, fields.where() + ": 'ids' must be a list of token ids"};
  for (const json &id : *ids)
    result.parts.push_back(id.get<int64_t>());
  return {};
}

Result<Template> readTemplate(Fields &fields) {
  Template result;
  result.parts.clear();
  const json *single = fields.find("single"), *specials = fields.find("special_tokens");
  fields.ignore({"pair"});
  if (!single || !single->is_array())
    return Status(Code::ArtifactRefused, fields.where() + ": 'single' must be a list");
  for (const json &part : *single) {
    std::string where = fields.where() + ": a part of 'single'";
    Fields kinds(part, where);
    const json *sequence = kinds.find("Sequence"), *special = kinds.find("SpecialToken");
    TRANSEPT_TRY(kinds.done());
    if (!sequence == !special)
      return Status(Code::ArtifactRefused, where + " is neither 'Sequence' nor 'SpecialToken'");
    Fields piece(sequence ? *sequence : *special, where);
    std::string id = piece.string("id");
    if (piece.integer("type_id", 0, 0, INT32_MAX) != 0)
      piece.fail(Code::Unsupported, where + " has a 'type_id' other than 0, which is not implemented");
    TRANSEPT_TRY(piece.done());
    if (special)
      TRANSEPT_TRY(addSpecial(id, specials, result, fields.where()));
    else if (id == "A")
      result.parts.push_back(Template::text);
    else
      return Status(Code::ArtifactRefused, where + " names the sequence '" + printable(id, 60) + "'");
  }
  return result;
}

Result<Template> readSequence(Fields &fields) {
  const json *list = fields.find("processors");
  if (!list || !list->is_array())
    return Status(Code::ArtifactRefused, fields.where() + ": 'processors' must be a list");
  Template result;
  bool found = false;
  for (const json &part : *list) {
    if (part.is_object() && part.contains("type") && part["type"] == "Sequence")
      return Status(Code::Unsupported, fields.where() + " holds a 'Sequence', which is not implemented");
    TRANSEPT_ASSIGN(Template made, makeTemplate(part));
    if (made.parts == Template().parts)
      continue;
    if (found)
      return Status(Code::Unsupported, fields.where() + " adds tokens twice, which is not implemented");
    result = std::move(made);
    found = true;
  }
  return result;
}

} // namespace

Template Template::around(std::vector<int64_t> before, std::vector<int64_t> after) {
  Template result;
  result.parts = std::move(before);
  result.parts.push_back(text);
  result.parts.insert(result.parts.end(), after.begin(), after.end());
  return result;
}

std::vector<int64_t> Template::apply(Span<const int64_t> ids) const {
  std::vector<int64_t> result;
  result.reserve(ids.size() + parts.size());
  for (int64_t part : parts)
    if (part == text)
      result.insert(result.end(), ids.begin(), ids.end());
    else
      result.push_back(part);
  return result;
}

int64_t Template::behind() const { return std::find(parts.rbegin(), parts.rend(), text) - parts.rbegin(); }

Result<Template> makeTemplate(const json &spec) {
  if (spec.is_null())
    return Template();
  Fields head(spec, "the post-processor");
  std::string type = head.string("type");
  if (!head.ok())
    return head.done();
  Fields fields(spec, "the post-processor '" + printable(type, 60) + "'");
  fields.ignore({"type", "trim_offsets"});
  Result<Template> made =
      Status(Code::Unsupported, "the post-processor '" + printable(type, 60) + "' is not implemented");
  if (type == "TemplateProcessing") {
    made = readTemplate(fields);
  } else if (type == "BertProcessing") {
    made = readClassAndSeparator(fields);
  } else if (type == "RobertaProcessing") {
    fields.ignore({"add_prefix_space"}); // of offsets
    made = readClassAndSeparator(fields);
  } else if (type == "ByteLevel") {
    fields.ignore({"add_prefix_space", "use_regex"}); // offsets again
    made = Template();
  } else if (type == "Sequence") {
    made = readSequence(fields);
  }
  if (made.ok())
    TRANSEPT_TRY(fields.done());
  return made;
}

} // namespace transept::text
