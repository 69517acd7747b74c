#include "runtime/search/Scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <numeric>

namespace transept::search {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

Status refuse(const std::string &sentence) { return {Code::InvalidInput, sentence}; }

/// Most bytes of logits of a batch, unless one request alone needs more.
constexpr int64_t logitBytes = int64_t(1) << 28;

/// The decoder's inputs: the prompt and all target tokens but the last.
std::vector<int64_t> decoderInputs(const ScoreRequest &request) {
  std::vector<int64_t> ids = request.settings.prompt();
  ids.insert(ids.end(), request.target.begin(), request.target.end() - 1);
  return ids;
}

double logSum(const float *logits, int64_t count) {
  double maximum = *std::max_element(logits, logits + count), sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += std::exp(logits[i] - maximum);
  return maximum + std::log(sum);
}

Status notFinite(size_t token) {
  return refuse("the model's logits are not finite at target token " + std::to_string(token + 1));
}

class ScoreBatch {
public:
  ScoreBatch(Generator &generator, const GeneratorOptions &options, const std::vector<ScoreRequest *> &requests)
      : generator_(generator), options_(options), requests_(requests) {}

  Status run() {
    Demand demand;
    std::vector<const Source *> sources;
    EncoderInputs &inputs = generator_.encoderInputs();
    for (ScoreRequest *request : requests_) {
      request->tokenScores.clear();
      sources.push_back(&request->source);
      demand.source = std::max(demand.source, inputs.length(request->source));
      demand.positions = std::max<int64_t>(demand.positions, decoderInputs(*request).size());
    }
    if (inputs.fixedLength())
      demand.source = inputs.fixedLength();
    demand.batch = inputs.fixedBatch() ? inputs.fixedBatch() : static_cast<int64_t>(requests_.size());
    demand.rows = demand.batch;
    TRANSEPT_TRY(generator_.stepper().prepare(demand));
    TRANSEPT_ASSIGN(RunArguments arguments, inputs.assemble(sources, demand.batch, demand.source));
    bool weighs = requests_[0]->settings.returnAlignments != Alignments::None; // all of a batch, or none
    return generator_.generation().score().empty() || weighs ? stepwise(arguments, weighs) : atOnce(arguments, demand);
  }

private:
  Status atOnce(RunArguments &arguments, const Demand &demand) {
    std::vector<int64_t> ids(demand.batch * demand.positions);
    for (int64_t slot = 0; slot < demand.batch; ++slot) {
      std::vector<int64_t> own = decoderInputs(*requests_[slot < static_cast<int64_t>(requests_.size()) ? slot : 0]);
      std::copy(own.begin(), own.end(), ids.begin() + slot * demand.positions);
      // Later positions do not influence earlier ones; any token will do.
      std::fill(ids.begin() + slot * demand.positions + own.size(), ids.begin() + (slot + 1) * demand.positions,
                own.back());
    }
    std::vector<int64_t> dims = {demand.batch, demand.positions};
    arguments.inputs.push_back(
        {"decoder_input_ids", program::I64, dims, ids.data(), static_cast<int64_t>(ids.size() * sizeof(int64_t))});
    Session &session = *generator_.stepper().session();
    TRANSEPT_TRY(session.run(generator_.generation().score(), arguments));
    TensorView output = session.output("logits");
    const float *logits = output.as<float>();
    int64_t vocabulary = generator_.generation().vocabulary();
    if (!logits || output.dims.size() != 3 || output.dims[0] != demand.batch || output.dims[1] != demand.positions ||
        output.dims[2] != vocabulary)
      return {Code::ArtifactRefused, "the artifact's entry '" + generator_.generation().score() +
                                         "' has no output 'logits' [batch, target, vocabulary]"};
    for (size_t slot = 0; slot < requests_.size(); ++slot) {
      ScoreRequest &request = *requests_[slot];
      int64_t first = static_cast<int64_t>(request.settings.prompt().size()) - 1;
      for (size_t i = 0; i < request.target.size(); ++i) {
        const float *row =
            logits + (static_cast<int64_t>(slot) * demand.positions + first + static_cast<int64_t>(i)) * vocabulary;
        double score = row[request.target[i]] - logSum(row, vocabulary);
        if (std::isnan(score) && request.status.ok())
          request.status = notFinite(i);
        request.tokenScores.push_back(score);
        if (request.onLogits)
          request.onLogits(row, vocabulary);
      }
    }
    return Status::success();
  }

