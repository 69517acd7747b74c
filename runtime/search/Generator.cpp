#include "runtime/search/Generator.h"

#include <algorithm>

namespace transept::search {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

Status refuse(const std::string &sentence) { return {Code::InvalidInput, sentence}; }

bool isRequestKey(const std::string &key) {
  return key == "id" || key == "text" || key == "input_ids" || key == "inputs";
}

} // namespace

Generator::Generator(std::shared_ptr<const Model> model, std::shared_ptr<const Tokenizer> tokenizer,
                     GeneratorOptions options, EncoderInputs inputs)
    : model_(model), tokenizer_(std::move(tokenizer)), options_(std::move(options)), inputs_(std::move(inputs)),
      stepper_(std::move(model), options_.threads, options_.ahead),
      scheduler_(inputs_, stepper_, {options_.batch, options_.batchTokens}, options_.cancelled) {}

Result<std::unique_ptr<Generator>> Generator::create(std::shared_ptr<const Model> model,
                                                     std::shared_ptr<const Tokenizer> tokenizer,
                                                     GeneratorOptions options) {
  const program::Manifest &manifest = model->manifest();
  if (!manifest.has_generation())
    return Status(Code::InvalidInput, "the artifact is a plain graph without a generation program; use 'transept run'");
  if (manifest.generation().vocabulary() < 1 || manifest.generation().vocabulary() > (1 << 24))
    return Status(Code::ArtifactRefused, "the artifact states an impossible vocabulary of " +
                                             std::to_string(manifest.generation().vocabulary()));
  TRANSEPT_ASSIGN(EncoderInputs inputs, EncoderInputs::create(manifest));
  std::unique_ptr<Generator> generator(
      new Generator(std::move(model), std::move(tokenizer), std::move(options), std::move(inputs)));
  const program::Generation &generation = generator->generation();
  if (!generation.settings_json().empty()) {
    json settings = json::parse(generation.settings_json(), nullptr, false);
    if (!settings.is_object())
      return Status(Code::ArtifactRefused, "the artifact's generation settings are no JSON object");
    for (const auto &[key, value] : settings.items())
      if (ControlTable::isData(key))
        continue;
      else if (Status status = applySetting(generator->defaults_, key, value, Origin::Model); !status.ok())
        return Status(Code::ArtifactRefused, "the artifact's generation settings: " + status.message());
    generator->controls_ = ControlTable::create(settings, generator->defaults_.decoderStartTokenId);
  }
  generator->refused_.assign(generation.refused_settings().begin(), generation.refused_settings().end());
  return generator;
}

Status Generator::applySettings(const json &object, const json &flags, Settings &settings, Controls &controls) const {
  settings = defaults_;
  json given = json::object();
  if (flags.is_object())
    given = flags;
  for (const auto &[key, value] : object.items())
    if (!isRequestKey(key))
      given[key] = value;
  TRANSEPT_ASSIGN(controls, controls_.take(given, tokenizer_.get()));
  for (const auto &[key, value] : controls.settings.items())
    if (!given.contains(key))
      TRANSEPT_TRY(applySetting(settings, key, value, Origin::Model));
  // A key the model brings and nobody knows can still be switched off.
  auto isRefused = [&](const std::string &key) {
    return std::any_of(refused_.begin(), refused_.end(),
                       [&](const std::string &setting) { return setting.compare(0, key.size() + 1, key + "=") == 0; });
  };
  for (const auto &[key, value] : given.items())
    if (!value.is_null() || !isRefused(key))
      TRANSEPT_TRY(applySetting(settings, key, value, Origin::Request));
  TRANSEPT_TRY(checkRefusedSettings(refused_, given, settings.doSample));
  for (const char *key : {"temperature", "top_k", "top_p", "seed"})
    if (!settings.doSample && given.contains(key) && !given[key].is_null())
      return refuse("'" + std::string(key) + "' has no meaning without 'do_sample'");
  if (settings.returnAlignments != Alignments::None && !stepper_.attentionLayers())
    return refuse("'return_alignments' is not possible: the artifact reports no attention over the source");
  // Without an encoder, the prompt is still to come.
  return inputs_.any() ? checkSettings(settings, generation().vocabulary(), positions()) : Status::success();
}

