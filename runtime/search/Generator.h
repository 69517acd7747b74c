// Requests in, hypotheses out: settings, tokenizer and searches over one model.
#ifndef TRANSEPT_RUNTIME_SEARCH_GENERATOR_H
#define TRANSEPT_RUNTIME_SEARCH_GENERATOR_H

#include "runtime/Model.h"
#include "runtime/search/Controls.h"
#include "runtime/search/Request.h"
#include "runtime/search/Scheduler.h"
#include "runtime/search/SessionStepper.h"
#include "runtime/search/Settings.h"
#include "runtime/search/Shortlist.h"
#include "runtime/search/Source.h"
#include "runtime/text/Tokenizer.h"

#include <nlohmann/json.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace transept::search {

struct GeneratorOptions {
  int threads = 0;         // as in SessionOptions
  int64_t batch = 16;      // most requests in a step
  int64_t batchTokens = 0; // most source tokens of them, padding counted; 0: no limit. See BatchLimits
  int32_t ahead = 8;       // most steps of a greedy search that a device which can computes at once
  bool truncate = false;   // cut sources that are too long, instead of refusing them
  /// Reads the file a request names under "inputs"; without it such requests are refused.
  std::function<Result<std::vector<SourceTensor>>(const std::string &path)> readInputs;
  /// What a source may become, for requests without allowed_token_ids; null: anything.
  std::shared_ptr<const Shortlist> shortlist;
  const std::atomic<bool> *cancelled = nullptr;
  Status noTokenizer; // why there is none, where the model brings one that cannot be used; texts are refused with it
};

/// One thread at a time. Answers do not depend on what else is in a batch.
class Generator {
public:
  /// `tokenizer` may be null: requests then need ids. Refuses models without a generation program.
  static Result<std::unique_ptr<Generator>>
  create(std::shared_ptr<const Model> model, std::shared_ptr<const Tokenizer> tokenizer, GeneratorOptions options);

  /// Reads a request: "text", "input_ids" or "inputs" (without an encoder, "text" or "input_ids" is what the model
  /// continues), optionally "id", and settings over `flags` (an object of
  /// settings, may be null) over the model's own. Fails with Code::InvalidInput, or Code::LimitExceeded for a source
  /// too long. `id` is set even where the rest fails, if there is one.
  Status parse(const nlohmann::json &object, const nlohmann::json &flags, Request &request) const;
  /// A request for a text alone.
  Status parseText(const std::string &text, const nlohmann::json &flags, Request &request) const;

  /// Answers all requests whose status is ok; each gets its own status. Fails only on cancellation.
  Status run(const std::vector<Request *> &requests);

  /// Continuous batching: requests join those that are computed between two steps. `request`, whose status is ok, must
  /// stay where it is until collect() returns it or forget() was called.
  void submit(Request &request) { scheduler_.add(request, /*open=*/true); }
  /// One step of all requests that are computed, after waiting ones have joined; does nothing where there are none.
  /// Fails only on cancellation, after which it may be called again.
  Status step() { return scheduler_.step(); }
  /// Submitted requests that are done since the last call, each with its own status.
  std::vector<Request *> collect() { return scheduler_.collect(); }
  /// Drops all requests that were submitted and not collected.
  void forget() { scheduler_.forget(); }
  const SchedulerCounts &counts() const { return scheduler_.counts(); }
  /// See Scheduler.
  void observeSteps(std::function<void(int64_t)> observer) { scheduler_.observeSteps(std::move(observer)); }

  /// {"id", "hypotheses": [{"ids", "score", "text", "finish", "alignments"}], "input_tokens", "output_tokens"}
  nlohmann::ordered_json answer(const Request &request) const;
  /// {"id", "error": {"code", "message"}}
  static nlohmann::ordered_json errorAnswer(const Request &request, const Status &status);

  const Tokenizer *tokenizer() const { return tokenizer_.get(); }
  /// Why a text cannot be taken; ok where it can.
  Status textRefusal(const char *instead) const;
  const Model &model() const { return *model_; }
  const program::Generation &generation() const { return model_->manifest().generation(); }
  EncoderInputs &encoderInputs() { return inputs_; }
  SessionStepper &stepper() { return stepper_; }
  const Settings &defaults() const { return defaults_; }

private:
  Generator(std::shared_ptr<const Model> model, std::shared_ptr<const Tokenizer> tokenizer, GeneratorOptions options,
            EncoderInputs inputs);
  Status applySettings(const nlohmann::json &object, const nlohmann::json &flags, Settings &settings,
                       Controls &controls) const;
  Status readSource(const nlohmann::json &object, const Controls &controls, Request &request) const;
  /// Of a model without an encoder: the ids that were read are the decoder's prompt.
  Status readPrompt(const nlohmann::json &object, Request &request) const;
  Status limitSource(Request &request, bool fromText) const;
  /// The candidates of the source, where there is a shortlist.
  Status applyShortlist(Request &request) const;
  int64_t positions() const { return generation().position_limit(); }

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  GeneratorOptions options_;
  EncoderInputs inputs_;
  SessionStepper stepper_;
  Scheduler scheduler_; // over inputs_ and stepper_
  Settings defaults_;
  ControlTable controls_;
  std::vector<std::string> refused_;
};

/// For callers that hold JSON: `text` is a request or a list of requests, the result an answer or a list of answers, in
/// order. A request in a list that fails has an "error" in place of hypotheses; a single one fails the call.
Result<std::string> generate(Generator &generator, const std::string &text);

} // namespace transept::search

#endif
