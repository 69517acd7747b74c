// Checks that a manifest is a program that can be run without further range checks.
#ifndef TRANSEPT_RUNTIME_VERIFYMANIFEST_H
#define TRANSEPT_RUNTIME_VERIFYMANIFEST_H

#include "runtime/ArtifactFormat.h"
#include "runtime/Status.h"
#include "runtime/program.pb.h"

#include <vector>

namespace transept {

/// Every index is in range, every expression well formed over its symbols, names are unique, constants lie inside the
/// weights section, sections that are named exist with the right kind. Sizes that depend on symbols are checked again
/// when a call is set up. Fails with Code::ArtifactRefused, naming entry and item.
Status verifyManifest(const program::Manifest &manifest, const std::vector<SectionInfo> &sections);

} // namespace transept

#endif
