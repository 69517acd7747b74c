#include "runtime/text/TokenModel.h"

#include "runtime/text/Fields.h"
#include "runtime/text/JsonScanner.h"

namespace transept::text {

using nlohmann::json;

namespace {

using Made = Result<std::shared_ptr<const TokenModel>>;

/// Whole words only.
class WordLevel final : public TokenModel {
public:
  WordLevel(Vocabulary vocabulary, int64_t unknown) : unknown_(unknown) { vocabulary_ = std::move(vocabulary); }
  Status encode(std::string_view piece, std::vector<int64_t> &ids) const override {
    int64_t id = vocabulary_.find(piece).value_or(unknown_);
    if (id < 0)
      return {Code::InvalidInput, "the tokenizer has no token for '" + printable(std::string(piece), 60) + "'"};
    ids.push_back(id);
    return {};
  }

private:
  int64_t unknown_;
};

Made readBpe(Fields &fields, std::string_view vocabularyText, std::string_view mergesText) {
  if (const json *dropout = fields.find("dropout"); dropout && *dropout != 0)
    return Status(Code::Unsupported, "the model 'BPE' has 'dropout', which is not implemented");
  BpeOptions options;
  if (fields.find("unk_token"))
    options.unknown = fields.string("unk_token");
  options.prefix = fields.string("continuing_subword_prefix", "");
  options.suffix = fields.string("end_of_word_suffix", "");
  options.fuseUnknown = fields.flag("fuse_unk", false);
  options.byteFallback = fields.flag("byte_fallback", false);
  options.ignoreMerges = fields.flag("ignore_merges", false);
  TRANSEPT_TRY(fields.done());
  TRANSEPT_ASSIGN(Vocabulary vocabulary, readVocabulary(vocabularyText, "the model's vocabulary"));

  JsonScanner scanner(mergesText);
  auto named = [](Status status) { return status.withContext("the model's 'merges'"); };
  TRANSEPT_TRY(named(scanner.expect('[')));
  bool begun = false;
  auto next = [&](std::string &left, std::string &right) -> Result<bool> {
    if (scanner.accept(']'))
      return false;
    if (begun)
      TRANSEPT_TRY(named(scanner.expect(',')));
    begun = true;
    if (scanner.accept('[')) {
      TRANSEPT_TRY(named(scanner.readString(left)));
      TRANSEPT_TRY(named(scanner.expect(',')));
      TRANSEPT_TRY(named(scanner.readString(right)));
      TRANSEPT_TRY(named(scanner.expect(']')));
      return true;
    }
    TRANSEPT_TRY(named(scanner.readString(left)));
    size_t space = left.find(' ');
    if (space == std::string::npos || left.find(' ', space + 1) != std::string::npos)
      return Status(Code::ArtifactRefused,
                    "the model's 'merges' have '" + printable(left, 60) + "', which is no pair of tokens");
    right = left.substr(space + 1);
    left.resize(space);
    return true;
  };
  return makeBpe(std::move(vocabulary), options, next);
}

Made readUnigram(Fields &fields, std::string_view vocabularyText) {
  int64_t unknown = fields.integer("unk_id", -1, 0, Vocabulary::maxId);
  bool byteFallback = fields.flag("byte_fallback", false);
  TRANSEPT_TRY(fields.done());
  std::vector<ScoredPiece> pieces;
  JsonScanner scanner(vocabularyText);
  Status status = scanner.readArray([&]() -> Status {
    ScoredPiece &piece = pieces.emplace_back();
    TRANSEPT_TRY(scanner.expect('['));
    TRANSEPT_TRY(scanner.readString(piece.text));
    TRANSEPT_TRY(scanner.expect(','));
    TRANSEPT_TRY(scanner.readNumber(piece.score));
    return scanner.expect(']');
  });
  TRANSEPT_TRY(status.withContext("the model's vocabulary"));
  return makeUnigram(std::move(pieces), unknown, byteFallback);
}

Made readWordPiece(Fields &fields, std::string_view vocabularyText) {
  WordPieceOptions options;
  options.unknown = fields.string("unk_token");
  options.prefix = fields.string("continuing_subword_prefix");
  options.longestWord = fields.integer("max_input_chars_per_word", -1, 1, 1 << 14);
  if (options.longestWord < 0)
    fields.fail(Code::ArtifactRefused, fields.where() + " lacks 'max_input_chars_per_word'");
  TRANSEPT_TRY(fields.done());
  TRANSEPT_ASSIGN(Vocabulary vocabulary, readVocabulary(vocabularyText, "the model's vocabulary"));
  return makeWordPiece(std::move(vocabulary), options);
}

Made readWordLevel(Fields &fields, std::string_view vocabularyText) {
  std::string unknown = fields.string("unk_token");
  TRANSEPT_TRY(fields.done());
  TRANSEPT_ASSIGN(Vocabulary vocabulary, readVocabulary(vocabularyText, "the model's vocabulary"));
  int64_t id = vocabulary.find(unknown).value_or(-1);
  return std::shared_ptr<const TokenModel>(std::make_shared<WordLevel>(std::move(vocabulary), id));
}

} // namespace

Result<std::shared_ptr<const TokenModel>> makeTokenModel(const json &spec, std::string_view vocabulary,
                                                         std::string_view merges) {
  Fields head(spec, "the model");
  std::string type = head.string("type", merges.empty() ? "" : "BPE"); // old files name no type
  if (!head.ok())
    return head.done();
  if (type.empty())
    return Status(Code::ArtifactRefused, "the model lacks 'type'");
  Fields fields(spec, "the model '" + printable(type, 60) + "'");
  fields.ignore({"type", "vocab", "merges"});
  bool known = type == "BPE" || type == "Unigram" || type == "WordPiece" || type == "WordLevel";
  if (!known)
    return Status(Code::Unsupported, "the model '" + printable(type, 60) + "' is not implemented");
  if (vocabulary.empty() || (type == "BPE" && merges.empty()))
    return Status(Code::ArtifactRefused, fields.where() + " lacks '" + (vocabulary.empty() ? "vocab'" : "merges'"));
  if (type == "BPE")
    return readBpe(fields, vocabulary, merges);
  if (type == "Unigram")
    return readUnigram(fields, vocabulary);
  return type == "WordPiece" ? readWordPiece(fields, vocabulary) : readWordLevel(fields, vocabulary);
}

Result<Vocabulary> readVocabulary(std::string_view text, const std::string &what) {
  Vocabulary vocabulary;
  vocabulary.reserve(text.size() / 16, text.size());
  JsonScanner scanner(text);
  Status status = scanner.readObject([&](const std::string &token) -> Status {
    int64_t id;
    TRANSEPT_TRY(scanner.readInteger(id));
    if (id < 0 || id >= Vocabulary::maxId)
      return {Code::ArtifactRefused, "'" + printable(token, 60) + "' has the impossible id " + std::to_string(id)};
    vocabulary.add(token, id);
    return {};
  });
  TRANSEPT_TRY(status.withContext(what));
  if (vocabulary.size() == 0)
    return Status(Code::ArtifactRefused, what + " is empty");
  return vocabulary;
}

std::string byteToken(unsigned char byte) {
  static constexpr char digits[] = "0123456789ABCDEF";
  return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
}

} // namespace transept::text
