// Writes the artifact that the examples run. Usage: transept-write-fixture FILE

#include "unit/runtime/TwiceModel.h"

#include <cstdio>

int main(int argc, char **argv) {
  transept::Status status = transept::writeArtifact(argc > 1 ? argv[1] : "", transept::tests::twiceSections());
  if (!status.ok())
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.exitCode();
}
