#include "runtime/Plan.h"

#include "runtime/Expr.h"

#include <algorithm>
#include <cstring>

namespace transept {

namespace {
constexpr uint64_t alignment = TRANSEPT_BUFFER_ALIGNMENT;

const char *relationText(program::Guard::Relation relation) {
  switch (relation) {
  case program::Guard::EQ:
    return "equal";
  case program::Guard::LE:
    return "at most";
  case program::Guard::GE:
    return "at least";
  default:
    return "other than";
  }
}

bool holds(program::Guard::Relation relation, int64_t left, int64_t right) {
  switch (relation) {
  case program::Guard::EQ:
    return left == right;
  case program::Guard::LE:
    return left <= right;
  case program::Guard::GE:
    return left >= right;
  default:
    return left != right;
  }
}
} // namespace

std::string describeSymbols(const program::Entry &entry, Span<const int64_t> values) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] >= 0)
      out += (out.empty() ? "" : ", ") + entry.symbols(static_cast<int>(i)).name() + "=" + std::to_string(values[i]);
  return out.empty() ? "no symbols" : out;
}

Result<int64_t> denseBytes(DType dtype, const google::protobuf::RepeatedPtrField<program::Expr> &exprs,
                           Span<const int64_t> symbols, std::vector<int64_t> &dims) {
  int64_t bytes = dtypeSize(dtype);
  dims.clear();
  for (const program::Expr &expr : exprs) {
    TRANSEPT_ASSIGN(int64_t dim, evaluateExpr(expr, symbols));
    if (dim < 0)
      return Status(Code::InvalidInput, "a dimension would be " + std::to_string(dim));
    if (!checkedMul(bytes, dim, bytes))
      return Status(Code::LimitExceeded, "a size does not fit in 64 bits");
    dims.push_back(dim);
  }
  return bytes;
}

/// The steps of Plan::enter.
class Planner {
public:
  Planner(const Model &model, Plan &plan, const PlanMemory &memory)
      : model_(model), entry_(model.manifest().entries(plan.entry_)),
        segment_(entry_.segments(static_cast<int>(plan.segment_))), memory_(memory), plan_(plan) {}

  Status run() {
    TRANSEPT_TRY(assign());
    TRANSEPT_TRY(checkGuards());
    Status status = placeBuffers();
    return status.ok() ? planDispatches() : status;
  }

private:
  Status assign();
  Status checkGuards() const;
  Status placeBuffers();
  Status placeBuffer(const program::Buffer &buffer, Plan::Place &place);
  Status placeInArena(const program::Buffer &buffer, Plan::Place &place, PlannedTensor *tensor);
  Status placeState(const program::Buffer &buffer, Plan::Place &place, int64_t bytes) const;
  Status planDispatches();

  Result<int64_t> evaluate(const program::Expr &expr) const;
  Status misplaced(const program::Buffer &buffer, const std::string &why) const {
    return {Code::ArtifactRefused, "buffer '" + printable(buffer.name()) + "' " + why};
  }

  const Model &model_;
  const program::Entry &entry_;
  const program::Segment &segment_;
  const PlanMemory &memory_;
  Plan &plan_;
  uint64_t programArena_ = 0; // without inputs and outputs
};

/// A value that a symbol may have.
static Status checkSymbol(const program::Entry &entry, int index, int64_t value) {
  const program::Symbol &symbol = entry.symbols(index);
  if (value >= symbol.min() && (symbol.max() == 0 || value <= symbol.max()))
    return {};
  return {Code::InvalidInput,
          "'" + printable(symbol.name()) + "' is " + std::to_string(value) + ", entry '" + printable(entry.name()) +
              "' takes " +
              (symbol.max() == 0 ? std::to_string(symbol.min()) + " or more"
                                 : std::to_string(symbol.min()) + " to " + std::to_string(symbol.max()))};
}

Result<int64_t> Planner::evaluate(const program::Expr &expr) const {
  for (const program::Expr::Term &term : expr.terms())
    if (term.op() == program::Expr::SYMBOL && plan_.values_[static_cast<size_t>(term.value())] < 0)
      return Status(Code::ArtifactRefused, "a size depends on '" +
                                               printable(entry_.symbols(static_cast<int>(term.value())).name()) +
                                               "', which is not known yet");
  return evaluateExpr(expr, plan_.values_);
}

