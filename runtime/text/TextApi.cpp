// Tokenizers in the C interface.

#include "transept/text.h"

#include "runtime/text/Tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>

using namespace transept;

namespace {

int64_t encodeIn(void *user, int32_t target, const char *source, const char *targetLanguage, const char *text,
                 size_t bytes, int64_t *ids, size_t room) try {
  const auto &tokenizer = *static_cast<const Tokenizer *>(user);
  LanguagePair languages{source, targetLanguage};
  Result<std::vector<int64_t>> result =
      target ? tokenizer.encodeTarget({text, bytes}, languages) : tokenizer.encodeSource({text, bytes}, languages);
  if (!result.ok())
    return -1;
  std::copy_n(result->begin(), std::min(room, result->size()), ids);
  return static_cast<int64_t>(result->size());
} catch (const std::exception &) {
  return -1;
}

int64_t encode(void *user, int32_t target, const char *text, size_t bytes, int64_t *ids, size_t room) {
  return encodeIn(user, target, "", "", text, bytes, ids, room);
}

int64_t languageSettings(void *user, const char *source, const char *target, char *json, size_t room) try {
  Result<std::string> result = static_cast<const Tokenizer *>(user)->languageSettings({source, target});
  const std::string &text = result.ok() ? *result : result.status().message();
  std::memcpy(json, text.data(), std::min(room, text.size()));
  return static_cast<int64_t>(text.size()) * (result.ok() ? 1 : -1);
} catch (const std::exception &) {
  return -1;
}

int64_t decode(void *user, const int64_t *ids, size_t count, char *text, size_t room) try {
  std::string result = static_cast<const Tokenizer *>(user)->decode({ids, count});
  std::memcpy(text, result.data(), std::min(room, result.size()));
  return static_cast<int64_t>(result.size());
} catch (const std::exception &) {
  return -1;
}

Result<std::unique_ptr<Tokenizer>> open(const transept_model *model) {
  std::vector<TokenizerFile> files;
  for (const char *name : {"source.spm", "target.spm", "vocab.json", "target_vocab.json", "tokenizer.json",
                           "spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "merges.txt", "vocab.txt"}) {
    size_t bytes = 0;
    if (const void *content = transept_model_file(model, name, &bytes))
      files.push_back({name, {static_cast<const char *>(content), bytes}});
  }
  return makeTokenizer(transept_model_tokenizer_kind(model), files, transept_model_tokenizer_config(model));
}

Status fill(const transept_model *model, transept_tokenizer *out) try {
  if (!model || !out)
    return {Code::Usage, model ? "tokenizer is null" : "model is null"};
  if (out->struct_size < offsetof(transept_tokenizer, source_suffix))
    return {Code::Usage, "struct_size is not set"};
  TRANSEPT_ASSIGN(std::unique_ptr<Tokenizer> tokenizer, open(model));
  out->end_of_source = tokenizer->endOfSource();
  out->encode = encode;
  out->decode = decode;
  if (out->struct_size >= sizeof(transept_tokenizer)) {
    out->source_suffix = tokenizer->sourceSuffix();
    out->encode_in = encodeIn;
    out->language_settings = languageSettings;
  }
  out->release = [](void *user) { delete static_cast<Tokenizer *>(user); };
  out->user = tokenizer.release();
  return {};
} catch (const std::exception &failure) {
  return {Code::OutOfMemory, failure.what()};
}

} // namespace

transept_status transept_text_open(const transept_model *model, transept_tokenizer *tokenizer, transept_error *error) {
  Status status = fill(model, tokenizer);
  if (error && error->struct_size >= sizeof(transept_error)) {
    error->status = static_cast<transept_status>(status.code());
    size_t length = std::min(status.message().size(), sizeof error->message - 1);
    std::memcpy(error->message, status.message().data(), length);
    error->message[length] = '\0';
  }
  return static_cast<transept_status>(status.code());
}
