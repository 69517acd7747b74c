#include "runtime/Trace.h"

#include "runtime/AtomicFile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <utility>

namespace transept {

namespace {

/// In quotes, for JSON.
std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
    else
      result += ' ';
  }
  return result + '"';
}

/// Microseconds with three digits behind the point.
std::string microseconds(int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(nanoseconds / 1000),
                static_cast<int>(nanoseconds % 1000));
  return text;
}

} // namespace

int64_t Trace::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

size_t Trace::addTrack(std::string name) {
  std::lock_guard<std::mutex> lock(mutex_);
  tracks_.push_back({std::move(name), {}});
  return tracks_.size() - 1;
}

void Trace::add(size_t track, const std::vector<Span> &spans) {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t room = std::min(spans.size(), mostSpans - kept_);
  tracks_[track].spans.insert(tracks_[track].spans.end(), spans.begin(), spans.begin() + static_cast<ptrdiff_t>(room));
  kept_ += room;
  dropped_ += spans.size() - room;
}

Status Trace::write(const program::Manifest &manifest, const std::string &path) const {
  std::lock_guard<std::mutex> lock(mutex_);
  TRANSEPT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  uint64_t offset = 0;
  auto append = [&](const std::string &text) {
    Status status = file.write(offset, text.data(), text.size());
    offset += text.size();
    return status;
  };
  int64_t start = std::numeric_limits<int64_t>::max();
  for (const Track &track : tracks_)
    for (const Span &span : track.spans)
      start = std::min(start, span.begin);
  TRANSEPT_TRY(append("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped_spans\":" + std::to_string(dropped_) +
                      "},\"traceEvents\":["));
  const char *separator = "\n";
  for (size_t i = 0; i < tracks_.size(); ++i) {
    std::string thread = ",\"pid\":1,\"tid\":" + std::to_string(i);
    std::string text = std::exchange(separator, ",\n") + std::string("{\"name\":\"thread_name\",\"ph\":\"M\"") +
                       thread + ",\"args\":{\"name\":" + quoted(tracks_[i].name) + "}}";
    for (const Span &span : tracks_[i].spans) {
      const program::Kernel &kernel = manifest.kernels(static_cast<int>(span.kernel));
      text += ",\n{\"name\":" + quoted(kernel.name()) + ",\"cat\":\"kernel\",\"ph\":\"X\"" + thread +
              ",\"ts\":" + microseconds(span.begin - start) + ",\"dur\":" + microseconds(span.end - span.begin) +
              ",\"args\":{\"entry\":" + quoted(manifest.entries(span.entry).name()) +
              ",\"items\":" + std::to_string(span.items) + ",\"nodes\":" + quoted(kernel.source()) + "}}";
      if (text.size() > (1u << 20))
        TRANSEPT_TRY(append(std::exchange(text, {})));
    }
    TRANSEPT_TRY(append(text));
  }
  TRANSEPT_TRY(append("\n]}\n"));
  return file.commit();
}

} // namespace transept