Status Planner::assign() {
  if (segment_.assignments_size() == 0)
    return {};
  std::vector<int64_t> values;
  for (const program::Assignment &assignment : segment_.assignments()) {
    TRANSEPT_ASSIGN(int64_t value, evaluate(assignment.value()));
    TRANSEPT_TRY(checkSymbol(entry_, static_cast<int>(assignment.symbol()), value));
    values.push_back(value);
  }
  for (size_t i = 0; i < values.size(); ++i)
    plan_.values_[segment_.assignments(static_cast<int>(i)).symbol()] = values[i];
  return {};
}

Status Planner::checkGuards() const {
  for (const program::Guard &guard : entry_.guards()) {
    if (guard.segment() != plan_.segment_)
      continue;
    TRANSEPT_ASSIGN(int64_t left, evaluate(guard.left()));
    TRANSEPT_ASSIGN(int64_t right, evaluate(guard.right()));
    if (!holds(guard.relation(), left, right))
      return {Code::InvalidInput, printable(guard.message(), 400) + ": " + std::to_string(left) + " must be " +
                                      relationText(guard.relation()) +
                                      (guard.relation() == program::Guard::EQ ? " to " : " ") + std::to_string(right) +
                                      " (" + describeSymbols(entry_, plan_.values_) + ")"};
  }
  return {};
}

Status Planner::placeBuffers() {
  if (segment_.arena_bytes().terms_size() != 0) {
    TRANSEPT_ASSIGN(int64_t bytes, evaluate(segment_.arena_bytes()));
    if (bytes < 0)
      return {Code::ArtifactRefused, "its arena would have " + std::to_string(bytes) + " bytes"};
    programArena_ = static_cast<uint64_t>(bytes);
  }
  plan_.arenaBytes_ = {alignUp(programArena_, alignment), 0};
  size_t input = 0, output = 0;
  for (int i = 0; i < entry_.buffers_size(); ++i) {
    const program::Buffer &buffer = entry_.buffers(i);
    Plan::Place &place = plan_.places_[static_cast<size_t>(i)];
    PlannedTensor *tensor = buffer.storage() == program::INPUT    ? &plan_.inputs_[input++]
                            : buffer.storage() == program::OUTPUT ? &plan_.outputs_[output++]
                                                                  : nullptr;
    if (buffer.arena() != segment_.arena())
      continue;
    TRANSEPT_TRY(tensor ? placeInArena(buffer, place, tensor) : placeBuffer(buffer, place));
    place.known = true;
  }
  return {};
}

Status Planner::placeBuffer(const program::Buffer &buffer, Plan::Place &place) {
  if (buffer.storage() == program::CONSTANT) { // verified at load
    TRANSEPT_ASSIGN(int64_t offset, evaluateExpr(buffer.offset(), {}));
    TRANSEPT_ASSIGN(int64_t bytes, evaluateExpr(buffer.bytes(), {}));
    place.offset = static_cast<uint64_t>(offset);
    place.bytes = static_cast<uint64_t>(bytes);
    return {};
  }
  std::vector<int64_t> dims;
  for (const program::Expr &dim : buffer.dims())
    TRANSEPT_TRY(evaluate(dim).status());
  TRANSEPT_ASSIGN(int64_t bytes, denseBytes(buffer.dtype(), buffer.dims(), plan_.values_, dims));
  if (buffer.bytes().terms_size() != 0) {
    TRANSEPT_ASSIGN(int64_t stated, evaluate(buffer.bytes()));
    if (stated < bytes)
      return misplaced(buffer, "has " + std::to_string(stated) + " bytes for " + std::to_string(bytes));
    bytes = stated;
  }
  place.bytes = static_cast<uint64_t>(bytes);
  if (buffer.storage() == program::STATE)
    return placeState(buffer, place, bytes);
  TRANSEPT_ASSIGN(int64_t offset, evaluate(buffer.offset()));
  if (offset < 0 || static_cast<uint64_t>(offset) > programArena_ ||
      static_cast<uint64_t>(bytes) > programArena_ - static_cast<uint64_t>(offset) ||
      static_cast<uint64_t>(offset) % alignment != 0)
    return misplaced(buffer, "lies at " + std::to_string(offset) + " with " + std::to_string(bytes) +
                                 " bytes in an arena of " + std::to_string(programArena_));
  place.offset = static_cast<uint64_t>(offset);
  return {};
}

Status Planner::placeInArena(const program::Buffer &buffer, Plan::Place &place, PlannedTensor *tensor) {
  for (const program::Expr &dim : buffer.dims())
    TRANSEPT_TRY(evaluate(dim).status());
  TRANSEPT_ASSIGN(tensor->bytes, denseBytes(buffer.dtype(), buffer.dims(), plan_.values_, tensor->dims));
  uint64_t &used = plan_.arenaBytes_[static_cast<size_t>(Access::Shared)];
  if (static_cast<uint64_t>(tensor->bytes) > (uint64_t(1) << 46) || used > (uint64_t(1) << 46))
    return {Code::OutOfMemory,
            "'" + printable(buffer.name()) + "' would have " + std::to_string(tensor->bytes) + " bytes"};
  place.offset = used;
  place.bytes = static_cast<uint64_t>(tensor->bytes);
  used += alignUp(static_cast<uint64_t>(tensor->bytes), alignment);
  return {};
}

