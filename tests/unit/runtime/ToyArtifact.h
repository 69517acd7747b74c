// An artifact with the generation program of a toy model, its kernels in plain C++.
#ifndef TRANSEPT_TESTS_TOYARTIFACT_H
#define TRANSEPT_TESTS_TOYARTIFACT_H

#include "runtime/Model.h"

#include <memory>
#include <vector>

namespace transept::tests {

struct ToyOptions {
  bool recompute = false;    // no cache: steps compute from prefixes
  bool score = true;         // has the entry for teacher forcing
  bool equalLengths = false; // no mask input
  int64_t positionLimit = 40, sourceLimit = 20;
  std::string settings = R"({"decoder_start_token_id": 2, "eos_token_id": 1, "pad_token_id": 0, "max_length": 12})";
  std::vector<std::string> refused;
};

constexpr int64_t toyVocabulary = 2100; // two blocks of the search head

/// Logits are those of ToyModel{toyVocabulary, 24, 9, {{1, 1}}} with toySeed(source ids) as seed. A source id 77 is out
/// of range for the encoder; source id 66 makes the logits after two decoder tokens NaN.
std::shared_ptr<const Model> toyArtifact(const ToyOptions &options = {});

uint64_t toySeed(const std::vector<int64_t> &ids);

} // namespace transept::tests

#endif
