// Generation in the C interface.

#include "runtime/capi/Handles.h"
#include "runtime/search/Generator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>

using namespace transept;
using namespace transept::capi;

struct transept_generator {
  std::atomic<bool> cancelled{false};
  std::atomic<bool> busy{false};
  std::unique_ptr<search::Generator> generator;
  std::string answers;

  struct Submitted {
    uint64_t number = 0;
    search::Request request;
  };
  std::deque<std::unique_ptr<Submitted>> computing, done;
  uint64_t submitted = 0;
};

namespace {

/// One thread at a time: `body` runs where no other call of the generator does.
template <typename Body> Status exclusively(transept_generator &generator, Body body) {
  if (generator.busy.exchange(true, std::memory_order_acquire))
    return {Code::Busy, "the generator is in use by another thread"};
  struct Release {
    std::atomic<bool> &busy;
    ~Release() { busy.store(false, std::memory_order_release); }
  } release{generator.busy};
  return body();
}

/// A tokenizer of the caller's.
class ForeignTokenizer final : public Tokenizer {
public:
  explicit ForeignTokenizer(const transept_tokenizer &functions) : functions_(functions) {}
  ~ForeignTokenizer() override {
    if (functions_.release)
      functions_.release(functions_.user);
  }
  ForeignTokenizer(const ForeignTokenizer &) = delete;
  ForeignTokenizer &operator=(const ForeignTokenizer &) = delete;

  Result<std::vector<int64_t>> encodeSource(std::string_view text, const LanguagePair &languages) const override {
    return encode(0, text, languages);
  }
  Result<std::vector<int64_t>> encodeTarget(std::string_view text, const LanguagePair &languages) const override {
    return encode(1, text, languages);
  }
  std::string decode(Span<const int64_t> ids) const override {
    std::string text(ids.size() * 8, '\0');
    for (;;) {
      int64_t length = functions_.decode(functions_.user, ids.data(), ids.size(), text.data(), text.size());
      bool fits = length <= static_cast<int64_t>(text.size());
      text.resize(length > 0 ? static_cast<size_t>(length) : 0);
      if (fits)
        return text;
    }
  }
  int64_t endOfSource() const override { return functions_.end_of_source; }
  int64_t sourceSuffix() const override {
    return functions_.source_suffix > 0 ? functions_.source_suffix : Tokenizer::sourceSuffix();
  }
  Result<std::string> languageSettings(const LanguagePair &languages) const override {
    if (!functions_.language_settings)
      return Tokenizer::languageSettings(languages);
    std::string text(256, '\0');
    for (;;) {
      int64_t length = functions_.language_settings(functions_.user, languages.source.c_str(), languages.target.c_str(),
                                                    text.data(), text.size());
      bool fits = std::abs(length) <= static_cast<int64_t>(text.size());
      text.resize(static_cast<size_t>(std::abs(length)));
      if (fits)
        return length < 0 ? Result<std::string>(Status(Code::InvalidInput, text)) : text;
    }
  }

private:
  Result<std::vector<int64_t>> encode(int32_t target, std::string_view text, const LanguagePair &languages) const {
    std::vector<int64_t> ids(text.size() + 8);
    for (;;) {
      int64_t count =
          functions_.encode_in
              ? functions_.encode_in(functions_.user, target, languages.source.c_str(), languages.target.c_str(),
                                     text.data(), text.size(), ids.data(), ids.size())
              : functions_.encode(functions_.user, target, text.data(), text.size(), ids.data(), ids.size());
      if (count < 0)
        return Status(Code::InvalidInput, "the tokenizer cannot split the text");
      bool fits = count <= static_cast<int64_t>(ids.size());
      ids.resize(static_cast<size_t>(count));
      if (fits)
        return ids;
    }
  }

