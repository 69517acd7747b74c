// Which requests are computed together, and when each one joins.
#ifndef TRANSEPT_RUNTIME_SEARCH_SCHEDULER_H
#define TRANSEPT_RUNTIME_SEARCH_SCHEDULER_H

#include "runtime/search/Batch.h"
#include "runtime/search/Request.h"
#include "runtime/search/SessionStepper.h"
#include "runtime/search/Source.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace transept::search {

/// What is computed together.
struct BatchLimits {
  int64_t requests = 16;
  /// Source positions of the requests in a step, each source as long as it was padded for its encoding, and of a call
  /// of the encoder; one request alone may have more. 0: no limit.
  int64_t sourcePositions = 0;
};

/// What was computed since the scheduler was made.
struct SchedulerCounts {
  int64_t steps = 0, rows = 0;                     // rows: in all steps together
  int64_t peak = 0;                                // most source positions of a step, as padded for their encoding
  int64_t encodes = 0, positions = 0, padding = 0; // source positions, padding included, and padding alone
};

/// Where a model's sources can be kept apart, a request joins as soon as another one leaves: sources are encoded a few
/// at a time, like lengths together, into slots that are free. Where they cannot, or where all requests fit into one
/// batch, a batch begins together. One thread at a time.
class Scheduler {
public:
  /// All of them outlive it. `cancelled` may be null.
  Scheduler(EncoderInputs &inputs, SessionStepper &stepper, BatchLimits limits, const std::atomic<bool> *cancelled)
      : inputs_(inputs), stepper_(stepper), most_(limits.requests > 0 ? limits.requests : 1),
        mostPositions_(limits.sourcePositions > 0 ? limits.sourcePositions : INT64_MAX), cancelled_(cancelled),
        batch_(stepper) {}

  /// Both kinds of requests must stay where they are until they are done or forgotten. An open one comes back by
  /// collect(), and others may follow it any time; of others, all are there before the next step.
  void add(Request &request, bool open);
  /// Lets waiting requests join and makes one step; nothing where there is none. Fails only with Code::Cancelled.
  Status step();

  /// Open requests that are done since the last call.
  std::vector<Request *> collect();
  /// Requests that are not open and not done.
  int64_t closed() const { return closed_; }

  void forget() { forgetAll(/*openToo=*/true); }
  void forgetClosed() { forgetAll(/*openToo=*/false); }

  const SchedulerCounts &counts() const { return counts_; }

  /// `observer` is told after each step that succeeded how many nanoseconds it took, the search counted and the
  /// encoding of sources not.
  void observeSteps(std::function<void(int64_t)> observer) { observer_ = std::move(observer); }

private:
  struct Ticket {
    Request *request = nullptr;
    bool open = false;
    bool alone = false; // to be computed for itself, for instance after what it was in has failed as a whole
    uint64_t order = 0; // of arrival
    int64_t passed = 0; // requests that had been admitted when it arrived
    std::string key;    // equal keys may share a batch
    Demand needs;       // its own; `batch` has no meaning
    int64_t padded = 0; // source positions, as encoded
    std::unique_ptr<RequestSearch> search;
    BatchMember member;
  };
  using Tickets = std::vector<std::unique_ptr<Ticket>>;

  bool padsSourcesOf(const Ticket &ticket) const;
  /// Whether there is room for a request whose source was padded to so many positions; for one alone there always is.
  bool hasPlace(int64_t padded) const;
  /// Sources of `length` positions that have `positions` together, at least one, at most `most`.
  static int64_t sourcesIn(int64_t positions, int64_t length, int64_t most);
  /// Positions of the encoder's input for sources of at most this many.
  int64_t paddedLength(int64_t longest) const;
  /// The same of a batch that begins together, of which this one has the longest source.
  int64_t lengthTogether(const Ticket &longest) const;
  void insertPending(std::unique_ptr<Ticket> ticket);
  size_t oldestPending() const;
  bool overdue(const Ticket &ticket) const;
  bool fits(const Ticket &ticket) const;
  Demand demandOf(const std::vector<const Ticket *> &tickets) const;

  Status makeSearch(Ticket &ticket) const;
  Status assembleAndEncode(Tickets &group, const Demand *whole, int64_t length);

  void admit();
  void start();
  void startTogether(Tickets group);
  bool encodeWaiting();
  void join(std::unique_ptr<Ticket> ticket);
  /// All of them again, each alone.
  void retryAlone(Tickets tickets, const Status &status);
  void failStep(const Status &status);
  void finish(std::unique_ptr<Ticket> ticket, const Status &status);
  void forgetAll(bool openToo);

  EncoderInputs &inputs_;
  SessionStepper &stepper_;
  const int64_t most_, mostPositions_; // requests, source positions
  const std::atomic<bool> *const cancelled_;
  Batch batch_;

  Tickets pending_; // the longest sources first, equal ones in order of arrival
  Tickets encoded_; // in the order in which they join
  Tickets live_;
  std::vector<Request *> done_;
  uint64_t nextOrder_ = 0;
  int64_t open_ = 0, closed_ = 0, admitted_ = 0;

  bool rolling_ = false;           // whether requests may join what is live
  std::string key_;                // of what is live
  int64_t ahead_ = 1;              // most sources of a call of the encoder, whose first slots are kept for it
  std::vector<int32_t> freeSlots_; // the others, but for the last one, which is the stepper's
  SchedulerCounts counts_;
  std::function<void(int64_t)> observer_; // may be empty
};

} // namespace transept::search

#endif
