// tokenizer.json and the files beside it, malformed or unknown in parts; and how long large ones take.
#include "TinyModel.h"

#include "runtime/text/Tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <random>

using namespace transept;
using namespace transept::tests;
using nlohmann::json;

namespace {

const std::string folder = TRANSEPT_TEST_TOKENIZERS "/";

Result<std::unique_ptr<Tokenizer>> fast(const std::string &text, const std::string &config = "") {
  return makeTokenizer("tokenizer.json", {{"tokenizer.json", text}}, config);
}

/// A clear refusal: a code for what is wrong with files, and one line that names the file.
void expectClear(const Status &status, const std::string &what) {
  bool code = status.code() == Code::ArtifactRefused || status.code() == Code::Unsupported ||
              status.code() == Code::LimitExceeded;
  EXPECT_TRUE(code) << what << ": " << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << what << ": " << status.message();
  EXPECT_EQ(status.message().compare(0, 16, "'tokenizer.json'"), 0) << what << ": " << status.message();
  EXPECT_LT(status.message().size(), 600u) << what;
}

/// What is made in spite of a change must still take any text.
void expectSound(const std::string &text, const std::string &what) {
  auto made = fast(text);
  if (!made.ok())
    return expectClear(made.status(), what);
  for (const char *sample : {"", "the <mask> caf\xC3\xA9 \xF0\x9F\x98\x80  123</s>"}) {
    auto ids = (*made)->encodeSource(sample, {});
    if (ids.ok())
      (*made)->decode(*ids);
  }
  (*made)->decode(std::vector<int64_t>{-5, 0, 3, 1 << 30});
}

const char *const samples[] = {
    "bart.json", "t5.json", "bert.json", "part-llama.json", "part-ignore-merges.json", "part-unigram-never.json"};

/// All paths to values, those of long lists and vocabularies thinned out.
void collect(const json &value, const json::json_pointer &at, std::vector<json::json_pointer> &paths) {
  paths.push_back(at);
  size_t step = value.size() > 40 ? value.size() / 20 : 1, index = 0;
  if (value.is_object())
    for (const auto &[key, member] : value.items()) {
      if (index++ % step == 0)
        collect(member, at / key, paths);
    }
  else if (value.is_array())
    for (; index < value.size(); index += step)
      collect(value[index], at / index, paths);
}

TEST(TokenizerJson, EveryValueOfAWrongKindIsRefusedOrHarmless) {
  const json others[] = {nullptr, 7, -1, 1e300, "x", "", true, json::array(), json::object(), {{"type", "Unheard"}},
                         {"a", 1}};
  for (const char *sample : samples) {
    json whole = json::parse(readFile(folder + sample));
    std::vector<json::json_pointer> paths;
    collect(whole, json::json_pointer(), paths);
    ASSERT_GT(paths.size(), 60u);
    for (const json::json_pointer &path : paths) {
      for (const json &other : others) {
        json changed = whole;
        changed[path] = other;
        expectSound(changed.dump(), std::string(sample) + path.to_string() + " = " + other.dump());
      }
      if (path.empty() || !whole[path.parent_pointer()].is_object())
        continue;
      json without = whole;
      without[path.parent_pointer()].erase(path.back());
      expectSound(without.dump(), std::string(sample) + " without " + path.to_string());
    }
  }
}

TEST(TokenizerJson, EveryCutAndManyDamagedBytesAreRefusedOrHarmless) {
  for (const char *sample : {"part-llama.json", "part-ignore-merges.json"}) {
    std::string text = readFile(folder + sample);
    for (size_t size = 0; size < text.size(); size += 1 + size / 40) {
      auto made = fast(text.substr(0, size));
      ASSERT_FALSE(made.ok()) << size;
      expectClear(made.status(), "cut at " + std::to_string(size));
    }
    std::mt19937 random(7);
    for (int round = 0; round < 400; ++round) {
      std::string damaged = text;
      for (int i = 0; i < 3; ++i)
        damaged[random() % damaged.size()] = static_cast<char>("\"{}[],:\\0x\xFF\x01"[random() % 12]);
      expectSound(damaged, "round " + std::to_string(round));
    }
    EXPECT_FALSE(fast(text + "x").ok());
  }
  for (const char *text :
       {"", "{", "[]", "null", "{}", "{\"model\": {}}", "{\"model\": 3}", "{\"model\": {\"type\": \"BPE\"}}",
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"vocab\": {}, \"merges\": []}}",
        "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\"]]}}", "\xFF"}) {
    auto made = fast(text);
    ASSERT_FALSE(made.ok()) << text;
    expectClear(made.status(), text);
  }
  std::string deep = "{\"normalizer\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_FALSE(fast(deep).ok());
}

TEST(TokenizerJson, UnknownPartsAreNamed) {
  json whole = json::parse(readFile(folder + "part-ignore-merges.json"));
  auto refused = [](const json &changed, std::initializer_list<const char *> parts, const std::string &config = "") {
    auto made = fast(changed.dump(), config);
    ASSERT_FALSE(made.ok()) << *parts.begin();
    EXPECT_EQ(made.status().code(), Code::Unsupported) << made.status().message();
    for (const char *part : parts)
      EXPECT_NE(made.status().message().find(part), std::string::npos) << made.status().message();
  };
  for (const char *section : {"normalizer", "pre_tokenizer", "post_processor", "decoder", "model"}) {
    json changed = whole;
    changed[section] = {{"type", "Enigma"}};
    refused(changed, {"'Enigma'", "not implemented"});
  }
  json changed = whole;
  changed["pre_tokenizer"]["pretokenizers"][0]["flavour"] = "sour";
  refused(changed, {"'Split'", "'flavour'"});
  changed = whole;
  changed["model"]["flavour"] = 1;
  refused(changed, {"'BPE'", "'flavour'"});
  changed = whole;
  changed["model"]["dropout"] = 0.1;
  refused(changed, {"'dropout'"});
  changed = whole;
  changed["flavour"] = 1;
  refused(changed, {"'flavour'"});
  changed = whole;
  changed["version"] = "2.0";
  refused(changed, {"2.0"});
  refused(whole, {"'flavour'"}, "{\"flavour\": 1}");
  refused(whole, {"'sp_model_kwargs'", "enable_sampling"}, "{\"sp_model_kwargs\": {\"enable_sampling\": true}}");
  refused(whole, {"'auto_map'"}, "{\"auto_map\": {\"AutoTokenizer\": [\"x\", null]}}");
  auto slow = makeTokenizer("sentencepiece", {{"spiece.model", ""}}, "{\"tokenizer_class\": \"XGLMTokenizer\"}");
  ASSERT_FALSE(slow.ok());
  EXPECT_NE(slow.status().message().find("'XGLMTokenizer'"), std::string::npos);
}

TEST(TokenizerJson, FilesOfCheckpointsAreCheckedToo) {
  auto refused = [](const char *kind, std::vector<TokenizerFile> files, const char *name, const char *part) {
    auto made = makeTokenizer(kind, files, std::string("{\"tokenizer_class\": \"") + name + "\"}");
    ASSERT_FALSE(made.ok()) << part;
    EXPECT_NE(made.status().message().find(part), std::string::npos) << made.status().message();
  };
  std::string model = readFile(folder + "fair.model");
  refused("sentencepiece", {}, "T5Tokenizer", "lacks 'spiece.model'");
  refused("sentencepiece", {{"spiece.model", "no model"}}, "T5Tokenizer", "'spiece.model'");
  refused("sentencepiece", {{"sentencepiece.bpe.model", model}}, "M2M100Tokenizer", "lacks 'vocab.json'");
  refused("sentencepiece", {{"sentencepiece.bpe.model", model}, {"vocab.json", "{\"a\": 1}"}}, "M2M100Tokenizer",
          "'<unk>'");
  refused("byte-level-bpe", {{"vocab.json", "{\"<unk>\": 0}"}}, "BartTokenizer", "lacks 'merges.txt'");
  refused("byte-level-bpe", {{"vocab.json", "{\"a\": 0}"}, {"merges.txt", ""}}, "BartTokenizer", "'<unk>'");
  refused("byte-level-bpe", {{"vocab.json", "{\"<unk>\": 0}"}, {"merges.txt", "#\na b\n"}}, "BartTokenizer", "'a'");
  refused("byte-level-bpe", {{"vocab.json", "{\"<unk>\": 0}"}, {"merges.txt", "#\nabc\n"}}, "BartTokenizer", "'abc'");
  refused("wordpiece", {{"vocab.txt", "a\nb\n"}}, "BertTokenizer", "'[UNK]'");
  refused("wordpiece", {{"vocab.txt", "[UNK]\n\xFF\n"}}, "BertTokenizer", "UTF-8");
}

double seconds(const std::function<void()> &work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// As many words as real vocabularies have, and lines as long as files. It takes a tenth of a second to load one, and
/// less than one to split a line; the limits leave room for slow and busy machines, but none for anything quadratic.
TEST(TokenizerJson, LargeVocabulariesAndLongLinesTakeLittleTime) {
  std::mt19937 random(3);
  json bpe = json::parse(readFile(folder + "part-ignore-merges.json")),
       unigram = json::parse(readFile(folder + "part-unigram-never.json"));
  json &vocabulary = bpe["model"]["vocab"], &merges = bpe["model"]["merges"];
  std::vector<std::string> words = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"};
  int64_t next = 1000;
  while (merges.size() < 100000) {
    std::string left = words[random() % words.size()], right = words[random() % words.size()];
    if (left.size() + right.size() > 12 || vocabulary.contains(left + right))
      continue;
    vocabulary[left + right] = next++;
    merges.push_back({left, right});
    words.push_back(left + right);
    unigram["model"]["vocab"].push_back({left + right, -8.0 - static_cast<double>(random() % 1000) / 100});
  }
  std::string long_;
  while (long_.size() < (1 << 20))
    long_ += words[random() % words.size()];
  for (const json &document : {bpe, unigram}) {
    std::string text = document.dump();
    std::unique_ptr<Tokenizer> tokenizer;
    EXPECT_LT(seconds([&] {
                auto made = fast(text);
                ASSERT_TRUE(made.ok()) << made.status().message();
                tokenizer = made.take();
              }),
              5.0);
    for (const std::string &line :
         {long_, std::string(1 << 20, 'a'), std::string(1 << 20, ' '), std::string(1 << 20, '.')})
      EXPECT_LT(seconds([&] {
                  auto ids = tokenizer->encodeSource(line, {});
                  ASSERT_TRUE(ids.ok()) << ids.status().message();
                  tokenizer->decode(*ids);
                }),
                20.0);
  }
}

} // namespace