  transept_tokenizer functions_;
};

Result<std::shared_ptr<const Tokenizer>> takeTokenizer(const transept_tokenizer *given) {
  if (!given)
    return std::shared_ptr<const Tokenizer>();
  transept_tokenizer functions;
  TRANSEPT_TRY(readTagged(given, functions));
  auto tokenizer = std::make_shared<ForeignTokenizer>(functions);
  if (!functions.encode || !functions.decode)
    return nullArgument("a function of the tokenizer");
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

} // namespace

const char *transept_model_tokenizer_kind(const transept_model *model) {
  if (!model || model->model->manifest().tokenizer().kind().empty())
    return "none";
  return model->model->manifest().tokenizer().kind().c_str();
}

const char *transept_model_tokenizer_config(const transept_model *model) {
  return model ? model->model->manifest().tokenizer().config_json().c_str() : "";
}

const void *transept_model_file(const transept_model *model, const char *name, size_t *bytes) {
  if (bytes)
    *bytes = 0;
  if (!model || !name)
    return nullptr;
  for (const std::string &file : model->model->manifest().tokenizer().files())
    if (file == name) {
      Span<const uint8_t> content = model->model->artifact().section(file);
      if (bytes)
        *bytes = content.size();
      return content.data();
    }
  return nullptr;
}

transept_status transept_generator_create(const transept_model *model, const transept_generator_options *options,
                                          transept_generator **generator, transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (generator)
      *generator = nullptr;
    transept_generator_options given;
    TRANSEPT_TRY(readTagged(options, given));
    TRANSEPT_ASSIGN(std::shared_ptr<const Tokenizer> tokenizer, takeTokenizer(given.tokenizer));
    if (!model || !generator)
      return nullArgument(model ? "generator" : "model");
    if (given.batch < 0)
      return {Code::Usage, "batch is negative"};
    auto handle = std::make_unique<transept_generator>();
    search::GeneratorOptions creating;
    creating.threads = given.threads;
    creating.batch = given.batch > 0 ? given.batch : creating.batch;
    creating.truncate = given.truncate != 0;
    creating.cancelled = &handle->cancelled;
    TRANSEPT_ASSIGN(handle->generator, search::Generator::create(model->model, std::move(tokenizer), creating));
    *generator = handle.release();
    return {};
  });
}

void transept_generator_free(transept_generator *generator) { delete generator; }

transept_status transept_generator_run(transept_generator *generator, const char *requests, const char **answers,
                                       transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (answers)
      *answers = nullptr;
    if (!generator || !requests || !answers)
      return nullArgument(!generator ? "generator" : requests ? "answers" : "requests");
    return exclusively(*generator, [&]() -> Status {
      TRANSEPT_ASSIGN(generator->answers, search::generate(*generator->generator, requests));
      *answers = generator->answers.c_str();
      return {};
    });
  });
}

transept_status transept_generator_submit(transept_generator *generator, const char *request, uint64_t *number,
                                          transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (!generator || !request || !number)
      return nullArgument(!generator ? "generator" : request ? "number" : "request");
    return exclusively(*generator, [&]() -> Status {
      nlohmann::json object = nlohmann::json::parse(request, nullptr, false);
      if (object.is_discarded())
        return {Code::InvalidInput, "the request is not valid JSON"};
      auto submitted = std::make_unique<transept_generator::Submitted>();
      TRANSEPT_TRY(generator->generator->parse(object, nullptr, submitted->request));
      submitted->number = *number = ++generator->submitted;
      generator->computing.push_back(std::move(submitted));
      generator->generator->submit(generator->computing.back()->request);
      return {};
    });
  });
}

transept_status transept_generator_step(transept_generator *generator, size_t *unfinished, transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (!generator)
      return nullArgument("generator");
    return exclusively(*generator, [&]() -> Status {
      TRANSEPT_TRY(generator->generator->step());
      auto &computing = generator->computing;
      for (const search::Request *request : generator->generator->collect()) {
        auto found = std::find_if(computing.begin(), computing.end(),
                                  [&](const auto &submitted) { return &submitted->request == request; });
        generator->done.push_back(std::move(*found));
        computing.erase(found);
      }
      if (unfinished)
        *unfinished = computing.size();
      return {};
    });
  });
}

transept_status transept_generator_collect(transept_generator *generator, uint64_t *number, const char **answer,
                                           transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (answer)
      *answer = nullptr;
    if (!generator || !number || !answer)
      return nullArgument(!generator ? "generator" : number ? "answer" : "number");
    return exclusively(*generator, [&]() -> Status {
      if (generator->done.empty())
        return {};
      const search::Request &request = generator->done.front()->request;
      const nlohmann::ordered_json object = request.status.ok()
                                                ? generator->generator->answer(request)
                                                : search::Generator::errorAnswer(request, request.status);
      generator->answers = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
      *number = generator->done.front()->number;
      *answer = generator->answers.c_str();
      generator->done.pop_front();
      return {};
    });
  });
}

void transept_generator_cancel(transept_generator *generator, int32_t cancel) {
  if (generator)
    generator->cancelled.store(cancel != 0, std::memory_order_relaxed);
}
