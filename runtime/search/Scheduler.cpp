#include "runtime/search/Scheduler.h"

#include "runtime/search/AllowedTokens.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <new>
#include <numeric>
#include <stdexcept>

namespace transept::search {

namespace {

/// Source positions of a call of the encoder: enough rows for products at full speed.
constexpr int64_t encodedPositions = 256;
/// Slots are a multiple of this long, so that the session is set up less often.
constexpr int64_t slotStep = 16;
/// Where a batch begins together, so are its sources; padding is computed then.
constexpr int64_t sourceStep = 8;
/// How many times the batch may be admitted past a request.
constexpr int64_t patience = 8;

int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Runs what may run out of memory.
template <typename Body> Status withMemory(size_t requests, Body body) {
  const char *words = " requests; lower max_length, num_beams or the batch";
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return {Code::OutOfMemory, "no memory for a batch of " + std::to_string(requests) + words};
  } catch (const std::length_error &) {
    return {Code::OutOfMemory, "no memory for a batch of " + std::to_string(requests) + words};
  }
}

} // namespace

//===-- Waiting
//----------------------------------------------------------------------------------------------------===//

void Scheduler::add(Request &request, bool open) {
  auto ticket = std::make_unique<Ticket>();
  const Settings &settings = request.settings;
  request.hypotheses.clear();
  ticket->request = &request;
  ticket->open = open;
  ticket->order = nextOrder_++;
  ticket->passed = admitted_;
  ticket->key = inputs_.shapeKey(request.source);
  if (!stepper_.incremental())
    ticket->key += " prompt " + std::to_string(settings.prompt().size());
  RequestSearch::Extent extent =
      RequestSearch::extentOf(settings, stepper_.vocabulary(), stepper_.positions(), request.source.ids);
  Demand &needs = ticket->needs;
  needs.source = inputs_.length(request.source);
  needs.rows = settings.width();
  needs.positions = std::max<int64_t>(extent.limit - 1, 1);
  needs.specials = std::max<int64_t>(extent.specials, 1);
  needs.topk = std::min(settings.candidates(), stepper_.vocabulary());
  needs.listed = AllowedTokens::most(settings);
  ++(open ? open_ : closed_);
  insertPending(std::move(ticket));
}

void Scheduler::insertPending(std::unique_ptr<Ticket> ticket) {
  auto before = [](const std::unique_ptr<Ticket> &a, const std::unique_ptr<Ticket> &b) {
    return a->needs.source != b->needs.source ? a->needs.source > b->needs.source : a->order < b->order;
  };
  pending_.insert(std::upper_bound(pending_.begin(), pending_.end(), ticket, before), std::move(ticket));
}

size_t Scheduler::oldestPending() const {
  auto older = [](const std::unique_ptr<Ticket> &a, const std::unique_ptr<Ticket> &b) { return a->order < b->order; };
  return static_cast<size_t>(std::min_element(pending_.begin(), pending_.end(), older) - pending_.begin());
}

/// Nobody waits for one of several that were given together.
bool Scheduler::overdue(const Ticket &ticket) const {
  return open_ > 0 && admitted_ - ticket.passed > patience * most_;
}

std::vector<Request *> Scheduler::collect() {
  std::vector<Request *> done;
  std::swap(done, done_);
  return done;
}

void Scheduler::forgetAll(bool openToo) {
  auto forgotten = [&](const std::unique_ptr<Ticket> &ticket) { return openToo || !ticket->open; };
  for (Tickets *tickets : {&pending_, &encoded_, &live_}) {
    for (const auto &ticket : *tickets)
      if (forgotten(ticket)) {
        --(ticket->open ? open_ : closed_);
        batch_.remove(ticket->member);
        if (tickets != &pending_ && rolling_)
          freeSlots_.push_back(ticket->member.source);
      }
    tickets->erase(std::remove_if(tickets->begin(), tickets->end(), forgotten), tickets->end());
  }
  if (openToo)
    done_.clear();
}

//===-- Joining
//----------------------------------------------------------------------------------------------------===//

/// Whether shorter sources may share a batch with this one.
bool Scheduler::padsSourcesOf(const Ticket &ticket) const {
  return inputs_.any() && inputs_.pads() && !inputs_.fixedLength() && ticket.request->source.tensors.empty();
}

bool Scheduler::hasPlace(int64_t padded) const {
  int64_t positions = padded;
  for (const auto &ticket : live_)
    positions += ticket->padded;
  return live_.empty() || (static_cast<int64_t>(live_.size()) < most_ && positions <= mostPositions_);
}

