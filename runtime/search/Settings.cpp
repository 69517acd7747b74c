#include "runtime/search/Settings.h"

#include "runtime/search/SettingTable.h"

#include <algorithm>
#include <cmath>

namespace transept::search {

using nlohmann::json;

namespace {

Status refuse(const std::string &sentence) { return {Code::InvalidInput, sentence}; }

std::string shown(const json &value) {
  // Nesting is bounded before a value is printed: dump() recurses.
  if (value.is_object() || (value.is_array() && std::any_of(value.begin(), value.end(), [](const json &element) {
                              return element.is_structured() &&
                                     std::any_of(element.begin(), element.end(),
                                                 [](const json &inner) { return inner.is_structured(); });
                            })))
    return value.is_object() ? "an object" : "a nested list";
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 60);
}

/// An integer that fits int64; JSON numbers such as 4.0 are not integers, as in Python.
std::optional<int64_t> integerOf(const json &value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return std::nullopt;
  if (!value.is_number_integer())
    return std::nullopt;
  return value.get<int64_t>();
}

/// Reads a value into a member; false where the value has the wrong form. Ranges are checked by the row.
struct Reader {
  Settings &settings;
  const SettingRow &row;
  const json &value;

  bool inRange(double number) const {
    return std::isfinite(number) && number >= row.least && number <= row.most && !(row.open && number == row.least);
  }

  bool tokens(std::vector<int64_t> &out, const json &list) const {
    if (!list.is_array())
      return false;
    for (const json &element : list) {
      std::optional<int64_t> token = integerOf(element);
      if (!token || *token < 0)
        return false;
      out.push_back(*token);
    }
    return true;
  }

  bool operator()(int64_t Settings::*member) const {
    std::optional<int64_t> number = integerOf(value);
    if (!number || !inRange(static_cast<double>(*number)))
      return false;
    settings.*member = *number;
    return true;
  }
  bool operator()(std::optional<int64_t> Settings::*member) const {
    std::optional<int64_t> number = integerOf(value);
    if (!number || !inRange(static_cast<double>(*number)))
      return false;
    settings.*member = number;
    return true;
  }
  bool operator()(double Settings::*member) const {
    if (!value.is_number() || !inRange(value.get<double>()))
      return false;
    settings.*member = value.get<double>();
    return true;
  }
  bool operator()(bool Settings::*member) const {
    if (!value.is_boolean())
      return false;
    settings.*member = value.get<bool>();
    return true;
  }
  bool operator()(std::vector<int64_t> Settings::*member) const {
    std::vector<int64_t> list;
    if (row.scalar && integerOf(value) && *integerOf(value) >= 0)
      list.push_back(*integerOf(value));
    else if (!tokens(list, value))
      return false;
    settings.*member = std::move(list);
    return true;
  }
  bool operator()(std::vector<std::vector<int64_t>> Settings::*member) const {
    if (!value.is_array())
      return false;
    std::vector<std::vector<int64_t>> lists;
    for (const json &element : value)
      if (!tokens(lists.emplace_back(), element) || lists.back().empty())
        return false;
    settings.*member = std::move(lists);
    return true;
  }
  bool operator()(std::vector<ForcedToken> Settings::*member) const {
    if (!value.is_array())
      return false;
    std::vector<ForcedToken> list;
    for (const json &pair : value) {
      if (!pair.is_array() || pair.size() != 2)
        return false;
      std::optional<int64_t> position = integerOf(pair[0]), token = integerOf(pair[1]);
      if (!position || *position < 1)
        return false;
      if (pair[1].is_null())
        continue; // a free position
      if (!token || *token < 0)
        return false;
      list.push_back({*position, *token});
    }
    settings.*member = std::move(list);
    return true;
  }
  bool operator()(EarlyStopping Settings::*member) const {
    if (value.is_boolean())
      settings.*member = value.get<bool>() ? EarlyStopping::Yes : EarlyStopping::No;
    else if (value == "never")
      settings.*member = EarlyStopping::Never;
    else
      return false;
    return true;
  }
  bool operator()(Alignments Settings::*member) const {
    if (value.is_boolean())
      settings.*member = value.get<bool>() ? Alignments::All : Alignments::None;
    else if (value == "mean")
      settings.*member = Alignments::Mean;
    else
      return false;
    return true;
  }
  bool operator()(Algorithm Settings::*member) const {
    if (value == "transformers")
      settings.*member = Algorithm::Transformers;
    else if (value == "tensor2tensor")
      settings.*member = Algorithm::Tensor2Tensor;
    else if (value == "onnxruntime")
      settings.*member = Algorithm::OnnxRuntime;
    else
      return false;
    return true;
  }
};

bool isOff(const RefusedRow &row, const json &value) {
  if (value.is_null() || row.off == "*")
    return true;
  json off = json::parse(row.off);
  return std::any_of(off.begin(), off.end(), [&](const json &neutral) { return neutral == value; });
}

/// Changes to get from one word to the other: insert, delete or replace a letter.
size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

const SettingRow *findRow(const std::string &key) {
  for (const SettingRow &row : settingRows())
    if (key == row.name)
      return &row;
  return nullptr;
}

const RefusedRow *findRefused(const std::string &key) {
  for (const RefusedRow &row : refusedRows())
    if (key == row.name)
      return &row;
  return nullptr;
}

} // namespace

