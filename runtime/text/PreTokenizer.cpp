#include "runtime/text/PreTokenizer.h"

#include "runtime/text/Fields.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/Regex.h"
#include "runtime/text/Unicode.h"

#include <algorithm>
#include <functional>

namespace transept::text {

using nlohmann::json;

namespace {

using Made = Result<std::shared_ptr<const PreTokenizer>>;

enum Behaviour { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };
const std::vector<std::string> behaviourNames = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                                 "Contiguous"};

/// The ranges that stay, from alternating matches and the text between them.
std::vector<Range> arrange(std::vector<Range> ranges, Behaviour behaviour) {
  std::vector<Range> result;
  result.reserve(ranges.size());
  bool previous = false; // the last range looked at was a match
  switch (behaviour) {
  case Isolated:
    return ranges;
  case Removed:
    std::copy_if(ranges.begin(), ranges.end(), std::back_inserter(result), [](const Range &r) { return !r.match; });
    return result;
  case Contiguous:
  case MergedWithPrevious:
    for (const Range &range : ranges) {
      bool merge = behaviour == Contiguous ? range.match == previous : range.match && !previous;
      if (merge && !result.empty())
        result.back().end = range.end;
      else
        result.push_back(range);
      previous = range.match;
    }
    return result;
  case MergedWithNext:
    for (size_t i = ranges.size(); i-- > 0;) {
      if (ranges[i].match && !previous && !result.empty())
        result.back().begin = ranges[i].begin;
      else
        result.push_back(ranges[i]);
      previous = ranges[i].match;
    }
    std::reverse(result.begin(), result.end());
    return result;
  }
  return result;
}

/// Replaces each piece that is no token by the ranges that `split` finds in it.
template <typename Split> Status splitPieces(std::vector<Piece> &pieces, Behaviour behaviour, Split &&split) {
  std::vector<Piece> result;
  result.reserve(pieces.size());
  for (Piece &piece : pieces) {
    if (piece.token >= 0) {
      result.push_back(std::move(piece));
      continue;
    }
    TRANSEPT_ASSIGN(std::vector<Range> ranges, split(piece));
    ranges = arrange(std::move(ranges), behaviour);
    if (ranges.size() == 1 && ranges[0].begin == 0 && ranges[0].end == piece.text.size()) {
      if (!piece.text.empty())
        result.push_back(std::move(piece));
      continue;
    }
    for (const Range &range : ranges)
      if (range.end > range.begin)
        result.push_back(
            {piece.text.substr(range.begin, range.end - range.begin), piece.first && range.begin == 0, -1});
  }
  pieces = std::move(result);
  return {};
}

/// Single characters as matches.
template <typename Predicate> std::vector<Range> rangesOf(std::string_view text, Predicate &&predicate) {
  std::vector<Range> ranges;
  size_t last = 0;
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    if (!predicate(nextChar(text, at)))
      continue;
    if (begin > last)
      ranges.push_back({last, begin, false});
    ranges.push_back({begin, at, true});
    last = at;
  }
  if (last < text.size() || text.empty())
    ranges.push_back({last, text.size(), false});
  return ranges;
}

class SplitChars final : public PreTokenizer {
public:
  SplitChars(Behaviour behaviour, std::function<bool(char32_t)> predicate)
      : behaviour_(behaviour), predicate_(std::move(predicate)) {}
  Status apply(std::vector<Piece> &pieces) const override {
    return splitPieces(pieces, behaviour_, [&](const Piece &piece) -> Result<std::vector<Range>> {
      return rangesOf(piece.text, predicate_);
    });
  }

private:
  Behaviour behaviour_;
  std::function<bool(char32_t)> predicate_;
};

class SplitRegex final : public PreTokenizer {
public:
  SplitRegex(Regex pattern, Behaviour behaviour, bool invert)
      : pattern_(std::move(pattern)), behaviour_(behaviour), invert_(invert) {}
  Status apply(std::vector<Piece> &pieces) const override {
    return splitPieces(pieces, behaviour_, [&](const Piece &piece) -> Result<std::vector<Range>> {
      TRANSEPT_ASSIGN(std::vector<Range> ranges, pattern_.ranges(piece.text));
      for (Range &range : ranges)
        range.match = range.match != invert_;
      return ranges;
    });
  }

private:
  Regex pattern_;
  Behaviour behaviour_;
  bool invert_;
};

