//===- Workers.h - many small jobs in processes of their own ----------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TESTS_CONFORMANCE_WORKERS_H
#define TRANSEPT_TESTS_CONFORMANCE_WORKERS_H

#include <cstddef>
#include <functional>
#include <string>

namespace mlir::transept {

struct WorkerOptions {
  unsigned processes = 2;
  unsigned secondsPerJob = 60; ///< a job that takes longer is ended, with its process
};

/// Runs `job` for 0 … count - 1 in forked processes, each of which takes the next one when it is done with one, and
/// hands what it returns to `done`, in any order. A job whose process dies or takes too long is handed the reason
/// instead, and another process takes over. The caller has no other threads. False where no process can be started.
bool runInWorkers(size_t count, const WorkerOptions &options,
                  const std::function<std::string(size_t job, unsigned worker)> &job,
                  const std::function<void(size_t job, const std::string &result)> &done);

} // namespace mlir::transept

#endif // TRANSEPT_TESTS_CONFORMANCE_WORKERS_H
