// How fast threads can read memory: the limit of whatever reads all its weights.
#ifndef TRANSEPT_TOOLS_STREAMRATE_H
#define TRANSEPT_TOOLS_STREAMRATE_H

#include "runtime/Status.h"
#include "runtime/ThreadTeam.h"

namespace transept::tool {

/// Bytes per second that the team reads from memory together: each member adds up its own part of a buffer of four
/// times the last-level cache and at least 128 MiB, which is written first. The best of several passes, half a second
/// in all. Code::OutOfMemory where there is no such buffer.
Result<double> streamRate(ThreadTeam &team);

} // namespace transept::tool

#endif