int64_t Scheduler::sourcesIn(int64_t positions, int64_t length, int64_t most) {
  return std::clamp<int64_t>(positions / std::max<int64_t>(length, 1), 1, most);
}

int64_t Scheduler::paddedLength(int64_t longest) const {
  return inputs_.fixedLength() ? inputs_.fixedLength() : longest;
}

int64_t Scheduler::lengthTogether(const Ticket &longest) const {
  const int64_t length = paddedLength(longest.needs.source);
  if (!padsSourcesOf(longest))
    return length;
  const int64_t rounded = roundUp(length, sourceStep), limit = stepper_.sourceLimit();
  return limit > 0 ? std::min(rounded, limit) : rounded;
}

Demand Scheduler::demandOf(const std::vector<const Ticket *> &tickets) const {
  Demand demand;
  std::vector<int64_t> widths, lists;
  for (const Ticket *ticket : tickets) {
    widths.push_back(ticket->needs.rows);
    lists.push_back(ticket->needs.listed);
    demand.source = std::max(demand.source, ticket->needs.source);
    demand.positions = std::max(demand.positions, ticket->needs.positions);
    demand.specials = std::max(demand.specials, ticket->needs.specials);
    demand.topk = std::max(demand.topk, ticket->needs.topk);
  }
  auto sumOfLargest = [&](std::vector<int64_t> &values) {
    std::sort(values.begin(), values.end(), std::greater<int64_t>());
    values.resize(std::min(values.size(), static_cast<size_t>(most_)));
    return std::accumulate(values.begin(), values.end(), int64_t(0));
  };
  demand.rows = sumOfLargest(widths);
  demand.listed = sumOfLargest(lists);
  demand.source = paddedLength(demand.source);
  return demand;
}

bool Scheduler::fits(const Ticket &ticket) const {
  const Demand &needs = ticket.needs, &have = stepper_.prepared();
  return !ticket.alone && ticket.key == key_ && needs.rows <= have.rows && needs.positions <= have.positions &&
         needs.specials <= have.specials && needs.topk <= have.topk && paddedLength(needs.source) <= have.source;
}

Status Scheduler::makeSearch(Ticket &ticket) const {
  const Request &request = *ticket.request;
  return withMemory(1, [&]() -> Status {
    ticket.search = RequestSearch::create(request.settings, stepper_.vocabulary(), stepper_.positions(),
                                          !stepper_.promptAtOnce(), request.source.ids);
    return {};
  });
}

void Scheduler::join(std::unique_ptr<Ticket> ticket) {
  ticket->member.search = ticket->search.get();
  ticket->member.status = {};
  if (ticket->request->source.tensors.empty() && inputs_.any())
    ticket->member.sourceLength = static_cast<int64_t>(ticket->request->source.ids.size());
  ticket->search->startClock();
  if (ticket->search->done())
    return finish(std::move(ticket), {});
  batch_.join(ticket->member);
  live_.push_back(std::move(ticket));
}

void Scheduler::admit() {
  while (live_.empty() && encoded_.empty() && !pending_.empty()) {
    rolling_ = false;
    start();
    if (rolling_)
      break;
  }
  if (!rolling_)
    return;
  const bool wasEmpty = live_.empty();
  const int64_t rows = stepper_.prepared().rows;
  do {
    while (!encoded_.empty() && hasPlace(encoded_.front()->padded) &&
           batch_.width() + encoded_.front()->needs.rows <= rows) {
      std::unique_ptr<Ticket> next = std::move(encoded_.front());
      encoded_.erase(encoded_.begin());
      join(std::move(next));
    }
  } while (encoded_.empty() && hasPlace(1) && batch_.width() < rows && encodeWaiting());
  // Every step gets on: where nobody could join an empty batch, the oldest one is computed for itself.
  if (wasEmpty && live_.empty() && !pending_.empty())
    pending_[oldestPending()]->alone = true;
}

