//===- Accuracy.cpp - what a precision costs ----------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/Accuracy.h"
#include "frontend/FileBytes.h"
#include "runtime/search/Scorer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;
namespace runtime = ::transept;
using nlohmann::json;
using runtime::search::Generator;
using runtime::search::Request;
using runtime::search::ScoreRequest;

namespace {

constexpr uint64_t inputLimit = 64u << 20;
/// Inputs computed together; the logits of all of them are held at a time.
constexpr int64_t batch = 4;

constexpr const char *sentences[] = {
    "The meeting was moved to Thursday because two of the speakers could not attend.",
    "She opened the window and looked out over the quiet street.",
    "How much does a ticket to the museum cost for children under twelve?",
    "In 1969 three astronauts travelled to the Moon, and two of them walked on it.",
    "Please restart the computer after the installation has finished.",
    "The committee rejected the proposal by a vote of seven to five.",
    "I have never seen such a beautiful garden in the middle of a city.",
    "Water boils at a lower temperature on high mountains than at sea level.",
    "We are looking for an experienced engineer who speaks French and German.",
    "If it rains tomorrow, the match will be played next week instead.",
    "The old bridge, which had been closed for years, was finally repaired.",
    "Prices rose by 3.4 percent in April, more than most experts had expected.",
};

Failure failureOf(const runtime::Status &status) { return {status.exitCode(), status.message(), {}}; }

Outcome<std::vector<json>> readInputs(const std::string &path) {
  std::vector<json> objects;
  if (path == bundledInputs) {
    for (const char *sentence : sentences)
      objects.push_back({{"text", sentence}});
    return objects;
  }
  Outcome<std::string> content = readWholeFile(path, inputLimit);
  if (!content)
    return std::move(content.failure());
  SmallVector<StringRef> lines;
  StringRef(*content).split(lines, '\n');
  for (auto [number, line] : llvm::enumerate(lines)) {
    line.consume_back("\r");
    if (line.empty())
      continue;
    json object = line.starts_with("{") ? json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false)
                                        : json{{"text", line.str()}};
    if (object.is_discarded())
      return Failure{ExitInputs, printable(path) + ": line " + std::to_string(number + 1) + " is not valid JSON", {}};
    objects.push_back(std::move(object));
  }
  if (objects.empty())
    return Failure{ExitInputs, printable(path) + ": has no lines", {}};
  return objects;
}

Outcome<std::unique_ptr<Generator>> open(const std::string &path) {
  auto model = runtime::Model::load(path);
  if (!model.ok())
    return failureOf(model.status());
  const runtime::program::Manifest &manifest = (*model)->manifest();
  if (!manifest.has_generation() || manifest.generation().score().empty())
    return Failure{ExitUnsupported,
                   "accuracy is measured with the entry for teacher forcing, and this program has none; compile it "
                   "without --accuracy",
                   {}};
  std::shared_ptr<const runtime::Tokenizer> tokenizer;
  runtime::search::GeneratorOptions options;
  options.batch = batch;
  if (const runtime::program::Tokenizer &kind = manifest.tokenizer(); !kind.kind().empty() && kind.kind() != "none") {
    std::vector<runtime::TokenizerFile> files;
    for (const std::string &name : kind.files()) {
      runtime::Span<const uint8_t> bytes = (*model)->artifact().section(name);
      files.push_back({name.substr(name.rfind('/') + 1), {reinterpret_cast<const char *>(bytes.data()), bytes.size()}});
    }
    auto made = runtime::makeTokenizer(kind.kind(), files, kind.config_json());
    options.noTokenizer = made.status();
    if (made.ok())
      tokenizer = made.take();
  }
  auto generator = Generator::create(*model, std::move(tokenizer), std::move(options));
  if (!generator.ok())
    return failureOf(generator.status());
  return generator.take();
}

