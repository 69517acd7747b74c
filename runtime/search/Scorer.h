// Log-probabilities of given outputs, by teacher forcing.
#ifndef TRANSEPT_RUNTIME_SEARCH_SCORER_H
#define TRANSEPT_RUNTIME_SEARCH_SCORER_H

#include "runtime/search/Generator.h"

namespace transept::search {

struct ScoreRequest : Request {
  std::vector<int64_t> target;     // without the decoder prompt
  std::vector<double> tokenScores; // log-probability of each target token, in answers
  Alignment alignment;             // where asked for
  /// Called with the logits of each target token's position in order, where the entry for teacher forcing makes them.
  std::function<void(const float *logits, int64_t vocabulary)> onLogits;
};

/// {"text" | "input_ids" | "inputs", "target" | "target_ids", optionally "id" and settings}. Target ids may begin with
/// the decoder prompt. The prompt comes from decoder_start_token_id and decoder_input_ids; rules do not apply.
Status parseScore(const Generator &generator, const nlohmann::json &object, const nlohmann::json &flags,
                  ScoreRequest &request);

/// Scores all requests whose status is ok; each gets its own status. Uses the entry for teacher forcing, or steps where
/// the artifact has none or where alignments are asked for.
Status runScores(Generator &generator, const GeneratorOptions &options, const std::vector<ScoreRequest *> &requests);

/// {"id", "score": sum, "token_scores", "input_tokens", "output_tokens", "alignments"}
nlohmann::ordered_json scoreAnswer(const ScoreRequest &request);

} // namespace transept::search

#endif