Status Planner::placeState(const program::Buffer &buffer, Plan::Place &place, int64_t bytes) const {
  const program::Manifest &manifest = model_.manifest();
  for (int i = 0; i < manifest.states_size(); ++i)
    if (manifest.states(i).name() == buffer.name())
      place.state = static_cast<size_t>(i);
  if (static_cast<uint64_t>(bytes) > memory_.states[place.state].bytes)
    return {Code::InvalidInput, "state '" + printable(buffer.name()) + "' would need " + std::to_string(bytes) +
                                    " bytes, the session has " + std::to_string(memory_.states[place.state].bytes)};
  return {};
}

Status Planner::planDispatches() {
  const program::Manifest &manifest = model_.manifest();
  plan_.dispatches_.clear();
  plan_.sizes_.clear();
  plan_.bufferIndices_.clear();
  plan_.scratchBytes_ = 0;
  int first = plan_.firstDispatch_[plan_.segment_];
  for (int i = first, end = first + static_cast<int>(segment_.dispatches()); i < end; ++i) {
    const program::Dispatch &dispatch = entry_.dispatches(i);
    PlannedDispatch planned;
    planned.kernel = dispatch.kernel();
    planned.function = model_.device().function(planned.kernel);
    planned.barrier = dispatch.barrier();
    planned.buffers = static_cast<uint32_t>(dispatch.buffers_size());
    planned.sizes = static_cast<uint32_t>(dispatch.sizes_size());
    const program::Kernel &kernel = manifest.kernels(static_cast<int>(planned.kernel));
    size_t firstSize = plan_.sizes_.size();
    for (const program::Expr &expr : dispatch.sizes()) {
      TRANSEPT_ASSIGN(int64_t size, evaluate(expr));
      plan_.sizes_.push_back(size);
    }
    Span<const int64_t> sizes(plan_.sizes_.data() + firstSize, plan_.sizes_.size() - firstSize);
    const program::Expr *items = model_.device().items(planned.kernel);
    TRANSEPT_ASSIGN(planned.items, items ? evaluateExpr(*items, sizes) : evaluate(dispatch.items()));
    if (planned.items < 0)
      return {Code::ArtifactRefused,
              "kernel '" + printable(kernel.name()) + "' would get " + std::to_string(planned.items) + " items"};
    for (uint32_t buffer : dispatch.buffers())
      if (!plan_.places_[buffer].known)
        return misplaced(entry_.buffers(static_cast<int>(buffer)), "is used before its memory is set up");
    plan_.bufferIndices_.insert(plan_.bufferIndices_.end(), dispatch.buffers().begin(), dispatch.buffers().end());
    if (kernel.scratch_bytes().terms_size() != 0) {
      TRANSEPT_ASSIGN(int64_t scratch, evaluateExpr(kernel.scratch_bytes(), sizes));
      if (scratch < 0 || scratch > (int64_t(1) << 40))
        return {Code::OutOfMemory, "kernel '" + printable(kernel.name()) + "' would need " + std::to_string(scratch) +
                                       " bytes of scratch"};
      plan_.scratchBytes_ = std::max(plan_.scratchBytes_, static_cast<uint64_t>(scratch));
    }
    plan_.dispatches_.push_back(planned);
  }
  plan_.pointers_.resize(plan_.bufferIndices_.size());
  return {};
}

//===-- Plan
//-------------------------------------------------------------------------------------------------------===//

Result<std::unique_ptr<Plan>> Plan::create(const Model &model, int entry, Span<const int64_t> symbols,
                                           const PlanMemory &memory) {
  auto plan = std::make_unique<Plan>();
  plan->entry_ = entry;
  plan->symbols_.assign(symbols.begin(), symbols.end());
  const program::Entry &message = model.manifest().entries(entry);
  for (int i = 0; i < message.symbols_size(); ++i)
    if (!message.symbols(i).at_run_time())
      TRANSEPT_TRY(checkSymbol(message, i, symbols[static_cast<size_t>(i)]));
  int dispatches = 0;
  for (const program::Segment &segment : message.segments()) {
    plan->firstDispatch_.push_back(dispatches);
    dispatches += static_cast<int>(segment.dispatches());
  }
  for (const program::Buffer &buffer : message.buffers()) {
    Place place;
    place.storage = buffer.storage();
    place.arena = buffer.arena();
    plan->places_.push_back(place);
    if (buffer.storage() == program::INPUT || buffer.storage() == program::OUTPUT)
      (buffer.storage() == program::INPUT ? plan->inputs_ : plan->outputs_).emplace_back().buffer = &buffer;
  }
  plan->replays_.resize(plan->segments());
  TRANSEPT_TRY(plan->enter(model, 0, memory));
  return std::move(plan);
}

