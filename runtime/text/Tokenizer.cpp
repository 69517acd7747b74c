#include "runtime/text/Tokenizer.h"

#include "runtime/text/FastTokenizer.h"
#include "runtime/text/SentencePiecePair.h"
#include "runtime/text/SlowTokenizer.h"

#include <algorithm>

namespace transept {

Result<std::unique_ptr<Tokenizer>> makeTokenizer(const std::string &kind, const std::vector<TokenizerFile> &files,
                                                 const std::string &configJson) {
  if (kind == "sentencepiece-pair")
    return SentencePiecePair::create(files, configJson);
  bool fast = kind == "tokenizer.json";
  if (!fast && kind != "sentencepiece" && kind != "byte-level-bpe" && kind != "wordpiece")
    return Status(Code::Unsupported, "tokenizer kind '" + printable(kind, 60) + "' is not implemented; token ids work");
  TRANSEPT_ASSIGN(text::TokenizerConfig config, text::TokenizerConfig::parse(configJson));
  if (!fast)
    return text::makeSlowTokenizer(kind, files, config);
  auto file =
      std::find_if(files.begin(), files.end(), [](const TokenizerFile &f) { return f.name == "tokenizer.json"; });
  if (file == files.end())
    return Status(Code::ArtifactRefused, "the tokenizer lacks 'tokenizer.json'");
  return text::FastTokenizer::create(file->bytes, config);
}

} // namespace transept