/// \w+|[^\w\s]+
class Words final : public PreTokenizer {
public:
  Status apply(std::vector<Piece> &pieces) const override {
    return splitPieces(pieces, Removed, [](const Piece &piece) -> Result<std::vector<Range>> {
      enum Kind { Space, Word, Other };
      auto kindOf = [](char32_t c) { return isWord(c) ? Word : isWhitespace(c) ? Space : Other; };
      std::vector<Range> ranges;
      Kind last = Space;
      for (size_t at = 0; at < piece.text.size();) {
        size_t begin = at;
        Kind kind = kindOf(nextChar(piece.text, at));
        if (!ranges.empty() && kind == last)
          ranges.back().end = at;
        else
          ranges.push_back({begin, at, kind == Space});
        last = kind;
      }
      return ranges;
    });
  }
};

class ByteLevel final : public PreTokenizer {
public:
  ByteLevel(bool prefixSpace, bool words) : prefixSpace_(prefixSpace), words_(words) {}
  Status apply(std::vector<Piece> &pieces) const override {
    std::vector<Piece> result;
    result.reserve(pieces.size());
    auto add = [&](std::string_view text, bool first) {
      std::string mapped;
      mapped.reserve(text.size() + text.size() / 2);
      for (char byte : text)
        mapped += byteLevelChar(static_cast<unsigned char>(byte));
      result.push_back({std::move(mapped), first, -1});
    };
    for (Piece &piece : pieces) {
      if (piece.token >= 0) {
        result.push_back(std::move(piece));
        continue;
      }
      if (prefixSpace_ && piece.text.compare(0, 1, " ") != 0)
        piece.text.insert(0, 1, ' ');
      if (!words_) {
        add(piece.text, piece.first);
        continue;
      }
      for (std::string_view word : splitWords(piece.text))
        add(word, piece.first && word.data() == piece.text.data());
    }
    pieces = std::move(result);
    return {};
  }

private:
  bool prefixSpace_, words_;
};

class Metaspace final : public PreTokenizer {
public:
  enum Scheme { First, Never, Always };
  Metaspace(char32_t replacement, Scheme scheme, bool split) : scheme_(scheme), split_(split) {
    appendChar(replacement_, replacement);
  }
  Status apply(std::vector<Piece> &pieces) const override {
    for (Piece &piece : pieces) {
      if (piece.token >= 0)
        continue;
      piece.text = replaceAll(piece.text, " ", replacement_);
      bool wanted = scheme_ == Always || (scheme_ == First && piece.first);
      if (wanted && piece.text.compare(0, replacement_.size(), replacement_) != 0)
        piece.text.insert(0, replacement_);
    }
    if (!split_)
      return {};
    return splitPieces(pieces, MergedWithNext, [&](const Piece &piece) -> Result<std::vector<Range>> {
      std::vector<Range> ranges;
      size_t last = 0;
      for (size_t at; (at = piece.text.find(replacement_, last)) != std::string::npos;
           last = at + replacement_.size()) {
        if (at > last)
          ranges.push_back({last, at, false});
        ranges.push_back({at, at + replacement_.size(), true});
      }
      if (last < piece.text.size())
        ranges.push_back({last, piece.text.size(), false});
      return ranges;
    });
  }

private:
  std::string replacement_;
  Scheme scheme_;
  bool split_;
};

class FixedLength final : public PreTokenizer {
public:
  explicit FixedLength(size_t length) : length_(length) {}
  Status apply(std::vector<Piece> &pieces) const override {
    return splitPieces(pieces, Isolated, [&](const Piece &piece) -> Result<std::vector<Range>> {
      std::vector<Range> ranges;
      for (size_t begin = 0, at = 0; begin < piece.text.size(); begin = at) {
        for (size_t i = 0; i < length_ && at < piece.text.size(); ++i)
          nextChar(piece.text, at);
        ranges.push_back({begin, at, false});
      }
      return ranges;
    });
  }

private:
  size_t length_;
};

class Sequence final : public PreTokenizer {
public:
  explicit Sequence(std::vector<std::shared_ptr<const PreTokenizer>> parts) : parts_(std::move(parts)) {}
  Status apply(std::vector<Piece> &pieces) const override {
    for (const auto &part : parts_)
      TRANSEPT_TRY(part->apply(pieces));
    return {};
  }

private:
  std::vector<std::shared_ptr<const PreTokenizer>> parts_;
};

std::shared_ptr<const PreTokenizer> splitChars(Behaviour behaviour, std::function<bool(char32_t)> predicate) {
  return std::make_shared<SplitChars>(behaviour, std::move(predicate));
}

template <typename... Parts> std::shared_ptr<const PreTokenizer> sequence(Parts... parts) {
  return std::make_shared<Sequence>(std::vector<std::shared_ptr<const PreTokenizer>>{std::move(parts)...});
}

/// `plain` as a pattern of Oniguruma.
std::string escaped(const std::string &plain) {
  std::string result;
  for (char c : plain) {
    if (static_cast<unsigned char>(c) < 0x80 && isPunctuation(static_cast<unsigned char>(c)))
      result += '\\';
    result += c;
  }
  return result;
}