std::vector<int64_t> Settings::prompt() const {
  std::vector<int64_t> ids = decoderInputIds;
  if (decoderStartTokenId && (ids.empty() || ids.front() != *decoderStartTokenId))
    ids.insert(ids.begin(), *decoderStartTokenId);
  return ids;
}

int64_t Settings::lengthLimit(int64_t promptLength) const {
  constexpr int64_t builtIn = 20; // of GenerationConfig
  if (maxNewTokens)
    return promptLength + *maxNewTokens;
  if (!maxLengthRequested && search != Algorithm::OnnxRuntime && maxLength.value_or(builtIn) == builtIn)
    return promptLength + builtIn;
  return maxLength.value_or(builtIn);
}

int64_t Settings::candidates() const {
  if (doSample || (numBeams == 1 && search == Algorithm::Transformers))
    return 1;
  return std::max<int64_t>(2, 1 + static_cast<int64_t>(eosTokenId.size())) * numBeams;
}

const std::vector<SettingInfo> &settingInfos() {
  static const std::vector<SettingInfo> infos = [] {
    std::vector<SettingInfo> list;
    for (const SettingRow &row : settingRows())
      list.push_back({row.name, row.values, row.summary, true});
    for (const RefusedRow &row : refusedRows())
      list.push_back(
          {row.name, row.off == "*" ? "anything" : "only " + row.off.substr(1, row.off.size() - 2), row.advice, false});
    return list;
  }();
  return infos;
}

std::string nearestSetting(const std::string &key) {
  std::string word = key.substr(0, 64), best;
  size_t distance = SIZE_MAX;
  for (const SettingInfo &info : settingInfos())
    if (size_t d = editDistance(word, info.name); d < distance) {
      distance = d;
      best = info.name;
    }
  return best;
}

bool isImplementedSetting(const std::string &key) { return findRow(key) != nullptr; }

Status applySetting(Settings &settings, const std::string &key, const json &value, Origin origin) {
  if (const SettingRow *row = findRow(key)) {
    static const Settings builtIn;
    if (value.is_null())
      std::visit([&](auto member) { settings.*member = builtIn.*member; }, row->member);
    else if (!std::visit(Reader{settings, *row, value}, row->member))
      return refuse("'" + key + "' must be " + row->values + ", got " + shown(value));
    if (key == "max_length")
      settings.maxLengthRequested = origin == Origin::Request && !value.is_null();
    return Status::success();
  }
  if (const RefusedRow *row = findRefused(key)) {
    if (isOff(*row, value))
      return Status::success();
    return refuse("'" + key + "' = " + shown(value) + " is not implemented; " + row->advice);
  }
  return refuse("unknown setting '" + printable(key, 60) + "'; the nearest known one is '" + nearestSetting(key) + "'");
}

