#include "runtime/text/Tokenizer.h"

#include "runtime/text/SentencePiecePair.h"

namespace transept {

Result<std::unique_ptr<Tokenizer>> makeTokenizer(const std::string &kind, const std::vector<TokenizerFile> &files,
                                                 const std::string &configJson) {
  if (kind == "sentencepiece-pair")
    return SentencePiecePair::create(files, configJson);
  return Status(Code::Unsupported, "tokenizer kind '" + printable(kind, 60) + "' is not implemented; token ids work");
}

} // namespace transept
