#include "runtime/Session.h"

#include "runtime/BindSymbols.h"
#include "runtime/Plan.h"
#include "runtime/SessionState.h"
#include "runtime/ThreadTeam.h"

#include <algorithm>

namespace transept {

namespace {

/// Marks a session as in use.
class Occupied {
public:
  explicit Occupied(std::atomic<bool> &flag) : flag_(flag), mine_(!flag.exchange(true, std::memory_order_acquire)) {}
  ~Occupied() {
    if (mine_)
      flag_.store(false, std::memory_order_release);
  }
  explicit operator bool() const { return mine_; }
  static Status busy() { return {Code::Busy, "the session is in use by another thread"}; }

private:
  std::atomic<bool> &flag_;
  bool mine_;
};

/// The manifest's sentence for a check that failed in a kernel.
Status checkFailure(const program::Manifest &manifest, const transept_error_word &error) {
  if (error.id < 1 || error.id > manifest.checks_size())
    return {Code::Internal, "a kernel reported unknown error " + std::to_string(error.id)};
  std::string message = manifest.checks(error.id - 1).message();
  if (size_t place = message.find("{}"); place != std::string::npos)
    message.replace(place, 2, std::to_string(error.value));
  return {Code::InvalidInput, printable(message, 400)};
}

} // namespace

Session::Session() : state_(std::make_unique<State>()) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Model> model, const SessionOptions &options) {
  std::unique_ptr<Session> session(new Session);
  State &state = *session->state_;
  state.team = ThreadTeam::create(options.threads);
  state.plans.resize(static_cast<size_t>(model->manifest().entries_size()));
  state.model = std::move(model);
  const Device &device = state.model->device();
  TRANSEPT_ASSIGN(state.executor, device.createExecutor(*state.team, state.model->trace()));
  TRANSEPT_ASSIGN(state.error, device.allocate(sizeof(transept_error_word), Access::Shared));
  TRANSEPT_TRY(state.setSymbols(options.symbols));
  return session;
}

const Model &Session::model() const { return *state_->model; }
int Session::threads() const { return state_->team->size(); }
ThreadTeam &Session::team() { return *state_->team; }

Status Session::resize(const SymbolValues &symbols) {
  Occupied occupied(state_->busy);
  return occupied ? state_->setSymbols(symbols) : Occupied::busy();
}

int64_t Session::symbol(std::string_view name) const {
  const auto &symbols = model().manifest().generation_symbols();
  for (int i = 0; i < symbols.size(); ++i)
    if (symbols[i].name() == name)
      return state_->symbols[static_cast<size_t>(i)];
  return -1;
}

TensorView Session::state(std::string_view name) const {
  const auto &states = model().manifest().states();
  for (int i = 0; i < states.size(); ++i) {
    auto index = static_cast<size_t>(i);
    if (states[i].name() == name)
      return {states[i].name(), states[i].dtype(), state_->layout.dims[index],
              state_->layout.places[index].place.host(), static_cast<int64_t>(state_->layout.places[index].bytes)};
  }
  return {};
}

Status Session::readState(std::string_view name, void *to, uint64_t bytes) {
  Occupied occupied(state_->busy);
  if (!occupied)
    return Occupied::busy();
  const auto &states = model().manifest().states();
  for (int i = 0; i < states.size(); ++i) {
    const StatePlace &state = state_->layout.places[static_cast<size_t>(i)];
    if (states[i].name() == name && bytes <= state.bytes)
      return state_->executor->read(state.place, to, bytes);
  }
  return {Code::InvalidInput,
          "there is no state '" + printable(std::string(name)) + "' of " + std::to_string(bytes) + " bytes"};
}

Status Session::copyInStates(Span<const StateCopy> copies) {
  Occupied occupied(state_->busy);
  if (!occupied)
    return Occupied::busy();
  const std::vector<StatePlace> &places = state_->layout.places;
  std::array<std::vector<MemoryCopy>, accessKinds> inMemory;
  for (const StateCopy &copy : copies) {
    const uint64_t size = copy.state < places.size() ? places[copy.state].bytes : 0;
    if (copy.bytes > size || copy.from > size - copy.bytes || copy.to > size - copy.bytes)
      return {Code::Internal, "a copy lies outside of its state"};
    const uint64_t begin = places[copy.state].place.offset;
    inMemory[static_cast<size_t>(state_->layout.access[copy.state])].push_back(
        {begin + copy.from, begin + copy.to, copy.bytes});
  }
  for (size_t access = 0; access < accessKinds; ++access)
    if (!inMemory[access].empty())
      TRANSEPT_TRY(state_->executor->copy(*state_->states[access], inMemory[access]));
  return {};
}

