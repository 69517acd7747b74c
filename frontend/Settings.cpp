//===- Settings.cpp - generation settings of an export ---------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Settings.h"
#include "frontend/FileBytes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <nlohmann/json.hpp>

using namespace mlir::transept;
using nlohmann::json;

namespace {
constexpr uint64_t maxJsonBytes = 16u << 20;

/// What the runtime does with a name of generation_config.json.
enum class Treatment {
  Implemented, ///< the runtime does it
  Data,        ///< facts about the model that requests refer to
  Irrelevant,  ///< cannot change the output of this runtime
  Sampling,    ///< matters only together with do_sample
  Neutral,     ///< accepted where the value switches the feature off
};
struct Setting {
  llvm::StringRef name;
  Treatment treatment;
  llvm::StringRef neutral = {}; ///< JSON text of the value that switches a Neutral setting off, besides null
};

// The names are those of the transformers library. A name that is not here is refused, whatever its value.
constexpr Setting settings[] = {
    {"alignment_heads", Treatment::Data},
    {"bad_words_ids", Treatment::Implemented},
    {"begin_suppress_tokens", Treatment::Implemented},
    {"bos_token_id", Treatment::Implemented},
    {"cache_config", Treatment::Irrelevant},
    {"cache_implementation", Treatment::Irrelevant},
    {"constraints", Treatment::Neutral},
    {"decoder_start_token_id", Treatment::Implemented},
    {"disable_compile", Treatment::Irrelevant},
    {"diversity_penalty", Treatment::Neutral, "0.0"},
    {"do_sample", Treatment::Implemented},
    {"early_stopping", Treatment::Implemented},
    {"encoder_no_repeat_ngram_size", Treatment::Implemented},
    {"encoder_repetition_penalty", Treatment::Neutral, "1.0"},
    {"eos_token_id", Treatment::Implemented},
    {"epsilon_cutoff", Treatment::Sampling},
    {"eta_cutoff", Treatment::Sampling},
    {"exponential_decay_length_penalty", Treatment::Neutral},
    {"force_words_ids", Treatment::Neutral},
    {"forced_bos_token_id", Treatment::Implemented},
    {"forced_decoder_ids", Treatment::Implemented},
    {"forced_eos_token_id", Treatment::Implemented},
    {"guidance_scale", Treatment::Neutral, "1.0"},
    {"is_multilingual", Treatment::Data},
    {"lang_to_id", Treatment::Data},
    {"language", Treatment::Data},
    {"length_penalty", Treatment::Implemented},
    {"low_memory", Treatment::Irrelevant},
    {"max_initial_timestamp_index", Treatment::Data},
    {"max_length", Treatment::Implemented},
    {"max_new_tokens", Treatment::Implemented},
    {"max_time", Treatment::Implemented},
    {"min_length", Treatment::Implemented},
    {"min_new_tokens", Treatment::Implemented},
    {"min_p", Treatment::Sampling},
    {"no_repeat_ngram_size", Treatment::Implemented},
    {"no_timestamps_token_id", Treatment::Data},
    {"num_assistant_tokens", Treatment::Irrelevant},
    {"num_assistant_tokens_schedule", Treatment::Irrelevant},
    {"num_beam_groups", Treatment::Neutral, "1"},
    {"num_beams", Treatment::Implemented},
    {"num_return_sequences", Treatment::Implemented},
    {"output_attentions", Treatment::Irrelevant},
    {"output_hidden_states", Treatment::Irrelevant},
    {"output_logits", Treatment::Irrelevant},
    {"output_scores", Treatment::Irrelevant},
    {"pad_token_id", Treatment::Implemented},
    {"penalty_alpha", Treatment::Neutral, "0.0"},
    {"prefill_chunk_size", Treatment::Irrelevant},
    {"prev_sot_token_id", Treatment::Data},
    {"prompt_lookup_num_tokens", Treatment::Irrelevant},
    {"remove_invalid_values", Treatment::Neutral, "false"},
    {"renormalize_logits", Treatment::Implemented},
    {"repetition_penalty", Treatment::Implemented},
    {"return_dict_in_generate", Treatment::Irrelevant},
    {"return_timestamps", Treatment::Neutral, "false"},
    {"search", Treatment::Implemented},
    {"sequence_bias", Treatment::Neutral},
    {"stop_strings", Treatment::Neutral},
    {"suppress_tokens", Treatment::Implemented},
    {"task", Treatment::Data},
    {"task_specific_params", Treatment::Data},
    {"task_to_id", Treatment::Data},
    {"temperature", Treatment::Implemented},
    {"token_healing", Treatment::Neutral, "false"},
    {"top_h", Treatment::Sampling},
    {"top_k", Treatment::Implemented},
    {"top_p", Treatment::Implemented},
    {"transformers_version", Treatment::Irrelevant},
    {"typical_p", Treatment::Sampling},
    {"use_cache", Treatment::Irrelevant},
    {"watermarking_config", Treatment::Neutral},
    {"_from_model_config", Treatment::Irrelevant},
};

const Setting *findSetting(llvm::StringRef name) {
  auto *found = llvm::find_if(settings, [&](const Setting &setting) { return setting.name == name; });
  return found == std::end(settings) ? nullptr : found;
}

/// The object in a JSON file; an empty one if there is no such file.
Outcome<json> readObject(const std::string &directory, llvm::StringRef name) {
  llvm::SmallString<256> path(directory);
  llvm::sys::path::append(path, name);
  if (!llvm::sys::fs::exists(path))
    return json(json::object());
  Outcome<std::string> bytes = readWholeFile(path.str().str(), maxJsonBytes);
  if (!bytes)
    return std::move(bytes.failure());
  try {
    json value = json::parse(*bytes);
    if (value.is_object())
      return value;
    return Failure{ExitInvalidModel, printable(path.str()) + ": holds no JSON object", {}};
  } catch (const json::exception &error) {
    return Failure{ExitInvalidModel, printable(path.str()) + ": " + printable(error.what(), 300), {}};
  }
}

std::string text(const json &value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

bool sameNumberOrValue(const json &value, llvm::StringRef neutral) {
  if (value.is_null())
    return true;
  return !neutral.empty() && value == json::parse(neutral.str());
}
} // namespace

Outcome<GenerationSettings> mlir::transept::readSettings(const std::string &directory) {
  Outcome<json> config = readObject(directory, "config.json");
  if (!config)
    return std::move(config.failure());
  Outcome<json> generation = readObject(directory, "generation_config.json");
  if (!generation)
    return std::move(generation.failure());

  // config.json describes the model; of its keys only the names of generation settings count here.
  json merged = json::object();
  for (const auto &[name, value] : config->items())
    if (const Setting *setting = findSetting(name); setting && setting->treatment != Treatment::Irrelevant)
      if (!value.is_null())
        merged[name] = value;
  for (const auto &[name, value] : generation->items())
    if (!value.is_null())
      merged[name] = value;

  GenerationSettings result;
  json kept = json::object();
  auto sampled = merged.find("do_sample");
  bool sampling = sampled != merged.end() && *sampled == true;
  for (const auto &[name, value] : merged.items()) {
    const Setting *setting = findSetting(name);
    Treatment treatment = setting ? setting->treatment : Treatment::Neutral;
    bool keep = treatment == Treatment::Implemented || treatment == Treatment::Data;
    bool refuse = (treatment == Treatment::Sampling && sampling) ||
                  (treatment == Treatment::Neutral && !sameNumberOrValue(value, setting ? setting->neutral : ""));
    if (keep)
      kept[name] = value;
    else if (refuse)
      result.refused.push_back(printable(name) + "=" + printable(text(value)));
  }
  result.json = text(kept);
  result.config = text(*config);
  return result;
}

void mlir::transept::overrideSettings(GenerationSettings &settings, const std::string &said) {
  json merged = json::parse(settings.json);
  merged.update(json::parse(said));
  settings.json = text(merged);
}

bool mlir::transept::saysEncoderDecoder(const std::string &directory) {
  Outcome<json> config = readObject(directory, "config.json");
  if (!config)
    return false;
  auto found = config->find("is_encoder_decoder");
  return found != config->end() && *found == true;
}

std::string mlir::transept::readLicence(const std::string &directory) {
  if (Outcome<json> config = readObject(directory, "config.json"))
    for (const char *key : {"license", "licence"})
      if (auto found = config->find(key); found != config->end() && found->is_string())
        return printable(found->get<std::string>());
  llvm::SmallString<256> path(directory);
  llvm::sys::path::append(path, "README.md");
  if (!llvm::sys::fs::exists(path))
    return {};
  Outcome<std::string> bytes = readWholeFile(path.str().str(), maxJsonBytes);
  if (!bytes)
    return {};
  // Model cards start with a block of "key: value" lines between two lines of three dashes.
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(*bytes).split(lines, '\n');
  if (lines.empty() || lines.front().trim() != "---")
    return {};
  for (llvm::StringRef line : llvm::drop_begin(lines)) {
    line = line.trim();
    if (line == "---")
      break;
    if (line.consume_front("license:"))
      return printable(line.trim().trim("'\""));
  }
  return {};
}
