#include "runtime/search/GeneratorPool.h"

#include "runtime/ThreadTeam.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <system_error>

namespace transept::search {

namespace {

/// How long a step waits: as long as the caller may leave new input alone.
constexpr std::chrono::milliseconds pause(2);
/// How many times the batches may be filled past a request; as in the scheduler.
constexpr int64_t patience = 8;

/// A step of what runs in a thread of its own, out of which nothing is thrown.
Status stepSafely(Generator &generator, const std::vector<Request *> &taken) {
  try {
    for (Request *request : taken)
      generator.submit(*request);
    return generator.step();
  } catch (const std::bad_alloc &) {
    return {Code::OutOfMemory, "no memory for another request"};
  } catch (const std::exception &error) {
    return {Code::Internal, error.what()};
  }
}

} // namespace

GeneratorPool::GeneratorPool(const GeneratorOptions &options, int sessions)
    : batch_(std::max<int64_t>(options.batch, 1)), queue_(patience * batch_ * sessions) {}

Result<std::unique_ptr<GeneratorPool>> GeneratorPool::create(std::shared_ptr<const Model> model,
                                                             std::shared_ptr<const Tokenizer> tokenizer,
                                                             const GeneratorOptions &options, int sessions) {
  std::unique_ptr<GeneratorPool> pool(new GeneratorPool(options, std::max(sessions, 1)));
  TRANSEPT_ASSIGN(pool->front_, Generator::create(model, tokenizer, options));
  const int threads = options.threads > 0 ? options.threads : availableThreads();
  for (int i = 0; sessions > 1 && i < sessions; ++i) {
    GeneratorOptions own = options;
    own.threads = std::max(threads / sessions + (i < threads % sessions), 1);
    pool->workers_.push_back(std::make_unique<Worker>());
    TRANSEPT_ASSIGN(pool->workers_.back()->generator, Generator::create(model, tokenizer, own));
  }
  return pool;
}

void GeneratorPool::submit(Request &request) {
  staged_.push_back(&request);
  ++unfinished_;
}

bool GeneratorPool::startThreads() {
  int64_t running = 0;
  for (const auto &worker : workers_) {
    if (!worker->thread.joinable()) {
      try {
        worker->thread = std::thread([this, &worker = *worker] { work(worker); });
      } catch (const std::system_error &) {
        break; // as many as the system allows
      }
    }
    ++running;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  running_ = running;
  return running > 0;
}

void GeneratorPool::work(Worker &worker) {
  std::vector<Request *> taken;
  std::unique_lock<std::mutex> lock(mutex_);
  while (failure_.ok()) {
    toDo_.wait(lock, [&] { return stopping_ || worker.held > 0 || queue_.size() > 0; });
    if (stopping_)
      return;
    taken.clear();
    queue_.take(requestsToTake(queue_.size(), worker.held, heldByAll_, std::max<int64_t>(running_, 1), batch_), taken);
    worker.held += static_cast<int64_t>(taken.size());
    heldByAll_ += static_cast<int64_t>(taken.size());
    lock.unlock();
    Status status = stepSafely(*worker.generator, taken);
    std::vector<Request *> done = worker.generator->collect();
    lock.lock();
    worker.held -= static_cast<int64_t>(done.size());
    heldByAll_ -= static_cast<int64_t>(done.size());
    worker.answered += static_cast<int64_t>(done.size());
    done_.insert(done_.end(), done.begin(), done.end());
    if (failure_.ok())
      failure_ = std::move(status);
    if (!done.empty() || !failure_.ok())
      toCollect_.notify_one();
  }
}

Status GeneratorPool::stepFront() {
  Status status = front_->step();
  std::vector<Request *> done = front_->collect();
  frontHeld_ -= static_cast<int64_t>(done.size());
  frontAnswered_ += static_cast<int64_t>(done.size());
  std::lock_guard<std::mutex> lock(mutex_);
  done_.insert(done_.end(), done.begin(), done.end());
  return status.ok() ? failure_ : status;
}

Status GeneratorPool::step() {
  if (unfinished_ == 0)
    return {};
  const bool alone = unfinished_ == 1;
  if (!staged_.empty() && (workers_.empty() || alone || !startThreads())) {
    for (Request *request : staged_)
      front_->submit(*request);
    frontHeld_ += static_cast<int64_t>(staged_.size());
  } else if (!staged_.empty()) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Request *request : staged_)
      queue_.add(*request, front_->encoderInputs().length(request->source));
    toDo_.notify_all();
  }
  staged_.clear();
  if (frontHeld_ > 0)
    return stepFront();
  std::unique_lock<std::mutex> lock(mutex_);
  toCollect_.wait_for(lock, pause, [&] { return !done_.empty() || !failure_.ok(); });
  return failure_;
}

std::vector<Request *> GeneratorPool::collect() {
  std::vector<Request *> done;
  std::lock_guard<std::mutex> lock(mutex_);
  std::swap(done, done_);
  unfinished_ -= static_cast<int64_t>(done.size());
  return done;
}

void GeneratorPool::forget() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  toDo_.notify_all();
  for (const auto &worker : workers_) {
    if (worker->thread.joinable())
      worker->thread.join();
    if (worker->generator) // a pool that could not be made has one without
      worker->generator->forget();
    worker->held = 0;
  }
  if (front_)
    front_->forget();
  queue_.clear();
  staged_.clear();
  done_.clear();
  failure_ = {};
  unfinished_ = frontHeld_ = heldByAll_ = 0;
  stopping_ = false;
}

int64_t GeneratorPool::answered(int index) const {
  if (index < 0)
    return frontAnswered_;
  std::lock_guard<std::mutex> lock(mutex_);
  return workers_[static_cast<size_t>(index)]->answered;
}

} // namespace transept::search