Span<const TensorView> Session::outputs() const { return state_->outputs; }

TensorView Session::output(std::string_view name) const {
  for (const TensorView &output : state_->outputs)
    if (output.name == name)
      return output;
  return {};
}

MemoryUse Session::memory() const {
  MemoryUse use;
  use.weights = model().artifact().weightBytes();
  for (size_t i = 0; i < accessKinds; ++i) {
    use.states += state_->layout.totals[i];
    use.reserved += state_->states[i]->size() + state_->arenas[0][i]->size();
  }
  for (const auto &plans : state_->plans)
    for (const auto &plan : plans)
      use.arena = std::max(use.arena, plan->arenaBytes(Access::Kernels) + plan->arenaBytes(Access::Shared));
  use.scratch = state_->executor->scratchBytes();
  return use;
}

bool Session::runsInTurn() const { return state_->executor->runsInTurn(); }

Status Session::runInTurn(std::string_view first, std::string_view second, int32_t count, Span<const KeptState> kept,
                          uint8_t *log) {
  Occupied occupied(state_->busy);
  if (!occupied)
    return Occupied::busy();
  Plan *plans[2];
  for (size_t i = 0; i < 2; ++i) {
    int index = model().findEntry(i == 0 ? first : second);
    if (index < 0)
      return {Code::Internal, "there is no entry to run in turn"};
    TRANSEPT_ASSIGN(plans[i], state_->prepare(index, {}));
    if (plans[i]->segments() != 1 || !plans[i]->inputs().empty())
      return {Code::Internal, "entry '" + model().manifest().entries(index).name() + "' cannot run in turn"};
  }
  std::vector<KeptRange> &ranges = state_->kept;
  ranges.clear();
  const auto &states = model().manifest().states();
  for (const KeptState &wanted : kept)
    for (int i = 0; i < states.size(); ++i) {
      const StatePlace &state = state_->layout.places[static_cast<size_t>(i)];
      if (states[i].name() == wanted.name && wanted.bytes <= state.bytes)
        ranges.push_back({state.place, wanted.bytes});
    }
  if (ranges.size() != kept.size())
    return {Code::Internal, "a state that is to be kept is not there or too small"};
  state_->errorWord() = {};
  state_->outputs.clear();
  TRANSEPT_TRY(
      state_->executor->runInTurn(*plans[0], *plans[1], count, {ranges.data(), ranges.size()}, log, cancelled_));
  return state_->errorWord().id == 0 ? Status() : checkFailure(model().manifest(), state_->errorWord());
}

Status Session::run(std::string_view entry) {
  static const RunArguments none;
  return run(entry, none);
}

Status Session::run(std::string_view entry, const RunArguments &arguments) {
  Occupied occupied(state_->busy);
  if (!occupied)
    return Occupied::busy();
  if (cancelled())
    return {Code::Cancelled, "cancelled"};
  int index = model().findEntry(entry);
  if (index < 0)
    return {Code::InvalidInput, "there is no entry '" + printable(std::string(entry)) + "'; the model has " +
                                    entryNames(model().manifest())};
  TRANSEPT_ASSIGN(Plan * plan, state_->prepare(index, arguments));
  TRANSEPT_TRY(copyInputs(*plan, arguments.inputs));
  state_->errorWord() = {};
  state_->outputs.clear();
  for (size_t segment = 0; segment < plan->segments();) {
    TRANSEPT_TRY(state_->executor->run(*plan, cancelled_));
    if (segment != 0 && cancelled())
      return {Code::Cancelled, "cancelled"};
    if (state_->errorWord().id != 0)
      return checkFailure(model().manifest(), state_->errorWord());
    TRANSEPT_ASSIGN(segment, plan->finish(model()));
    if (segment < plan->segments())
      TRANSEPT_TRY(state_->enter(*plan, segment));
  }
  for (const PlannedTensor &output : plan->outputs()) {
    if (!output.data)
      return {Code::ArtifactRefused, "output '" + printable(output.buffer->name()) + "' was never computed"};
    state_->outputs.push_back({output.buffer->name(), output.buffer->dtype(), output.dims, output.data, output.bytes});
  }
  return {};
}

} // namespace transept
