// Several sessions over one model, which take requests from one queue.
#ifndef TRANSEPT_RUNTIME_SEARCH_GENERATORPOOL_H
#define TRANSEPT_RUNTIME_SEARCH_GENERATORPOOL_H

#include "runtime/search/Generator.h"
#include "runtime/search/RequestQueue.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace transept::search {

/// Requests come and go as with one Generator, and have the same answers. Weights are the model's; each session has
/// states and an arena of its own, from its first request on. With one session nothing runs in another thread. One
/// thread at a time.
class GeneratorPool {
public:
  /// `options.threads` are shared out among `sessions`; each has at least one. Fails like Generator::create().
  static Result<std::unique_ptr<GeneratorPool>> create(std::shared_ptr<const Model> model,
                                                       std::shared_ptr<const Tokenizer> tokenizer,
                                                       const GeneratorOptions &options, int sessions);
  ~GeneratorPool() { forget(); }
  GeneratorPool(const GeneratorPool &) = delete;
  GeneratorPool &operator=(const GeneratorPool &) = delete;

  /// Reads requests and makes answers, also while sessions compute. With all threads, it computes what comes while
  /// nothing else is in work: who sends one request at a time waits for one step after the other, and one that streams
  /// must be the only one, to be told of in the thread that calls step().
  Generator &front() { return *front_; }

  int sessions() const { return workers_.empty() ? 1 : static_cast<int>(workers_.size()); }

  /// `request`, whose status is ok, must stay where it is until collect() returns it or forget() was called.
  void submit(Request &request);
  /// Hands over what was submitted since the last call, and waits until some requests are done, but not for long. Fails
  /// only on cancellation, and then until forget().
  Status step();
  /// Submitted requests that are done since the last call, each with its own status.
  std::vector<Request *> collect();
  /// Drops all requests that were submitted and not collected; waits for steps in progress.
  void forget();

  /// Requests that session `index` has answered; of the front, -1.
  int64_t answered(int index) const;

private:
  struct Worker {
    std::unique_ptr<Generator> generator;
    std::thread thread;
    int64_t held = 0; // unfinished requests that its generator has
    int64_t answered = 0;
  };

  GeneratorPool(const GeneratorOptions &options, int sessions);
  /// Whether there is one at least.
  bool startThreads();
  void work(Worker &worker);
  Status stepFront();

  const int64_t batch_;
  std::unique_ptr<Generator> front_;
  std::vector<std::unique_ptr<Worker>> workers_; // none where the front is the only session
  std::vector<Request *> staged_;                // submitted since the last step
  int64_t unfinished_ = 0;                       // submitted and not collected
  int64_t frontHeld_ = 0, frontAnswered_ = 0;

  mutable std::mutex mutex_; // of what follows, and of the counts of workers
  std::condition_variable toDo_, toCollect_;
  RequestQueue queue_;
  std::vector<Request *> done_;
  Status failure_; // of a session as a whole
  int64_t heldByAll_ = 0, running_ = 0;
  bool stopping_ = false;
};

} // namespace transept::search

#endif