Status Plan::enter(const Model &model, size_t segment, const PlanMemory &memory) {
  const program::Entry &entry = model.manifest().entries(entry_);
  segment_ = segment;
  arena_ = entry.segments(static_cast<int>(segment)).arena();
  if (segment == 0) {
    values_ = symbols_;
    for (Place &place : places_)
      place.known = false;
  }
  Status status = Planner(model, *this, memory).run();
  if (status.ok() || status.code() == Code::InvalidInput)
    return status;
  return status.withContext("entry '" + printable(entry.name()) + "' with " + describeSymbols(entry, values_));
}

DevicePlace Plan::locate(const Model &model, const PlanMemory &memory, size_t buffer) const {
  const Place &place = places_[buffer];
  switch (place.storage) {
  case program::CONSTANT: // kernels only read constants
    return model.device().constant(place.offset);
  case program::STATE:
    return memory.states[place.state].place;
  default:
    break;
  }
  Access access = place.storage == program::ARENA ? Access::Kernels : Access::Shared;
  return {memory.arenas[place.arena][static_cast<size_t>(access)].get(), place.offset};
}

Status Plan::bind(const Model &model, const PlanMemory &memory) {
  std::transform(bufferIndices_.begin(), bufferIndices_.end(), pointers_.begin(),
                 [&](uint32_t buffer) { return reinterpret_cast<void *>(locate(model, memory, buffer).address()); });
  size_t input = 0, output = 0;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].storage == program::INPUT)
      inputs_[input++].data = locate(model, memory, i).host();
    else if (places_[i].storage == program::OUTPUT)
      outputs_[output++].data = places_[i].known ? locate(model, memory, i).host() : nullptr;
  }
  size_t pointer = 0, size = 0;
  for (PlannedDispatch &dispatch : dispatches_) {
    dispatch.call = {pointers_.data() + pointer, sizes_.data() + size,
                     reinterpret_cast<transept_error_word *>(memory.error)};
    pointer += dispatch.buffers;
    size += dispatch.sizes;
  }
  return bindFetches(model, memory);
}

Status Plan::bindFetches(const Model &model, const PlanMemory &memory) {
  const program::Entry &entry = model.manifest().entries(entry_);
  const program::Segment &segment = entry.segments(static_cast<int>(segment_));
  fetches_.clear();
  uint64_t total = 0;
  auto add = [&](uint32_t buffer, uint64_t bytes) {
    if (!places_[buffer].known || places_[buffer].bytes < bytes)
      return false;
    if (bytes != 0)
      fetches_.push_back({locate(model, memory, buffer), bytes, total});
    total += bytes;
    return true;
  };
  for (const program::ReadBack &read : segment.read_backs())
    if (!add(read.buffer(), sizeof(int64_t) * static_cast<uint64_t>(read.symbols_size())))
      return {Code::ArtifactRefused,
              "entry '" + printable(entry.name()) + "' reads sizes from a buffer that is too small"};
  if (segment.branches() && !add(segment.condition(), 1))
    return {Code::ArtifactRefused, "entry '" + printable(entry.name()) + "' branches on a buffer without elements"};
  fetched_.resize(total);
  return {};
}

Result<size_t> Plan::finish(const Model &model) {
  const program::Entry &entry = model.manifest().entries(entry_);
  const program::Segment &segment = entry.segments(static_cast<int>(segment_));
  const uint8_t *next = fetched_.data();
  for (const program::ReadBack &read : segment.read_backs())
    for (uint32_t symbol : read.symbols()) {
      int64_t number;
      std::memcpy(&number, next, sizeof number);
      next += sizeof number;
      if (!checkSymbol(entry, static_cast<int>(symbol), number).ok())
        return Status(Code::InvalidInput, printable(read.source(), 200) + " needs a size of " + std::to_string(number));
      values_[symbol] = number;
    }
  if (!segment.branches())
    return static_cast<size_t>(segment.next());
  return static_cast<size_t>(*next != 0 ? segment.next() : segment.otherwise());
}

} // namespace transept