/// Sets the session up for what waits, with nothing in it.
void Scheduler::start() {
  size_t oldest = oldestPending();
  key_ = pending_[oldest]->key;
  const bool alone = pending_[oldest]->alone;
  std::vector<const Ticket *> together; // the longest source first
  for (const auto &ticket : pending_)
    if (!alone && !ticket->alone && ticket->key == key_)
      together.push_back(ticket.get());
  const bool many =
      open_ > 0 || (!together.empty() && static_cast<int64_t>(together.size()) >
                                             sourcesIn(mostPositions_, lengthTogether(*together[0]), most_));
  if (!alone && many && stepper_.takesSourcesInBetween() && !inputs_.fixedBatch()) {
    Demand demand = demandOf(together);
    const Demand &have = stepper_.prepared();
    if (padsSourcesOf(*pending_[oldest])) {
      demand.source = roundUp(demand.source, slotStep);
      if (have.source > demand.source && have.source <= 2 * demand.source)
        demand.source = have.source;
      if (int64_t limit = stepper_.sourceLimit(); limit > 0)
        demand.source = std::min(demand.source, limit);
    }
    demand.rows = std::max(demand.rows, most_);
    ahead_ = sourcesIn(std::min(encodedPositions, mostPositions_), demand.source, most_);
    demand.batch = most_ + 2 * ahead_ + 1;
    Status status = withMemory(together.size(), [&] { return stepper_.prepare(demand); });
    if (status.ok()) {
      rolling_ = true;
      freeSlots_.clear();
      for (int64_t slot = demand.batch - 1; slot-- > ahead_;) // the lowest is taken first
        freeSlots_.push_back(static_cast<int32_t>(slot));
      return;
    }
    pending_[oldest]->alone = true; // together they need too much
    return;
  }
  Tickets group;
  size_t next = alone || overdue(*pending_[oldest]) ? oldest : 0;
  const int64_t most = alone ? 1 : sourcesIn(mostPositions_, lengthTogether(*pending_[next]), most_);
  while (next < pending_.size() && static_cast<int64_t>(group.size()) < most) {
    if (pending_[next]->key != key_ || pending_[next]->alone != alone) {
      ++next;
      continue;
    }
    group.push_back(std::move(pending_[next]));
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(next));
  }
  startTogether(std::move(group));
}

/// A batch whose members begin together, in a session that has room for no others.
void Scheduler::startTogether(Tickets group) {
  Tickets ready;
  std::vector<const Ticket *> tickets;
  for (auto &ticket : group) {
    if (Status status = makeSearch(*ticket); !status.ok()) {
      finish(std::move(ticket), status);
      continue;
    }
    tickets.push_back(ticket.get());
    ready.push_back(std::move(ticket));
  }
  if (ready.empty())
    return;
  if (ready.size() == 1)
    ready[0]->alone = true;
  Demand demand = demandOf(tickets);
  demand.source = lengthTogether(*ready[0]);
  const int64_t most = sourcesIn(mostPositions_, demand.source, most_);
  // Few different batch sizes, so that the session is set up less often.
  demand.batch = inputs_.fixedBatch();
  if (!demand.batch)
    for (demand.batch = 1; demand.batch < static_cast<int64_t>(ready.size());)
      demand.batch = std::min(demand.batch * 2, std::max<int64_t>(most, static_cast<int64_t>(ready.size())));
  Status status = withMemory(ready.size(), [&]() -> Status {
    TRANSEPT_TRY(stepper_.prepare(demand));
    return assembleAndEncode(ready, &demand, demand.source);
  });
  if (!status.ok())
    return retryAlone(std::move(ready), status);
  for (size_t i = 0; i < ready.size(); ++i) {
    ++admitted_;
    ready[i]->member.source = static_cast<int32_t>(i);
    join(std::move(ready[i]));
  }
}

/// The sources of `group`: as the whole batch of the session, or into the slots of its members.
Status Scheduler::assembleAndEncode(Tickets &group, const Demand *whole, int64_t length) {
  std::vector<const Source *> sources;
  std::vector<SlotMove> moves;
  const int64_t batch = whole ? whole->batch : static_cast<int64_t>(group.size());
  counts_.encodes += inputs_.any();
  counts_.positions += batch * length;
  counts_.padding += batch * length;
  for (const auto &ticket : group) {
    moves.push_back({static_cast<int64_t>(sources.size()), ticket->member.source, ticket->needs.source});
    sources.push_back(&ticket->request->source);
    counts_.padding -= ticket->needs.source;
    ticket->padded = length;
  }
  TRANSEPT_ASSIGN(RunArguments arguments, inputs_.assemble(sources, batch, length));
  return whole ? stepper_.encode(arguments) : stepper_.encode(std::move(arguments), batch, length, moves);
}

