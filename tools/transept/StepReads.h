// Bytes that an entry, or a decode step of a batch, must read: what a memory's speed limits.
#ifndef TRANSEPT_TOOLS_STEPREADS_H
#define TRANSEPT_TOOLS_STEPREADS_H

#include "runtime/Session.h"
#include "runtime/program.pb.h"

#include <cstdint>

namespace transept::tool {

/// Constants that a run of `entry` reads as a whole, padding of panels counted, each byte once however many dispatches
/// read it. Rows that data picks out of a table are left out.
int64_t constantsRead(const program::Manifest &manifest, const program::Entry &entry);

/// What a position costs in caches, in bytes.
struct CacheReads {
  int64_t selfPerPosition = 0; // of one hypothesis
  int64_t recurrentPerRow = 0; // state instead of a cache, of one hypothesis
  int64_t crossPerSource = 0;  // of one source, as long as asked
};

/// For sources of `source` positions (of the encoder's input). Fails on sizes that overflow.
Result<CacheReads> cacheReads(const program::Manifest &manifest, int64_t source);

} // namespace transept::tool

#endif