Status Generator::readPrompt(const json &object, Request &request) const {
  if (object.contains("inputs"))
    return refuse("the model has no encoder that would take 'inputs'; send 'input_ids'");
  Settings &settings = request.settings;
  if (!settings.decoderInputIds.empty())
    return refuse("the model has no encoder: 'input_ids' is what it continues, leave out 'decoder_input_ids'");
  if (settings.encoderNoRepeatNgramSize > 0)
    return refuse("'encoder_no_repeat_ngram_size' has no meaning for a model without an encoder");
  for (int64_t id : request.source.ids)
    if (id >= generation().vocabulary())
      return refuse("'input_ids' has token " + std::to_string(id) + ", the vocabulary has " +
                    std::to_string(generation().vocabulary()));
  if (request.source.ids.empty())
    return refuse("'input_ids' is empty");
  settings.decoderStartTokenId.reset();
  settings.decoderInputIds = std::move(request.source.ids);
  request.source.ids.clear();
  request.inputTokens = static_cast<int64_t>(settings.decoderInputIds.size());
  return checkSettings(settings, generation().vocabulary(), positions());
}

Status Generator::limitSource(Request &request, bool fromText) const {
  int64_t limit = generation().source_limit(), length = inputs_.length(request.source);
  request.inputTokens = inputs_.tokens(request.source);
  if (limit <= 0 || length <= limit)
    return Status::success();
  if (!options_.truncate || !request.source.tensors.empty())
    return {Code::LimitExceeded,
            "the input has " + std::to_string(length) + (request.source.tensors.empty() ? " tokens" : " positions") +
                ", the model takes " + std::to_string(limit) + "; shorten it or use --overlong truncate"};
  std::vector<int64_t> &ids = request.source.ids;
  // What stands behind every text stays.
  bool ends = std::find(request.settings.eosTokenId.begin(), request.settings.eosTokenId.end(), ids.back()) !=
              request.settings.eosTokenId.end();
  int64_t kept = std::min(limit, std::max<int64_t>(fromText ? tokenizer_->sourceSuffix() : 0, ends ? 1 : 0));
  ids.erase(ids.begin() + (limit - kept), ids.end() - kept);
  request.truncatedTokens = length - limit;
  request.inputTokens = limit;
  return Status::success();
}

Status Generator::textRefusal(const char *instead) const {
  if (tokenizer_)
    return Status::success();
  return options_.noTokenizer.ok() ? refuse(std::string("the artifact has no tokenizer; send '") + instead + "'")
                                   : options_.noTokenizer;
}

Status Generator::readSource(const json &object, const Controls &controls, Request &request) const {
  int given = object.contains("text") + object.contains("input_ids") + object.contains("inputs");
  if (given != 1)
    return refuse(given ? "give only one of 'text', 'input_ids' and 'inputs'"
                        : "the request has none of 'text', 'input_ids' and 'inputs'");
  if (!object.contains("text") && !(controls.prefix.empty() && controls.languages.source.empty()))
    return refuse(std::string("'") + (controls.prefix.empty() ? "source_lang" : "task") +
                  "' changes the text of a source; give the source as 'text'");
  if (object.contains("text")) {
    if (!object["text"].is_string())
      return refuse("'text' must be a string");
    TRANSEPT_TRY(textRefusal("input_ids"));
    TRANSEPT_ASSIGN(request.source.ids,
                    tokenizer_->encodeSource(controls.prefix + object["text"].get<std::string>(), controls.languages));
  } else if (object.contains("input_ids")) {
    const json &ids = object["input_ids"];
    if (!ids.is_array())
      return refuse("'input_ids' must be a list of token ids");
    for (const json &id : ids) {
      if (!id.is_number_integer() || (id.is_number_unsigned() && id.get<uint64_t>() > INT32_MAX) ||
          id.get<int64_t>() < 0)
        return refuse("'input_ids' has an element that is no token id at index " +
                      std::to_string(request.source.ids.size()));
      request.source.ids.push_back(id.get<int64_t>());
    }
  } else if (inputs_.any()) {
    if (!object["inputs"].is_string())
      return refuse("'inputs' must be the path of an .npz file");
    if (!options_.readInputs)
      return refuse("'inputs' is not available here; send 'input_ids'");
    TRANSEPT_ASSIGN(request.source.tensors, options_.readInputs(object["inputs"].get<std::string>()));
  }
  if (!inputs_.any())
    return readPrompt(object, request);
  TRANSEPT_TRY(inputs_.check(request.source));
  if (request.settings.encoderNoRepeatNgramSize > 0 && !request.source.tensors.empty())
    return refuse("'encoder_no_repeat_ngram_size' needs a source given as 'text' or 'input_ids'");
  TRANSEPT_TRY(limitSource(request, object.contains("text")));
  return applyShortlist(request);
}

