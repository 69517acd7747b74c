#include "runtime/text/Decoder.h"

#include "runtime/text/Fields.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/Regex.h"
#include "runtime/text/Unicode.h"

#include <array>
#include <charconv>
#include <functional>

namespace transept::text {

using nlohmann::json;

namespace {

using Made = Result<std::shared_ptr<const Decoder>>;

constexpr std::string_view replacementCharacter = "\xEF\xBF\xBD";

class MapParts final : public Decoder {
public:
  explicit MapParts(std::function<void(std::vector<std::string> &)> map) : map_(std::move(map)) {}
  void apply(std::vector<std::string> &parts) const override { map_(parts); }

private:
  std::function<void(std::vector<std::string> &)> map_;
};

std::shared_ptr<const Decoder> mapParts(std::function<void(std::vector<std::string> &)> map) {
  return std::make_shared<MapParts>(std::move(map));
}

void joinBytes(std::vector<std::string> &parts) {
  std::string bytes;
  for (const std::string &part : parts)
    if (size_t before = bytes.size(); !fromByteLevel(part, bytes)) {
      bytes.resize(before);
      bytes += part;
    }
  parts = {lossyUtf8(bytes)};
}

/// Tokens like "<0x41>" become the characters that their bytes in a row make.
void joinByteTokens(std::vector<std::string> &parts) {
  std::vector<std::string> result;
  std::string bytes;
  size_t count = 0;
  auto flush = [&] {
    if (isUtf8(bytes) && count > 0)
      result.push_back(bytes);
    else
      result.insert(result.end(), count, std::string(replacementCharacter));
    bytes.clear();
    count = 0;
  };
  for (std::string &part : parts) {
    unsigned byte = 0;
    if (part.size() == 6 && part.compare(0, 3, "<0x") == 0 && part[5] == '>' &&
        std::from_chars(part.data() + 3, part.data() + 5, byte, 16).ptr == part.data() + 5) {
      bytes += static_cast<char>(byte);
      ++count;
      continue;
    }
    flush();
    result.push_back(std::move(part));
  }
  flush();
  parts = std::move(result);
}

/// At most `start` and `stop` times `content` at the ends of a part.
std::string strip(std::string_view part, std::string_view content, int64_t start, int64_t stop) {
  for (; start > 0 && part.substr(0, content.size()) == content; --start)
    part.remove_prefix(content.size());
  for (; stop > 0 && part.size() >= content.size() && part.substr(part.size() - content.size()) == content; --stop)
    part.remove_suffix(content.size());
  return std::string(part);
}

Made makeMetaspace(Fields &fields) {
  std::string replacement;
  appendChar(replacement, fields.character("replacement"));
  bool never = fields.choice("prepend_scheme", {"first", "never", "always"}, 2) == 1;
  never = !fields.flag("add_prefix_space", !never) || never;
  fields.ignore({"split", "str_rep"});
  return mapParts([replacement, never](std::vector<std::string> &parts) {
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i] = replaceAll(parts[i], replacement, i == 0 && !never ? "" : " ");
  });
}

Made makeWordPiece(Fields &fields) {
  std::string prefix = fields.string("prefix");
  bool clean = fields.flag("cleanup");
  return mapParts([prefix, clean](std::vector<std::string> &parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0 && !prefix.empty() && parts[i].compare(0, prefix.size(), prefix) == 0)
        parts[i].erase(0, prefix.size());
      else if (i > 0 && !prefix.empty())
        parts[i].insert(0, " ");
      if (clean) // the library's own list has one more than cleanUp(), in the middle
        for (auto [from, to] : {std::pair{" .", "."},
                                {" ?", "?"},
                                {" !", "!"},
                                {" ,", ","},
                                {" ' ", "'"},
                                {" n't", "n't"},
                                {" 'm", "'m"},
                                {" do not", " don't"},
                                {" 's", "'s"},
                                {" 've", "'ve"},
                                {" 're", "'re"}})
          parts[i] = replaceAll(parts[i], from, to);
    }
  });
}

Made makeReplace(Fields &fields) {
  std::string content = fields.string("content");
  const json *pattern = fields.find("pattern");
  if (!pattern)
    return Status(Code::ArtifactRefused, fields.where() + " lacks 'pattern'");
  // The same as the normaliser of this name, for each part.
  json spec = {{"type", "Replace"}, {"content", content}, {"pattern", *pattern}};
  TRANSEPT_ASSIGN(std::shared_ptr<const Normalizer> normalizer, makeNormalizer(spec));
  return mapParts([normalizer](std::vector<std::string> &parts) {
    bool first = false;
    for (std::string &part : parts)
      if (!part.empty())
        if (Status status = normalizer->apply(part, first); !status.ok())
          continue; // a pattern that gives up on a token leaves it as it is
  });
}

