#include "runtime/search/SettingTable.h"

namespace transept::search {

namespace {
constexpr const char *flag = "true or false";
constexpr const char *positive = "an integer >= 1";
constexpr const char *natural = "an integer >= 0";
constexpr const char *id = "a token id";
constexpr const char *ids = "a list of token ids";
constexpr const char *idOrIds = "a token id or a list of token ids";
} // namespace

const std::vector<SettingRow> &settingRows() {
  using S = Settings;
  static const std::vector<SettingRow> rows = {
      {"num_beams", &S::numBeams, positive, "Beams; 1 is greedy search.", 1},
      {"num_return_sequences", &S::numReturnSequences, positive, "Hypotheses returned, at most num_beams.", 1},
      {"max_length", &S::maxLength, positive, "Longest decoder sequence, start token included.", 1},
      {"max_new_tokens", &S::maxNewTokens, positive, "Most tokens to generate; goes before max_length.", 1},
      {"min_length", &S::minLength, natural, "No end token before the sequence has this length.", 0},
      {"min_new_tokens", &S::minNewTokens, natural,
       "No end token before so many were generated; goes before min_length.", 0},
      {"early_stopping", &S::earlyStopping, "true, false or \"never\"",
       "When a beam search with num_beams finished hypotheses stops."},
      {"length_penalty", &S::lengthPenalty, "a number",
       "Scores are divided by length ^ length_penalty; above 0 favours long hypotheses."},
      {"no_repeat_ngram_size", &S::noRepeatNgramSize, natural, "No n-gram of this size occurs twice; 0 allows all.", 0},
      {"encoder_no_repeat_ngram_size", &S::encoderNoRepeatNgramSize, natural,
       "No n-gram of this size of the source occurs in the output; 0 allows all.", 0},
      {"repetition_penalty", &S::repetitionPenalty, "a number > 0", "Above 1 makes tokens that occurred less likely.",
       0, true},
      {"bad_words_ids", &S::badWordsIds, "a list of lists of token ids", "Sequences that are never generated."},
      {"suppress_tokens", &S::suppressTokens, ids, "Tokens that are never generated."},
      {"begin_suppress_tokens", &S::beginSuppressTokens, ids, "Tokens that are not generated first."},
      {"allowed_token_ids", &S::allowedTokenIds, ids,
       "The only tokens that are generated, beside end tokens and forced ones; scores are over these alone."},
      {"forced_bos_token_id", &S::forcedBosTokenId, id, "The first generated token, e.g. a target language.", 0},
      {"forced_eos_token_id", &S::forcedEosTokenId, idOrIds, "The last token when max_length is reached.", 0, false,
       true},
      {"forced_decoder_ids", &S::forcedDecoderIds, "a list of [position, token id] with positions >= 1",
       "Tokens at given positions."},
      {"decoder_start_token_id", &S::decoderStartTokenId, id, "The decoder's first input.", 0},
      {"decoder_input_ids", &S::decoderInputIds, ids, "The beginning of the output, given."},
      {"eos_token_id", &S::eosTokenId, idOrIds, "Tokens that end a hypothesis.", 0, false, true},
      {"pad_token_id", &S::padTokenId, id, "Fills padded inputs; never part of an answer.", 0},
      {"bos_token_id", &S::bosTokenId, id, "Read for completeness; decoding starts with decoder_start_token_id.", 0},
      {"renormalize_logits", &S::renormalizeLogits, flag, "Scores are normalised again after the other rules."},
      {"search", &S::search, "\"transformers\", \"tensor2tensor\" or \"onnxruntime\"",
       "The beam search: of transformers, with alive and finished sets and length penalty ((5 + n) / 6) ^ "
       "length_penalty, or of ONNX Runtime's BeamSearch operator."},
      {"return_token_scores", &S::returnTokenScores, flag,
       "Adds the score of each generated token, and greedy scores."},
      {"return_alignments", &S::returnAlignments, "true, \"mean\" or false",
       "Adds attention over the source for each generated token: true by layer and head, \"mean\" over all of them."},
      {"do_sample", &S::doSample, flag, "Draws tokens instead of taking the best ones; needs num_beams 1."},
      {"temperature", &S::temperature, "a number > 0", "Of do_sample: logits are divided by this.", 0, true},
      {"top_k", &S::topK, natural, "Of do_sample: so many of the most likely tokens are kept; 0 keeps all.", 0},
      {"top_p", &S::topP, "a number above 0 and up to 1",
       "Of do_sample: the fewest tokens are kept that have this probability together.", 0, true, false, 1},
      {"seed", &S::seed, natural, "Of do_sample: equal seeds draw equal texts, in any batch.", 0},
      {"stream", &S::stream, flag, "Answers in pieces, as soon as tokens are certain."},
      {"max_time", &S::maxTime, "a number of seconds > 0", "Stops generating after this time.", 0, true},
  };
  return rows;
}

const std::vector<RefusedRow> &refusedRows() {
  static const char *sampling = "use temperature, top_k or top_p";
  static const char *assisted = "decoding has no assistant model, leave it out";
  static const char *nothing = "without influence on results";
  static const std::vector<RefusedRow> rows = {
      {"min_p", "[0.0]", sampling, true},
      {"typical_p", "[1.0]", sampling, true},
      {"top_h", "[]", sampling, true},
      {"epsilon_cutoff", "[0.0]", sampling, true},
      {"eta_cutoff", "[0.0]", sampling, true},
      {"num_beam_groups", "[1]", "use plain beams: num_beams without groups"},
      {"diversity_penalty", "[0.0]", "use plain beams: num_beams without groups"},
      {"penalty_alpha", "[0.0]", "contrastive search does not exist, use num_beams"},
      {"dola_layers", "[]", "use num_beams"},
      {"constraints", "[[]]", "filter an n-best list (num_return_sequences) instead"},
      {"force_words_ids", "[[]]", "filter an n-best list (num_return_sequences) or give a prefix (decoder_input_ids)"},
      {"guidance_scale", "[1.0, 1]", "leave it out"},
      {"sequence_bias", "[[]]", "bad_words_ids excludes sequences"},
      {"encoder_repetition_penalty", "[1.0]", "repetition_penalty acts on the output only"},
      {"exponential_decay_length_penalty", "[]", "use length_penalty or max_new_tokens"},
      {"remove_invalid_values", "[false]", "logits that are not finite are an error here"},
      {"stop_strings", "[[]]", "use eos_token_id"},
      {"token_healing", "[false]", "leave it out"},
      {"watermarking_config", "[]", "leave it out"},
      {"prompt_lookup_num_tokens", "[]", assisted},
      {"max_matching_ngram_size", "[]", assisted},
      {"assistant_early_exit", "[]", assisted},
      {"output_scores", "[false]", "use return_token_scores"},
      {"output_logits", "[false]", "run the entry 'score'"},
      {"output_attentions", "[false]", "use return_alignments"},
      {"output_hidden_states", "[false]", "leave it out"},
      {"return_dict_in_generate", "*", nothing},
      {"use_cache", "*", nothing},
      {"return_timestamps", "[false]", "leave it out"},
      {"cache_implementation", "*", nothing},
      {"cache_config", "*", nothing},
      {"return_legacy_cache", "*", nothing},
      {"prefill_chunk_size", "*", nothing},
      {"low_memory", "*", nothing},
      {"num_assistant_tokens", "*", nothing},
      {"num_assistant_tokens_schedule", "*", nothing},
      {"assistant_confidence_threshold", "*", nothing},
      {"assistant_lookbehind", "*", nothing},
      {"target_lookbehind", "*", nothing},
      {"is_assistant", "*", nothing},
      {"compile_config", "*", nothing},
      {"disable_compile", "*", nothing},
      {"transformers_version", "*", nothing},
      {"_from_model_config", "*", nothing},
      {"_commit_hash", "*", nothing},
      {"alignment_heads", "*", nothing},
      {"is_multilingual", "*", nothing},
      {"lang_to_id", "*", nothing},
      {"task_to_id", "*", nothing},
      {"no_timestamps_token_id", "*", nothing},
      {"prev_sot_token_id", "*", nothing},
      {"max_initial_timestamp_index", "*", nothing},
  };
  return rows;
}

} // namespace transept::search
