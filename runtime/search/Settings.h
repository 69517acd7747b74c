// Generation settings under their generation_config.json names, with the meaning they have in transformers 4.57.
#ifndef TRANSEPT_RUNTIME_SEARCH_SETTINGS_H
#define TRANSEPT_RUNTIME_SEARCH_SETTINGS_H

#include "runtime/Span.h"
#include "runtime/Status.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace transept::search {

/// When a beam search with as many finished hypotheses as beams stops: at once (Yes), when the best live hypothesis
/// would not beat the worst finished one at its present length (No), or at any length it can reach (Never).
enum class EarlyStopping { No, Yes, Never };

enum class Algorithm {
  Transformers,  // generate() of transformers
  Tensor2Tensor, // alive and finished sets, length penalty ((5 + n) / 6) ^ length_penalty
  OnnxRuntime,   // the BeamSearch operator of ONNX Runtime
};

/// What an answer says of attention over the source: nothing, the mean over layers and heads, or everything.
enum class Alignments { None, Mean, All };

/// The decoder sequence has `token` at `position` (0 is the start token).
struct ForcedToken {
  int64_t position = 0;
  int64_t token = 0;
};

/// Lengths count the whole decoder sequence, start token included; those called "new" count generated tokens only.
struct Settings {
  int64_t numBeams = 1;
  int64_t numReturnSequences = 1;
  std::optional<int64_t> maxLength;
  std::optional<int64_t> maxNewTokens;
  int64_t minLength = 0;
  std::optional<int64_t> minNewTokens;
  EarlyStopping earlyStopping = EarlyStopping::No;
  double lengthPenalty = 1.0;
  int64_t noRepeatNgramSize = 0;
  int64_t encoderNoRepeatNgramSize = 0;
  double repetitionPenalty = 1.0;
  std::vector<std::vector<int64_t>> badWordsIds;
  std::vector<int64_t> suppressTokens;
  std::vector<int64_t> beginSuppressTokens;
  std::vector<int64_t> allowedTokenIds; // empty: all
  std::optional<int64_t> forcedBosTokenId;
  std::vector<int64_t> forcedEosTokenId;
  std::vector<ForcedToken> forcedDecoderIds;
  std::optional<int64_t> decoderStartTokenId;
  std::vector<int64_t> decoderInputIds;
  std::vector<int64_t> eosTokenId;
  std::optional<int64_t> padTokenId;
  std::optional<int64_t> bosTokenId;
  bool renormalizeLogits = false;
  Algorithm search = Algorithm::Transformers;
  bool returnTokenScores = false;
  Alignments returnAlignments = Alignments::None;
  bool doSample = false;
  double temperature = 1.0;
  int64_t topK = 50; // the default of transformers; 0: all
  double topP = 1.0;
  int64_t seed = 0;
  bool stream = false;
  double maxTime = 0; // seconds; 0: no limit

  /// Whether max_length was asked for, instead of coming from the model: its built-in value of 20 then counts the
  /// prompt too.
  bool maxLengthRequested = false;

  /// The decoder prompt: decoder_input_ids, with decoder_start_token_id in front where they do not begin with it.
  /// Empty where neither is set.
  std::vector<int64_t> prompt() const;
  /// Longest sequence the settings allow for a prompt of `promptLength` tokens.
  int64_t lengthLimit(int64_t promptLength) const;
  /// Candidates a search step must look at, over all beams of a request.
  int64_t candidates() const;
  /// Most hypotheses that live at once.
  int64_t width() const { return doSample ? numReturnSequences : numBeams; }
};

enum class Origin { Model, Request };

/// A key of generation_config.json as this runtime understands it.
struct SettingInfo {
  std::string name;
  std::string values;  // what it takes: "integer >= 1", "token id or list of token ids" …
  std::string summary; // one sentence; for a refused setting, what to do instead
  bool implemented = true;
};

/// All keys, implemented ones first, in the order of the documentation.
const std::vector<SettingInfo> &settingInfos();

/// Sets one key. Null sets the built-in default. A key that is unknown, not implemented (unless the value means "off")
/// or has an impossible value is refused with Code::InvalidInput and a sentence that names it.
Status applySetting(Settings &settings, const std::string &key, const nlohmann::json &value, Origin origin);

/// Whether applySetting knows the key as implemented.
bool isImplementedSetting(const std::string &key);

/// Of "name=value" strings that an export asks for and the runtime does not implement, the first that the request does
/// not switch off: an error that names it. `request` is an object of settings. Parameters of sampling mean nothing
/// without `sampling`.
Status checkRefusedSettings(Span<const std::string> refused, const nlohmann::json &request, bool sampling);

/// The value a command-line flag's text means for a key; lists are "1,2,3" or JSON.
Result<nlohmann::json> settingFromText(const std::string &key, const std::string &text);

/// What one setting cannot know of the others, of the model's vocabulary (ids in [0, vocabulary)) and of its positions
/// (the model computes positions below `positions`; 0: any).
Status checkSettings(const Settings &settings, int64_t vocabulary, int64_t positions);

/// The known key that is spelt most like `key`.
std::string nearestSetting(const std::string &key);

} // namespace transept::search

#endif