/// Log-probabilities from logits, in double precision.
void logProbabilities(const float *logits, int64_t count, std::vector<double> &result) {
  double maximum = *std::max_element(logits, logits + count), sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += std::exp(logits[i] - maximum);
  result.resize(count);
  for (int64_t i = 0; i < count; ++i)
    result[i] = logits[i] - maximum - std::log(sum);
}

class Comparison {
public:
  Comparison(Generator &reference, Generator &candidate) : reference(reference), candidate(candidate) {}

  runtime::Status add(ArrayRef<json> objects);
  AccuracyReport report() const;

private:
  using Logits = std::vector<std::vector<float>>;
  /// Greedy outputs, prompt included; texts with a target are counted.
  runtime::Status generate(Generator &generator, ArrayRef<json> objects, std::vector<std::vector<int64_t>> &outputs,
                           TextScores &texts);
  runtime::Status score(Generator &generator, ArrayRef<json> objects, std::vector<Logits> &logits);
  void compare(const std::vector<float> &exact, const std::vector<float> &other);

  Generator &reference, &candidate;
  AccuracyReport sums;
  double squaredErrors = 0, squares = 0, divergence = 0;
  int64_t logitCount = 0;
  std::vector<double> exactLog, otherLog;
};

runtime::Status Comparison::generate(Generator &generator, ArrayRef<json> objects,
                                     std::vector<std::vector<int64_t>> &outputs, TextScores &texts) {
  const json greedy = {{"num_beams", 1}, {"do_sample", false}, {"num_return_sequences", 1}};
  std::vector<Request> requests(objects.size());
  std::vector<Request *> pointers;
  for (auto [object, request] : llvm::zip(objects, requests)) {
    json source = object;
    source.erase("target");
    source.erase("target_ids");
    TRANSEPT_TRY(generator.parse(source, greedy, request));
    pointers.push_back(&request);
  }
  TRANSEPT_TRY(generator.run(pointers));
  for (auto [object, request] : llvm::zip(objects, requests)) {
    TRANSEPT_TRY(request.status);
    outputs.push_back(request.hypotheses.empty() ? std::vector<int64_t>() : request.hypotheses.front().ids);
    auto target = object.find("target");
    if (target == object.end() || !target->is_string()) // what is wrong with it, scoring says
      continue;
    const nlohmann::ordered_json answer = generator.answer(request);
    if (const nlohmann::ordered_json::json_pointer text("/hypotheses/0/text"); answer.contains(text))
      texts.add(answer[text].get_ref<const std::string &>(), target->get_ref<const std::string &>());
  }
  return {};
}

runtime::Status Comparison::score(Generator &generator, ArrayRef<json> objects, std::vector<Logits> &logits) {
  std::vector<ScoreRequest> requests(objects.size());
  logits.resize(objects.size());
  std::vector<ScoreRequest *> pointers;
  for (auto [i, request] : llvm::enumerate(requests)) {
    TRANSEPT_TRY(parseScore(generator, objects[i], json::object(), request));
    request.onLogits = [&rows = logits[i]](const float *row, int64_t vocabulary) {
      rows.emplace_back(row, row + vocabulary);
    };
    pointers.push_back(&request);
  }
  runtime::search::GeneratorOptions options;
  options.batch = batch;
  TRANSEPT_TRY(runScores(generator, options, pointers));
  for (const ScoreRequest &request : requests)
    TRANSEPT_TRY(request.status);
  return {};
}

runtime::Status Comparison::add(ArrayRef<json> objects) {
  std::vector<std::vector<int64_t>> expected, found;
  TRANSEPT_TRY(generate(reference, objects, expected, sums.exactTexts));
  TRANSEPT_TRY(generate(candidate, objects, found, sums.otherTexts));
  std::vector<json> pairs;
  for (auto [i, object] : llvm::enumerate(objects)) {
    ++sums.inputs;
    sums.sameOutputs += expected[i] == found[i];
    json &pair = pairs.emplace_back(object);
    if (!pair.contains("target") && !pair.contains("target_ids"))
      pair["target_ids"] = expected[i];
  }
  std::vector<Logits> exact, other;
  TRANSEPT_TRY(score(reference, pairs, exact));
  TRANSEPT_TRY(score(candidate, pairs, other));
  for (auto [exactRows, otherRows] : llvm::zip(exact, other))
    for (auto [exactRow, otherRow] : llvm::zip(exactRows, otherRows))
      compare(exactRow, otherRow);
  return {};
}