  Status stepwise(const RunArguments &arguments, bool weighs) {
    SessionStepper &stepper = generator_.stepper();
    TRANSEPT_TRY(stepper.encode(arguments));
    std::vector<std::vector<int64_t>> ids;
    size_t longest = 0;
    for (const ScoreRequest *request : requests_) {
      ids.push_back(decoderInputs(*request));
      longest = std::max(longest, ids.back().size());
    }
    std::vector<int32_t> rowOf(requests_.size(), -1), kept(requests_.size(), -1);
    std::vector<AlignmentLog> logs;
    for (const ScoreRequest *request : requests_)
      logs.emplace_back(request->settings.returnAlignments);
    // Without a cache a step may begin anywhere, but all rows need the same length.
    for (size_t length = 1; length <= longest; ++length) {
      if (options_.cancelled && options_.cancelled->load(std::memory_order_relaxed))
        return {Code::Cancelled, "interrupted"};
      std::vector<StepRow> rows;
      std::vector<int32_t> wanted(requests_.size(), -1);
      for (size_t i = 0; i < requests_.size(); ++i) {
        if (length > ids[i].size())
          continue;
        int64_t target = static_cast<int64_t>(length) - static_cast<int64_t>(requests_[i]->settings.prompt().size());
        if (target >= 0)
          wanted[i] = static_cast<int32_t>(requests_[i]->target[target]);
        int32_t parent = rowOf[i];
        rowOf[i] = static_cast<int32_t>(rows.size());
        rows.push_back(
            {{ids[i].data(), length}, static_cast<int32_t>(i), parent, {&wanted[i], wanted[i] >= 0 ? size_t(1) : 0}});
      }
      TRANSEPT_TRY(stepper.step(rows, {weighs, false}));
      for (size_t i = 0; i < requests_.size(); ++i)
        if (wanted[i] >= 0) {
          if (weighs)
            kept[i] = logs[i].keep(stepper, rowOf[i], sourceLength(*requests_[i]), kept[i]);
          StepResult result = stepper.result(rowOf[i]);
          if (!result.finite && requests_[i]->status.ok())
            requests_[i]->status = notFinite(requests_[i]->tokenScores.size());
          requests_[i]->tokenScores.push_back(result.specials[0] - result.logSum);
        }
    }
    for (size_t i = 0; i < requests_.size(); ++i)
      if (weighs)
        requests_[i]->alignment = logs[i].upTo(kept[i]);
    return Status::success();
  }

  /// Source positions that are no padding.
  static int64_t sourceLength(const ScoreRequest &request) {
    return request.source.tensors.empty() ? static_cast<int64_t>(request.source.ids.size())
                                          : std::numeric_limits<int64_t>::max();
  }

  Generator &generator_;
  const GeneratorOptions &options_;
  const std::vector<ScoreRequest *> &requests_;
};

Status runBatch(Generator &generator, const GeneratorOptions &options, const std::vector<ScoreRequest *> &batch) {
  Status status;
  try {
    status = ScoreBatch(generator, options, batch).run();
  } catch (const std::bad_alloc &) {
    status = {Code::OutOfMemory, "no memory for a batch of " + std::to_string(batch.size()) + " requests"};
  }
  if (status.ok() || status.code() == Code::Cancelled)
    return status;
  if (batch.size() == 1) {
    batch[0]->status = status;
    return Status::success();
  }
  for (ScoreRequest *request : batch)
    TRANSEPT_TRY(runBatch(generator, options, {request}));
  return Status::success();
}

} // namespace

/// What a request for a score may hold: its source, and what the decoder is fed.
static bool appliesToScores(const std::string &key) {
  static constexpr const char *keys[] = {"text",
                                         "input_ids",
                                         "inputs",
                                         "id",
                                         "decoder_start_token_id",
                                         "decoder_input_ids",
                                         "eos_token_id",
                                         "pad_token_id",
                                         "bos_token_id",
                                         "return_alignments",
                                         "source_lang",
                                         "target_lang",
                                         "language",
                                         "task"};
  return std::any_of(std::begin(keys), std::end(keys), [&](const char *known) { return key == known; });
}

