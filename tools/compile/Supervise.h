//===- Supervise.h - a compilation that cannot leave anything behind --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compilation runs in a child process: whatever ends it, the parent says so in one line, removes temporaries, and
// exits with a known code.

#ifndef TRANSEPT_TOOLS_COMPILE_SUPERVISE_H
#define TRANSEPT_TOOLS_COMPILE_SUPERVISE_H

#include <functional>
#include <string>

namespace mlir::transept {

/// Told by the child what it is doing; a message about its death names that.
class Activity {
public:
  virtual ~Activity() = default;
  virtual void set(const std::string &what) = 0;
};

/// Runs `work` in a child and returns its result. The child has a private directory for temporary files. If it dies,
/// prints a line and returns 70; if a signal asked for the end, returns 128 + signal, without a line.
/// `cleanUp` runs in the parent after a death.
int supervise(const std::function<int(Activity &)> &work, const std::function<void()> &cleanUp);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_COMPILE_SUPERVISE_H
