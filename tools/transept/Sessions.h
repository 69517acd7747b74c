// How many sessions suit a model.
#ifndef TRANSEPT_TOOLS_SESSIONS_H
#define TRANSEPT_TOOLS_SESSIONS_H

#include "runtime/program.pb.h"

#include <cstdint>

namespace transept::tool {

/// What the number of sessions depends on.
struct SessionNeeds {
  double work = 0;  // of a dispatch of a step of `batch` rows: bytes of weights it multiplies, times rows
  double bytes = 0; // about what a session holds in caches
};
/// For sessions of `batch` inputs of usual length.
SessionNeeds sessionNeeds(const program::Manifest &manifest, int64_t batch);

/// Of `threads` threads that compute many inputs with `memory` bytes. Threads that share a step wait for each other at
/// every dispatch: where dispatches are short, each thread has a session of its own, as long as caches take no more
/// than a quarter of the memory; where they are long, a session has several threads, so that inputs are done sooner
/// and memory is needed fewer times.
int suitableSessions(const SessionNeeds &needs, int threads, int64_t memory);

} // namespace transept::tool

#endif