Status parseScore(const Generator &generator, const json &object, const json &flags, ScoreRequest &request) {
  if (!object.is_object())
    return refuse("a request must be a JSON object");
  json rest = object;
  rest.erase("target");
  rest.erase("target_ids");
  TRANSEPT_TRY(generator.parse(rest, flags, request));
  for (const auto &[key, value] : rest.items())
    if (!appliesToScores(key) && !value.is_null())
      return refuse("'" + printable(key, 60) + "' has no meaning for the score of a given output; leave it out");
  if (object.contains("target") == object.contains("target_ids"))
    return refuse("give one of 'target' and 'target_ids'");
  std::vector<int64_t> prompt = request.settings.prompt();
  if (object.contains("target")) {
    if (!object["target"].is_string())
      return refuse("'target' must be a string");
    TRANSEPT_TRY(generator.textRefusal("target_ids"));
    TRANSEPT_ASSIGN(request.target,
                    generator.tokenizer()->encodeTarget(object["target"].get<std::string>(), request.languages));
  } else {
    const json &ids = object["target_ids"];
    int64_t vocabulary = generator.generation().vocabulary();
    if (!ids.is_array())
      return refuse("'target_ids' must be a list of token ids");
    for (const json &id : ids) {
      if (!id.is_number_integer() || (id.is_number_unsigned() && id.get<uint64_t>() > INT32_MAX) ||
          id.get<int64_t>() < 0 || id.get<int64_t>() >= vocabulary)
        return refuse("'target_ids' has an element that is no token id below " + std::to_string(vocabulary) +
                      " at index " + std::to_string(request.target.size()));
      request.target.push_back(id.get<int64_t>());
    }
    if (request.target.size() > prompt.size() && std::equal(prompt.begin(), prompt.end(), request.target.begin()))
      request.target.erase(request.target.begin(), request.target.begin() + prompt.size());
  }
  if (request.target.empty())
    return refuse("'target_ids' is empty");
  int64_t positions = generator.generation().position_limit(),
          needed = static_cast<int64_t>(prompt.size() + request.target.size()) - 1;
  if (positions > 0 && needed > positions)
    return {Code::LimitExceeded, "the target needs " + std::to_string(needed) + " decoder positions, the model has " +
                                     std::to_string(positions)};
  request.outputTokens = static_cast<int64_t>(request.target.size());
  return Status::success();
}

Status runScores(Generator &generator, const GeneratorOptions &options, const std::vector<ScoreRequest *> &requests) {
  EncoderInputs &inputs = generator.encoderInputs();
  std::map<std::string, std::vector<ScoreRequest *>> groups;
  for (ScoreRequest *request : requests)
    if (request->status.ok())
      groups[inputs.shapeKey(request->source) +
             (request->settings.returnAlignments != Alignments::None ? " alignments" : "")]
          .push_back(request);
  for (auto &group : groups) {
    std::vector<ScoreRequest *> &members = group.second;
    std::vector<size_t> order(members.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      auto key = [&](size_t i) { return std::make_tuple(members[i]->inputTokens, members[i]->target.size(), i); };
      return key(a) < key(b);
    });
    std::vector<ScoreRequest *> batch;
    size_t longest = 0;
    int64_t most = inputs.fixedBatch() ? std::min(options.batch, inputs.fixedBatch()) : options.batch;
    auto flush = [&]() -> Status {
      Status status = batch.empty() ? Status() : runBatch(generator, options, batch);
      batch.clear();
      longest = 0;
      return status;
    };
    for (size_t i : order) {
      size_t length = std::max(longest, decoderInputs(*members[i]).size());
      int64_t bytes = static_cast<int64_t>((batch.size() + 1) * length) * generator.generation().vocabulary() * 4;
      if (static_cast<int64_t>(batch.size()) == most || (!batch.empty() && bytes > logitBytes))
        TRANSEPT_TRY(flush());
      longest = std::max(longest, decoderInputs(*members[i]).size());
      batch.push_back(members[i]);
    }
    TRANSEPT_TRY(flush());
  }
  return Status::success();
}

ordered_json scoreAnswer(const ScoreRequest &request) {
  ordered_json answer;
  if (!request.id.is_null())
    answer["id"] = request.id;
  answer["score"] = std::accumulate(request.tokenScores.begin(), request.tokenScores.end(), 0.0);
  answer["token_scores"] = request.tokenScores;
  answer["input_tokens"] = request.inputTokens;
  answer["output_tokens"] = request.outputTokens;
  if (request.settings.returnAlignments != Alignments::None)
    answer["alignments"] = request.alignment.toJson();
  return answer;
}

} // namespace transept::search