void Comparison::compare(const std::vector<float> &exact, const std::vector<float> &other) {
  const int64_t count = exact.size();
  logProbabilities(exact.data(), count, exactLog);
  logProbabilities(other.data(), count, otherLog);
  double kl = 0, mean = 0;
  for (int64_t i = 0; i < count; ++i) {
    // A token that fp32 excludes adds nothing.
    if (double probability = std::exp(exactLog[i]); probability > 0)
      kl += probability * (exactLog[i] - otherLog[i]);
    mean += exact[i];
    double error = static_cast<double>(other[i]) - exact[i];
    if (!std::isfinite(error))
      continue; // both are -inf, or the divergence shows it
    squaredErrors += error * error;
    sums.maxError = std::max(sums.maxError, std::fabs(error));
  }
  mean /= count;
  for (float logit : exact)
    if (std::isfinite(logit))
      squares += (logit - mean) * (logit - mean);
  logitCount += count;
  divergence += kl;
  sums.maxDivergence = std::max(sums.maxDivergence, kl);
  sums.sameTokens += std::max_element(exact.begin(), exact.end()) - exact.begin() ==
                     std::max_element(other.begin(), other.end()) - other.begin();
  ++sums.tokens;
}

AccuracyReport Comparison::report() const {
  AccuracyReport result = sums;
  if (sums.tokens == 0)
    return result;
  result.meanDivergence = divergence / sums.tokens;
  result.rmsError = std::sqrt(squaredErrors / logitCount);
  result.deviation = std::sqrt(squares / logitCount);
  return result;
}

} // namespace

Outcome<AccuracyReport> mlir::transept::measureAccuracy(const std::string &reference, const std::string &candidate,
                                                        const std::string &inputs) {
  Outcome<std::vector<json>> objects = readInputs(inputs);
  if (!objects)
    return std::move(objects.failure());
  Outcome<std::unique_ptr<Generator>> exact = open(reference), other = open(candidate);
  if (!exact)
    return std::move(exact.failure());
  if (!other)
    return std::move(other.failure());
  Comparison comparison(**exact, **other);
  for (ArrayRef<json> left = *objects; !left.empty(); left = left.drop_front(std::min<size_t>(batch, left.size())))
    if (runtime::Status status = comparison.add(left.take_front(batch)); !status.ok())
      return Failure{status.exitCode(), printable(inputs) + ": " + status.message(), {}};
  return comparison.report();
}

/// "; against 20 targets ...", or nothing where there are none.
static std::string textsAsText(const AccuracyReport &report) {
  const TextScores &exact = report.exactTexts, &other = report.otherTexts;
  if (exact.pairs() == 0)
    return "";
  return llvm::formatv(
             "; against {0} targets the word error rate is {1:p2} (fp32 {2:p2}) and BLEU {3:f2} (fp32 {4:f2})",
             exact.pairs(), other.wordErrorRate(), exact.wordErrorRate(), other.bleu(), exact.bleu())
      .str();
}

std::string mlir::transept::accuracyAsText(const AccuracyReport &report) {
  return llvm::formatv(
             "divergence from fp32 {0:f6} nats per token (largest {1:f4}); logits differ by {2:f4} (root mean "
             "square; largest {3:f4}) and deviate by {4:f4}; {5} of {6} tokens and {7} of {8} outputs agree",
             report.meanDivergence, report.maxDivergence, report.rmsError, report.maxError, report.deviation,
             report.sameTokens, report.tokens, report.sameOutputs, report.inputs)
             .str() +
         textsAsText(report);
}