Made makeSplit(Fields &fields) {
  const json *pattern = fields.find("pattern");
  if (!pattern)
    return Status(Code::ArtifactRefused, fields.where() + " lacks 'pattern'");
  Fields kinds(*pattern, fields.where() + " 'pattern'");
  std::string source = kinds.find("Regex") ? kinds.string("Regex") : escaped(kinds.string("String"));
  TRANSEPT_TRY(kinds.done());
  auto behaviour = static_cast<Behaviour>(fields.choice("behavior", behaviourNames, Isolated));
  bool invert = fields.flag("invert", false);
  TRANSEPT_ASSIGN(Regex regex, Regex::compile(source));
  return std::shared_ptr<const PreTokenizer>(std::make_shared<SplitRegex>(std::move(regex), behaviour, invert));
}

Made makeMetaspace(Fields &fields) {
  auto scheme =
      static_cast<Metaspace::Scheme>(fields.choice("prepend_scheme", {"first", "never", "always"}, Metaspace::Always));
  if (!fields.flag("add_prefix_space", true)) {
    if (scheme != Metaspace::Never && fields.find("prepend_scheme"))
      fields.fail(Code::ArtifactRefused, fields.where() + ": 'add_prefix_space' contradicts 'prepend_scheme'");
    scheme = Metaspace::Never;
  }
  fields.ignore({"str_rep"});
  char32_t replacement = fields.character("replacement");
  bool split = fields.flag("split", true);
  return std::shared_ptr<const PreTokenizer>(std::make_shared<Metaspace>(replacement, scheme, split));
}

Made makeSequence(Fields &fields, int depth) {
  const json *list = fields.find("pretokenizers");
  if (!list || !list->is_array())
    return Status(Code::ArtifactRefused, fields.where() + ": 'pretokenizers' must be a list");
  if (depth > 8)
    return Status(Code::LimitExceeded, fields.where() + ": sequences are nested too deep");
  std::vector<std::shared_ptr<const PreTokenizer>> parts;
  for (const json &part : *list) {
    TRANSEPT_ASSIGN(std::shared_ptr<const PreTokenizer> made, makePreTokenizer(part, depth + 1));
    if (made)
      parts.push_back(std::move(made));
  }
  return std::shared_ptr<const PreTokenizer>(std::make_shared<Sequence>(std::move(parts)));
}

Made make(const std::string &type, Fields &fields, int depth) {
  if (type == "Sequence")
    return makeSequence(fields, depth);
  if (type == "Split")
    return makeSplit(fields);
  if (type == "Metaspace")
    return makeMetaspace(fields);
  if (type == "ByteLevel") {
    fields.ignore({"trim_offsets"});
    bool prefixSpace = fields.flag("add_prefix_space"), words = fields.flag("use_regex", true);
    return std::shared_ptr<const PreTokenizer>(std::make_shared<ByteLevel>(prefixSpace, words));
  }
  if (type == "BertPreTokenizer")
    return sequence(splitChars(Removed, isWhitespace), splitChars(Isolated, isPunctuation));
  if (type == "Whitespace")
    return std::shared_ptr<const PreTokenizer>(std::make_shared<Words>());
  if (type == "WhitespaceSplit")
    return splitChars(Removed, isWhitespace);
  if (type == "Punctuation")
    return splitChars(static_cast<Behaviour>(fields.choice("behavior", behaviourNames, Isolated)), isPunctuation);
  if (type == "Digits")
    return splitChars(fields.flag("individual_digits") ? Isolated : Contiguous, isNumber);
  if (type == "CharDelimiterSplit")
    return splitChars(Removed, [delimiter = fields.character("delimiter")](char32_t c) { return c == delimiter; });
  if (type == "FixedLength")
    return std::shared_ptr<const PreTokenizer>(
        std::make_shared<FixedLength>(static_cast<size_t>(fields.integer("length", 5, 1, 1 << 20))));
  return Status(Code::Unsupported, "the pre-tokenizer '" + printable(type, 60) + "' is not implemented");
}

} // namespace

Result<std::shared_ptr<const PreTokenizer>> makePreTokenizer(const json &spec, int depth) {
  if (spec.is_null())
    return std::shared_ptr<const PreTokenizer>();
  Fields head(spec, "the pre-tokenizer");
  std::string type = head.string("type");
  if (!head.ok())
    return head.done();
  Fields fields(spec, "the pre-tokenizer '" + printable(type, 60) + "'");
  fields.find("type");
  TRANSEPT_ASSIGN(std::shared_ptr<const PreTokenizer> made, make(type, fields, depth));
  TRANSEPT_TRY(fields.done());
  return made;
}

} // namespace transept::text