Status checkRefusedSettings(Span<const std::string> refused, const json &request, bool sampling) {
  for (const std::string &setting : refused) {
    std::string key = setting.substr(0, setting.find('='));
    const RefusedRow *row = findRefused(key);
    if ((row && row->sampling && !sampling) || request.contains(key))
      continue; // a value in the request was judged by applySetting
    return refuse("the model asks for " + printable(setting, 100) + ", which is not implemented; " +
                  (row ? row->advice + std::string("; ") : "") + "send \"" + key + "\": null to do without");
  }
  return Status::success();
}

Result<json> settingFromText(const std::string &key, const std::string &text) {
  const SettingRow *row = findRow(key);
  if (!row)
    return Status(Code::Usage, "unknown setting '" + key + "'");
  bool list = std::holds_alternative<std::vector<int64_t> Settings::*>(row->member);
  bool word = std::holds_alternative<Algorithm Settings::*>(row->member) || text == "never" || text == "mean";
  if (word)
    return json(text);
  std::string source = text;
  if (list && text.find('[') == std::string::npos && !(row->scalar && text.find(',') == std::string::npos))
    source = "[" + text + "]";
  json value = json::parse(source, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

Status checkSettings(const Settings &s, int64_t vocabulary, int64_t positions) {
  auto known = [&](const char *key, int64_t token) {
    if (token < vocabulary)
      return Status::success();
    return refuse("'" + std::string(key) + "' has token " + std::to_string(token) + ", the vocabulary has " +
                  std::to_string(vocabulary));
  };
  for (const SettingRow &row : settingRows()) {
    if (auto list = std::get_if<std::vector<int64_t> Settings::*>(&row.member)) {
      for (int64_t token : s.**list)
        TRANSEPT_TRY(known(row.name, token));
    } else if (auto lists = std::get_if<std::vector<std::vector<int64_t>> Settings::*>(&row.member)) {
      for (const std::vector<int64_t> &tokens : s.**lists)
        for (int64_t token : tokens)
          TRANSEPT_TRY(known(row.name, token));
    }
  }
  for (const ForcedToken &forced : s.forcedDecoderIds)
    TRANSEPT_TRY(known("forced_decoder_ids", forced.token));
  // pad_token_id and bos_token_id are never fed nor produced here.
  for (auto [name, token] :
       {std::pair{"decoder_start_token_id", s.decoderStartTokenId}, {"forced_bos_token_id", s.forcedBosTokenId}})
    if (token)
      TRANSEPT_TRY(known(name, *token));

  int64_t prompt = static_cast<int64_t>(s.prompt().size());
  if (prompt == 0)
    return refuse("'decoder_start_token_id' is not set, neither by the model nor by the request");
  if (positions > 0 && prompt > positions)
    return refuse("the decoder prompt has " + std::to_string(prompt) + " tokens, the model has " +
                  std::to_string(positions) + " positions");
  if (s.lengthLimit(prompt) <= prompt)
    return refuse("the decoder prompt has " + std::to_string(prompt) + " tokens, but 'max_length' is " +
                  std::to_string(s.lengthLimit(prompt)) + "; raise it or set 'max_new_tokens'");
  if (s.doSample && (s.numBeams > 1 || s.search != Algorithm::Transformers))
    return refuse("'do_sample' with " +
                  (s.numBeams > 1
                       ? "'num_beams' " + std::to_string(s.numBeams) + " is not implemented; set 'num_beams' to 1"
                       : std::string("another 'search' than \"transformers\" is not implemented")));
  if (!s.doSample && s.numReturnSequences > s.numBeams)
    return refuse("'num_return_sequences' (" + std::to_string(s.numReturnSequences) +
                  ") is greater than 'num_beams' (" + std::to_string(s.numBeams) + ")");
  if (s.numBeams > vocabulary)
    return refuse("'num_beams' (" + std::to_string(s.numBeams) + ") is greater than the vocabulary (" +
                  std::to_string(vocabulary) + ")");
  return Status::success();
}

} // namespace transept::search
