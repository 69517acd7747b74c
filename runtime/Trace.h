// When which kernel ran where.
#ifndef TRANSEPT_RUNTIME_TRACE_H
#define TRANSEPT_RUNTIME_TRACE_H

#include "runtime/Status.h"
#include "runtime/program.pb.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace transept {

/// Spans of dispatches, one track per thread or device. Thread-safe.
class Trace {
public:
  struct Span {
    int32_t entry = 0;          // index into Manifest.entries
    uint32_t kernel = 0;        // index into Manifest.kernels
    int64_t items = 0;          // that it computed
    int64_t begin = 0, end = 0; // nanoseconds, as now()
  };
  /// More spans than this are counted, not kept.
  static constexpr size_t mostSpans = size_t(1) << 22;

  /// Nanoseconds of a steady clock.
  static int64_t now();

  /// A new track; its number.
  size_t addTrack(std::string name);
  void add(size_t track, const std::vector<Span> &spans);

  /// In the format of Chrome's trace viewer and Perfetto: a complete event per span, with the model's nodes. Times
  /// count from the first span. Replaces the file when it is complete.
  Status write(const program::Manifest &manifest, const std::string &path) const;

private:
  struct Track {
    std::string name;
    std::vector<Span> spans;
  };
  mutable std::mutex mutex_;
  std::vector<Track> tracks_;
  size_t kept_ = 0, dropped_ = 0;
};

} // namespace transept

#endif
