#include "runtime/text/Normalizer.h"

#include "runtime/text/CharsMap.h"
#include "runtime/text/Fields.h"
#include "runtime/text/Regex.h"
#include "runtime/text/Unicode.h"

#include <array>
#include <functional>

namespace transept::text {

using nlohmann::json;

namespace {

constexpr char32_t removed = 0xFFFFFFFF;

/// Each character by itself: `map` gives what it becomes, or `removed`.
class MapChars final : public Normalizer {
public:
  explicit MapChars(std::function<char32_t(char32_t)> map) : map_(std::move(map)) {}
  Status apply(std::string &text, bool &first) const override {
    std::string result;
    result.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      char32_t c = map_(nextChar(text, at));
      if (c != removed)
        appendChar(result, c);
      else if (result.empty())
        first = false;
    }
    text = std::move(result);
    return {};
  }

private:
  std::function<char32_t(char32_t)> map_;
};

/// The text as a whole.
class MapText final : public Normalizer {
public:
  explicit MapText(std::function<std::string(std::string_view)> map) : map_(std::move(map)) {}
  Status apply(std::string &text, bool &) const override {
    text = map_(text);
    return {};
  }

private:
  std::function<std::string(std::string_view)> map_;
};

class Sequence final : public Normalizer {
public:
  explicit Sequence(std::vector<std::shared_ptr<const Normalizer>> parts) : parts_(std::move(parts)) {}
  Status apply(std::string &text, bool &first) const override {
    for (const auto &part : parts_)
      TRANSEPT_TRY(part->apply(text, first));
    return {};
  }

private:
  std::vector<std::shared_ptr<const Normalizer>> parts_;
};

class Strip final : public Normalizer {
public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  Status apply(std::string &text, bool &first) const override {
    size_t end = text.size();
    for (size_t at = end; right_ && at > 0 && isWhitespace(previousChar(text, at));)
      end = at;
    size_t begin = 0;
    for (size_t at = 0; left_ && at < end && isWhitespace(nextChar(text, at));)
      begin = at;
    first = first && begin == 0;
    text = text.substr(begin, end - begin);
    return {};
  }

private:
  bool left_, right_;
};

class ReplaceRegex final : public Normalizer {
public:
  ReplaceRegex(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Status apply(std::string &text, bool &first) const override {
    TRANSEPT_ASSIGN(std::vector<Range> ranges, pattern_.ranges(text));
    std::string result;
    for (const Range &range : ranges)
      if (range.match)
        result += content_;
      else
        result.append(text, range.begin, range.end - range.begin);
    if (content_.empty() && ranges[0].match && ranges[0].end > 0)
      first = false;
    text = std::move(result);
    return {};
  }

private:
  Regex pattern_;
  std::string content_;
};

using Made = Result<std::shared_ptr<const Normalizer>>;

std::shared_ptr<const Normalizer> mapChars(std::function<char32_t(char32_t)> map) {
  return std::make_shared<MapChars>(std::move(map));
}

std::shared_ptr<const Normalizer> mapText(std::function<std::string(std::string_view)> map) {
  return std::make_shared<MapText>(std::move(map));
}

std::shared_ptr<const Normalizer> form(NormalForm form) {
  return mapText([form](std::string_view text) { return normalForm(text, form); });
}

char32_t nmtChar(char32_t c) {
  if ((c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
    return removed;
  if (c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
      c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD)
    return ' ';
  return c;
}

char32_t cleanChar(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r')
    return ' ';
  if (c == 0 || c == 0xFFFD || isOther(c))
    return removed;
  return isWhitespace(c) ? ' ' : c;
}

bool isChinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string spaceChinese(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t begin = 0, at = 0; begin < text.size(); begin = at) {
    bool chinese = isChinese(nextChar(text, at));
    if (chinese)
      result += ' ';
    result.append(text, begin, at - begin);
    if (chinese)
      result += ' ';
  }
  return result;
}

Made makeBert(Fields &fields) {
  std::vector<std::shared_ptr<const Normalizer>> parts;
  bool lower = fields.flag("lowercase", true);
  if (fields.flag("clean_text", true))
    parts.push_back(mapChars(cleanChar));
  if (fields.flag("handle_chinese_chars", true))
    parts.push_back(mapText(spaceChinese));
  if (fields.flag("strip_accents", lower)) {
    parts.push_back(form(NormalForm::D));
    parts.push_back(mapChars([](char32_t c) { return isNonspacing(c) ? removed : c; }));
  }
  if (lower)
    parts.push_back(mapText(lowercase));
  return std::shared_ptr<const Normalizer>(std::make_shared<Sequence>(std::move(parts)));
}

Made makeReplace(Fields &fields) {
  std::string content = fields.string("content");
  const json *pattern = fields.find("pattern");
  if (!pattern)
    return Status(Code::ArtifactRefused, fields.where() + " lacks 'pattern'");
  Fields kinds(*pattern, fields.where() + " 'pattern'");
  if (kinds.find("Regex")) {
    std::string source = kinds.string("Regex");
    TRANSEPT_TRY(kinds.done());
    TRANSEPT_ASSIGN(Regex regex, Regex::compile(source));
    return std::shared_ptr<const Normalizer>(std::make_shared<ReplaceRegex>(std::move(regex), content));
  }
  std::string from = kinds.string("String");
  TRANSEPT_TRY(kinds.done());
  if (from.empty())
    return Status(Code::ArtifactRefused, fields.where() + ": the pattern is empty");
  return mapText([from, content](std::string_view text) { return replaceAll(text, from, content); });
}

Made makePrecompiled(Fields &fields) {
  TRANSEPT_ASSIGN(std::string bytes, decodeBase64(fields.string("precompiled_charsmap")));
  TRANSEPT_ASSIGN(CharsMap parsed, CharsMap::parse(bytes));
  auto map = std::make_shared<CharsMap>(std::move(parsed));
  return mapText([map](std::string_view text) { return map->apply(text); });
}

Made makeSequence(Fields &fields, int depth) {
  const json *list = fields.find("normalizers");
  if (!list || !list->is_array())
    return Status(Code::ArtifactRefused, fields.where() + ": 'normalizers' must be a list");
  if (depth > 8)
    return Status(Code::LimitExceeded, fields.where() + ": sequences are nested too deep");
  std::vector<std::shared_ptr<const Normalizer>> parts;
  for (const json &part : *list) {
    TRANSEPT_ASSIGN(std::shared_ptr<const Normalizer> made, makeNormalizer(part, depth + 1));
    if (made)
      parts.push_back(std::move(made));
  }
  return std::shared_ptr<const Normalizer>(std::make_shared<Sequence>(std::move(parts)));
}

Made make(const std::string &type, Fields &fields, int depth) {
  if (type == "Sequence")
    return makeSequence(fields, depth);
  if (type == "BertNormalizer")
    return makeBert(fields);
  if (type == "Replace")
    return makeReplace(fields);
  if (type == "Precompiled")
    return makePrecompiled(fields);
  if (type == "NFC")
    return form(NormalForm::C);
  if (type == "NFD")
    return form(NormalForm::D);
  if (type == "NFKC")
    return form(NormalForm::KC);
  if (type == "NFKD")
    return form(NormalForm::KD);
  if (type == "Lowercase")
    return mapText(lowercase);
  if (type == "StripAccents")
    return mapChars([](char32_t c) { return isMark(c) ? removed : c; });
  if (type == "Nmt")
    return mapChars(nmtChar);
  if (type == "Strip") {
    bool left = fields.flag("strip_left"), right = fields.flag("strip_right");
    return std::shared_ptr<const Normalizer>(std::make_shared<Strip>(left, right));
  }
  if (type == "Prepend")
    return mapText([prefix = fields.string("prepend")](std::string_view text) {
      return text.empty() ? std::string() : prefix + std::string(text);
    });
  if (type == "ByteLevel")
    return mapText([](std::string_view text) {
      std::string result;
      for (char byte : text)
        result += byteLevelChar(static_cast<unsigned char>(byte));
      return result;
    });
  return Status(Code::Unsupported, "the normalizer '" + printable(type, 60) + "' is not implemented");
}

} // namespace

Result<std::shared_ptr<const Normalizer>> makeNormalizer(const json &spec, int depth) {
  if (spec.is_null())
    return std::shared_ptr<const Normalizer>();
  Fields head(spec, "the normalizer");
  std::string type = head.string("type");
  if (!head.ok())
    return head.done();
  Fields fields(spec, "the normalizer '" + printable(type, 60) + "'");
  fields.find("type");
  TRANSEPT_ASSIGN(std::shared_ptr<const Normalizer> made, make(type, fields, depth));
  TRANSEPT_TRY(fields.done());
  return made;
}

std::string_view byteLevelChar(unsigned char byte) {
  static const std::array<std::string, 256> chars = [] {
    std::array<std::string, 256> table;
    char32_t next = 256; // for bytes that are no printable character of Latin-1
    for (unsigned i = 0; i < 256; ++i) {
      bool kept = (i >= '!' && i <= '~') || (i >= 0xA1 && i <= 0xAC) || i >= 0xAE;
      appendChar(table[i], kept ? static_cast<char32_t>(i) : next++);
    }
    return table;
  }();
  return chars[byte];
}

} // namespace transept::text