/// Encodes sources of some that wait, like lengths together. Whether there were any that fit.
bool Scheduler::encodeWaiting() {
  if (pending_.empty())
    return false;
  size_t seed = oldestPending();
  if (!overdue(*pending_[seed]))
    for (seed = 0; seed < pending_.size() && !fits(*pending_[seed]);)
      ++seed;
  if (seed == pending_.size() || !fits(*pending_[seed]))
    return false; // what waits comes when the others are done
  const int64_t longest = paddedLength(pending_[seed]->needs.source);
  int64_t length = longest;
  // A position of padding says what is behind a source in its slot.
  if (padsSourcesOf(*pending_[seed]) && !stepper_.knowsPadding() && length < stepper_.prepared().source)
    ++length;
  const size_t most =
      static_cast<size_t>(sourcesIn(std::min(encodedPositions, mostPositions_), length,
                                    std::min<int64_t>(ahead_, static_cast<int64_t>(freeSlots_.size()))));
  Tickets group;
  for (size_t next = seed; next < pending_.size() && group.size() < most;) {
    Ticket &ticket = *pending_[next];
    if (ticket.needs.source * 4 < longest * 3) // the others are shorter still
      break;
    if (!fits(ticket)) {
      ++next;
      continue;
    }
    group.push_back(std::move(pending_[next]));
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(next));
  }
  Tickets ready;
  for (auto &ticket : group) {
    if (Status status = makeSearch(*ticket); !status.ok()) {
      finish(std::move(ticket), status);
      continue;
    }
    ticket->member.source = freeSlots_.back();
    freeSlots_.pop_back();
    ready.push_back(std::move(ticket));
  }
  if (ready.empty())
    return true;
  Status status = withMemory(ready.size(), [&] { return assembleAndEncode(ready, nullptr, length); });
  if (!status.ok()) {
    for (const auto &ticket : ready)
      freeSlots_.push_back(ticket->member.source);
    retryAlone(std::move(ready), status);
    return true;
  }
  for (auto &ticket : ready) {
    ++admitted_;
    encoded_.push_back(std::move(ticket));
  }
  return true;
}

//===-- Leaving
//----------------------------------------------------------------------------------------------------===//

void Scheduler::finish(std::unique_ptr<Ticket> ticket, const Status &status) {
  Request &request = *ticket->request;
  request.status = status;
  request.outputTokens = 0;
  if (ticket->search) {
    request.promptTokens = ticket->search->promptLength();
    if (status.ok())
      request.hypotheses = ticket->search->hypotheses();
  }
  for (const Hypothesis &hypothesis : request.hypotheses)
    request.outputTokens += static_cast<int64_t>(hypothesis.ids.size()) - request.promptTokens;
  --(ticket->open ? open_ : closed_);
  if (ticket->open)
    done_.push_back(&request);
}

void Scheduler::retryAlone(Tickets tickets, const Status &status) {
  for (auto &ticket : tickets) {
    if (ticket->alone) {
      finish(std::move(ticket), status);
      continue;
    }
    ticket->alone = true;
    ticket->search.reset();
    insertPending(std::move(ticket));
  }
}

void Scheduler::failStep(const Status &status) {
  batch_.clear();
  rolling_ = false;
  for (auto &ticket : encoded_) {
    ticket->search.reset();
    insertPending(std::move(ticket));
  }
  encoded_.clear();
  Tickets failed;
  std::swap(failed, live_);
  retryAlone(std::move(failed), status);
}

Status Scheduler::step() {
  if (cancelled_ && cancelled_->load(std::memory_order_relaxed) && open_ + closed_ > 0)
    return {Code::Cancelled, "interrupted"};
  admit();
  if (live_.empty())
    return {};
  int64_t positions = 0;
  for (const auto &ticket : live_) {
    counts_.rows += ticket->search->rows();
    positions += ticket->padded;
  }
  counts_.peak = std::max(counts_.peak, positions);
  ++counts_.steps;
  const auto begin = std::chrono::steady_clock::now();
  Status status = withMemory(live_.size(), [&] { return batch_.step(); });
  if (observer_ && status.ok())
    observer_(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  if (status.code() == Code::Cancelled)
    return status;
  if (!status.ok()) {
    failStep(status);
    return {};
  }
  for (size_t i = 0; i < live_.size();) {
    const Request &request = *live_[i]->request;
    const RequestSearch &search = *live_[i]->search;
    if (live_[i]->member.active()) {
      if (request.settings.stream && request.onTokens) {
        Span<const int64_t> certain = search.certain();
        const size_t prompt = static_cast<size_t>(search.promptLength());
        if (certain.size() > prompt)
          request.onTokens({certain.data() + prompt, certain.size() - prompt});
      }
      ++i;
      continue;
    }
    std::unique_ptr<Ticket> ticket = std::move(live_[i]);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
    batch_.remove(ticket->member);
    if (rolling_)
      freeSlots_.push_back(ticket->member.source);
    const Status own = ticket->member.status;
    finish(std::move(ticket), own);
  }
  return {};
}

} // namespace transept::search