Made makeSequence(Fields &fields, int depth) {
  const json *list = fields.find("decoders");
  if (!list || !list->is_array())
    return Status(Code::ArtifactRefused, fields.where() + ": 'decoders' must be a list");
  if (depth > 8)
    return Status(Code::LimitExceeded, fields.where() + ": sequences are nested too deep");
  std::vector<std::shared_ptr<const Decoder>> decoders;
  for (const json &part : *list) {
    TRANSEPT_ASSIGN(std::shared_ptr<const Decoder> made, makeDecoder(part, depth + 1));
    if (made)
      decoders.push_back(std::move(made));
  }
  return mapParts([decoders](std::vector<std::string> &parts) {
    for (const auto &decoder : decoders)
      decoder->apply(parts);
  });
}

Made make(const std::string &type, Fields &fields, int depth) {
  if (type == "Sequence")
    return makeSequence(fields, depth);
  if (type == "ByteLevel") {
    fields.ignore({"add_prefix_space", "trim_offsets", "use_regex"});
    return mapParts(joinBytes);
  }
  if (type == "Metaspace")
    return makeMetaspace(fields);
  if (type == "WordPiece")
    return makeWordPiece(fields);
  if (type == "Replace")
    return makeReplace(fields);
  if (type == "ByteFallback")
    return mapParts(joinByteTokens);
  if (type == "BPEDecoder") {
    std::string suffix = fields.string("suffix");
    if (suffix.empty())
      return Status(Code::ArtifactRefused, fields.where() + ": 'suffix' is empty");
    return mapParts([suffix](std::vector<std::string> &parts) {
      for (size_t i = 0; i < parts.size(); ++i)
        parts[i] = replaceAll(parts[i], suffix, i + 1 < parts.size() ? " " : "");
    });
  }
  if (type == "Fuse")
    return mapParts([](std::vector<std::string> &parts) {
      std::string all;
      for (const std::string &part : parts)
        all += part;
      parts = {std::move(all)};
    });
  if (type == "Strip") {
    std::string content;
    appendChar(content, fields.character("content"));
    int64_t start = fields.integer("start", 0, 0, 1 << 20), stop = fields.integer("stop", 0, 0, 1 << 20);
    return mapParts([=](std::vector<std::string> &parts) {
      for (std::string &part : parts)
        part = strip(part, content, start, stop);
    });
  }
  return Status(Code::Unsupported, "the decoder '" + printable(type, 60) + "' is not implemented");
}

} // namespace

Result<std::shared_ptr<const Decoder>> makeDecoder(const json &spec, int depth) {
  if (spec.is_null())
    return std::shared_ptr<const Decoder>();
  Fields head(spec, "the decoder");
  std::string type = head.string("type");
  if (!head.ok())
    return head.done();
  Fields fields(spec, "the decoder '" + printable(type, 60) + "'");
  fields.find("type");
  TRANSEPT_ASSIGN(std::shared_ptr<const Decoder> made, make(type, fields, depth));
  TRANSEPT_TRY(fields.done());
  return made;
}

bool fromByteLevel(std::string_view token, std::string &bytes) {
  constexpr char32_t last = 0x143; // of the characters that stand for bytes
  static const std::array<int16_t, last + 1> table = [] {
    std::array<int16_t, last + 1> bytesOf;
    bytesOf.fill(-1);
    for (int byte = 0; byte < 256; ++byte) {
      size_t at = 0;
      bytesOf[nextChar(byteLevelChar(static_cast<unsigned char>(byte)), at)] = static_cast<int16_t>(byte);
    }
    return bytesOf;
  }();
  for (size_t at = 0; at < token.size();) {
    char32_t c = nextChar(token, at);
    if (c > last || table[c] < 0)
      return false;
    bytes += static_cast<char>(table[c]);
  }
  return true;
}

std::string lossyUtf8(std::string_view bytes) {
  if (isUtf8(bytes))
    return std::string(bytes);
  std::string result;
  for (size_t at = 0; at < bytes.size();) {
    auto byte = [&](size_t i) { return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u; };
    unsigned first = byte(0), second = byte(1);
    size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    // How far this is the beginning of a character; that much becomes one U+FFFD.
    size_t good = 1;
    bool opens = first < 0x80 || (first >= 0xC2 && first < 0xF5);
    unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (opens && size > 1 && second >= least && second <= most)
      for (good = 2; good < size && (byte(good) & 0xC0) == 0x80;)
        ++good;
    if (opens && good == size)
      result.append(bytes, at, size);
    else
      result.append(replacementCharacter);
    at += good;
  }
  return result;
}

std::string cleanUp(std::string text) {
  for (auto [from, to] : {std::pair{" .", "."},
                          {" ?", "?"},
                          {" !", "!"},
                          {" ,", ","},
                          {" ' ", "'"},
                          {" n't", "n't"},
                          {" 'm", "'m"},
                          {" 's", "'s"},
                          {" 've", "'ve"},
                          {" 're", "'re"}})
    text = replaceAll(text, from, to);
  return text;
}

} // namespace transept::text
