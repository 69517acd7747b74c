#include "Description.h"

#include "runtime/Status.h"

namespace transept::tool {

namespace {

using json = nlohmann::ordered_json;

/// Collects lines; everything from the file is made printable.
class Text {
public:
  void line(int indent, const std::string &words) {
    out_.append(static_cast<size_t>(2 * indent), ' ');
    out_ += words + "\n";
  }
  std::string take() { return std::move(out_); }

private:
  std::string out_;
};

std::string word(const json &value) {
  return printable(value.is_string() ? value.get<std::string>() : value.dump(), 300);
}

/// 3145728 → "3145728 (3.0 MiB)"
std::string bytesText(int64_t bytes) {
  std::string out = std::to_string(bytes) + " bytes";
  const char *units[] = {"KiB", "MiB", "GiB"};
  double scaled = static_cast<double>(bytes);
  int unit = -1;
  for (; scaled >= 1024 && unit < 2; ++unit)
    scaled /= 1024;
  if (unit < 0)
    return out;
  char text[32];
  std::snprintf(text, sizeof text, " (%.1f %s)", scaled, units[unit]);
  return out + text;
}

std::string sizeText(const json &size) {
  std::string formula = word(size["formula"]);
  if (!size.contains("value"))
    return formula + " bytes";
  std::string value = bytesText(size["value"].get<int64_t>());
  return formula == std::to_string(size["value"].get<int64_t>()) ? value : formula + " = " + value;
}

std::string shapeWords(const json &shape) {
  std::string out;
  for (const json &dim : shape)
    out += (out.empty() ? "" : ", ") + word(dim);
  return "[" + out + "]";
}

std::string tensorText(const json &tensor) {
  return word(tensor["name"]) + ": " + word(tensor["dtype"]) + " " + shapeWords(tensor["shape"]) +
         (tensor.contains("optional") ? ", optional" : "");
}

void addSegments(Text &text, const json &segments) {
  text.line(1, "sizes depend on data: every run allocates");
  auto names = [](const json &list) {
    std::string out;
    for (const json &name : list)
      out += (out.empty() ? "" : ", ") + word(name);
    return out;
  };
  auto target = [&](const json &index) {
    return index.get<size_t>() == segments.size() ? std::string("end") : word(index);
  };
  int index = 0;
  for (const json &segment : segments)
    text.line(2, "segment " + std::to_string(index++) + ": " +
                     (segment["sets"].empty() ? "" : "sets " + names(segment["sets"]) + "; ") +
                     word(segment["dispatches"]) + " dispatches, arena " + sizeText(segment["arena"]) +
                     (segment["reads"].empty() ? "" : "; reads " + names(segment["reads"])) + "; then " +
                     target(segment["next"]) +
                     (segment.contains("otherwise") ? " or " + target(segment["otherwise"]) : ""));
}

void addEntry(Text &text, const json &entry) {
  text.line(0, "entry " + word(entry["name"]));
  for (const json &symbol : entry["symbols"])
    text.line(1, "symbol " + word(symbol["name"]) + ": " + word(symbol["min"]) +
                     (symbol.contains("max") ? " to " + word(symbol["max"]) : " or more") +
                     (symbol.contains("at_run_time") ? ", known while the entry runs" : ""));
  for (const json &input : entry["inputs"])
    text.line(1, "input " + tensorText(input));
  for (const json &output : entry["outputs"])
    text.line(1, "output " + tensorText(output));
  text.line(1, word(entry["dispatches"]) + " dispatches, " + word(entry["barriers"]) + " barriers, arena " +
                   sizeText(entry["arena"]));
  if (entry.contains("segments"))
    addSegments(text, entry["segments"]);
  if (!entry.contains("program"))
    return;
  for (const json &guard : entry["guards"])
    text.line(1, "guard: " + word(guard));
  int index = 0;
  for (const json &dispatch : entry["program"]) {
    std::string buffers;
    for (const json &buffer : dispatch["buffers"])
      buffers += " " + word(buffer);
    const json &items = dispatch["items"];
    text.line(1, std::to_string(index++) + (dispatch["barrier"].get<bool>() ? " | " : "   ") +
                     word(dispatch["kernel"]) + " x " + word(items["formula"]) +
                     (items.contains("value") && !items["formula"].get<std::string>().empty() &&
                              word(items["formula"]) != word(items["value"])
                          ? " = " + word(items["value"])
                          : "") +
                     ":" + buffers);
  }
}

void addGeneration(Text &text, const json &generation) {
  text.line(0, "generation: " + word(generation["kind"]) + ", strategy " + word(generation["strategy"]) + ", " +
                   word(generation["layers"]) + " layers, vocabulary " + word(generation["vocabulary"]) +
                   ", position limit " + word(generation["position_limit"]) + " (0: none)");
  text.line(1, "settings " + printable(generation["settings"].dump(), 2000));
  for (const json &setting : generation["refused_settings"])
    text.line(1, "not implemented: " + word(setting));
}

void addCaches(Text &text, const json &caches) {
  text.line(0, "caches");
  const std::pair<const char *, const char *> rows[] = {{"self_per_beam_and_token", "self, per beam and token"},
                                                        {"self_per_beam", "self, per beam of"},
                                                        {"cross_per_source_token", "cross, per source token"},
                                                        {"cross_per_source", "cross, per source of"}};
  for (const auto &[key, title] : rows) {
    if (!caches.contains(key))
      continue;
    const json &row = caches[key];
    text.line(1, title + (row.contains("tokens") ? " " + word(row["tokens"]) + " tokens" : std::string()) + ": " +
                     word(row["values"]) + " values, " + bytesText(row["bytes"].get<int64_t>()));
  }
}

/// Its variants, and how its work is cut.
void addShader(Text &text, const json &shader) {
  std::string variants;
  for (const json &variant : shader["variants"]) {
    variants += (variants.empty() ? "" : ", ") + bytesText(variant["bytes"].get<int64_t>());
    for (const json &feature : variant["features"])
      variants += " " + word(feature);
  }
  const bool each = shader["items_per_group"] == 0;
  text.line(1, word(shader["kernel"]) + ": " + variants + "; " + word(shader["items"]) + " items, " +
                   (each ? std::string("one for each invocation") : word(shader["items_per_group"]) + " in a group"));
}

} // namespace

std::string descriptionText(const json &description) {
  Text text;
  text.line(0, bytesText(description["bytes"].get<int64_t>()) + ", made by " + word(description["producer"]) +
                   ", precision " + word(description["precision"]));
  text.line(0, "weights: " + bytesText(description["weight_bytes"].get<int64_t>()) + " packed, " +
                   bytesText(description["unique_weight_bytes"].get<int64_t>()) + " in the model");
  if (description["licence"] != "")
    text.line(0, "licence: " + word(description["licence"]));
  text.line(0, "source: " + word(description["source_hash"]));
  for (const json &code : description["code"]) {
    std::string features;
    for (const json &feature : code["features"])
      features += " " + word(feature);
    text.line(0, "code: " + word(code["target"]) + " " + word(code["level"]) + features +
                     (code.value("used_here", false) ? " (used on this machine)" : ""));
    if (code.contains("shaders"))
      for (const json &shader : code["shaders"])
        addShader(text, shader);
  }
  if (description["tokenizer"] != "")
    text.line(0, "tokenizer: " + word(description["tokenizer"]));
  if (description.contains("generation"))
    addGeneration(text, description["generation"]);
  if (description.contains("states") && !description["states"].empty()) {
    text.line(0, "states");
    for (const json &state : description["states"])
      text.line(1, tensorText(state) + ", " + word(state["role"]) + ", " + sizeText(state["bytes"]));
  }
  if (description.contains("caches"))
    addCaches(text, description["caches"]);
  for (const json &entry : description["entries"])
    addEntry(text, entry);
  if (description.contains("kernels"))
    text.line(0, "kernels");
  if (description.contains("kernels"))
    for (const json &kernel : description["kernels"])
      text.line(1, word(kernel["name"]) + ", " + word(kernel["dispatches"]) + " dispatches" +
                       (kernel.contains("scratch_per_thread")
                            ? ", scratch per thread " + sizeText(kernel["scratch_per_thread"])
                            : "") +
                       (kernel["source"] != "" ? ": " + word(kernel["source"]) : ""));
  return text.take();
}

} // namespace transept::tool
