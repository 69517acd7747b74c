// An artifact with real native code: main(x f32 [n]): y f32 [n] = 2 x.
#ifndef TRANSEPT_TESTS_TWICEMODEL_H
#define TRANSEPT_TESTS_TWICEMODEL_H

#include "runtime/ArtifactWriter.h"

#include <vector>

namespace transept::tests {

std::vector<ArtifactSection> twiceSections();

} // namespace transept::tests

#endif