Status Generator::applyShortlist(Request &request) const {
  Settings &settings = request.settings;
  if (!options_.shortlist || !settings.allowedTokenIds.empty())
    return Status::success();
  if (!request.source.tensors.empty())
    return refuse("a shortlist needs a source given as 'text' or 'input_ids'");
  settings.allowedTokenIds = options_.shortlist->candidates(request.source.ids);
  if (settings.allowedTokenIds.empty()) // an empty list would allow all
    settings.allowedTokenIds = settings.eosTokenId;
  if (settings.allowedTokenIds.empty())
    return refuse("the shortlist has no candidates for this source, and there is no end token");
  return Status::success();
}

Status Generator::parse(const json &object, const json &flags, Request &request) const {
  if (!object.is_object())
    return refuse("a request must be a JSON object");
  if (object.contains("id")) {
    const json &id = object["id"];
    if (id.is_structured())
      return refuse("'id' must be a string, a number, true, false or null");
    request.id = id;
  }
  Controls controls;
  TRANSEPT_TRY(applySettings(object, flags, request.settings, controls));
  request.languages = controls.languages;
  return readSource(object, controls, request);
}

Status Generator::parseText(const std::string &text, const json &flags, Request &request) const {
  return parse(json{{"text", text}}, flags, request);
}

Status Generator::run(const std::vector<Request *> &requests) {
  for (Request *request : requests)
    if (request->status.ok())
      scheduler_.add(*request, /*open=*/false);
  Status status;
  while (status.ok() && scheduler_.closed() > 0)
    status = scheduler_.step();
  if (!status.ok())
    scheduler_.forgetClosed();
  return status;
}

ordered_json Generator::answer(const Request &request) const {
  ordered_json answer;
  if (!request.id.is_null())
    answer["id"] = request.id;
  answer["hypotheses"] = ordered_json::array();
  for (const Hypothesis &hypothesis : request.hypotheses) {
    ordered_json entry;
    entry["ids"] = hypothesis.ids;
    entry["score"] = hypothesis.score ? ordered_json(*hypothesis.score) : ordered_json(nullptr);
    if (request.settings.returnTokenScores)
      entry["token_scores"] = hypothesis.tokenScores;
    if (tokenizer_)
      entry["text"] = tokenizer_->decode(hypothesis.ids);
    entry["finish"] = finishName(hypothesis.finish);
    if (request.settings.returnAlignments != Alignments::None)
      entry["alignments"] = hypothesis.alignment.toJson();
    answer["hypotheses"].push_back(std::move(entry));
  }
  answer["input_tokens"] = request.inputTokens;
  answer["output_tokens"] = request.outputTokens;
  return answer;
}

ordered_json Generator::errorAnswer(const Request &request, const Status &status) {
  ordered_json answer;
  if (!request.id.is_null())
    answer["id"] = request.id;
  answer["error"] = {{"code", status.exitCode()}, {"message", status.message()}};
  return answer;
}

Result<std::string> generate(Generator &generator, const std::string &text) {
  json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded())
    return refuse("the request is not valid JSON");
  bool single = !parsed.is_array();
  std::vector<Request> requests(single ? 1 : parsed.size());
  std::vector<Request *> pointers;
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].status = generator.parse(single ? parsed : parsed[i], nullptr, requests[i]);
    pointers.push_back(&requests[i]);
  }
  TRANSEPT_TRY(generator.run(pointers));
  ordered_json answers = ordered_json::array();
  for (const Request &request : requests) {
    if (single && !request.status.ok())
      return request.status;
    answers.push_back(request.status.ok() ? generator.answer(request)
                                          : Generator::errorAnswer(request, request.status));
  }
  return (single ? answers[0] : answers).dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace transept::search
