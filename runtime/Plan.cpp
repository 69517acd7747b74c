#include "runtime/Plan.h"

#include "runtime/Expr.h"

#include <algorithm>

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
    out += (i ? ", " : "") + entry.symbols(static_cast<int>(i)).name() + "=" + std::to_string(values[i]);
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

/// The steps of Plan::create.
class Planner {
public:
  Planner(const Model &model, int entry, Span<const int64_t> symbols, const PlanMemory &memory)
      : model_(model), entry_(model.manifest().entries(entry)), symbols_(symbols), memory_(memory),
        plan_(std::make_unique<Plan>()) {
    plan_->entry_ = entry;
    plan_->symbols_.assign(symbols.begin(), symbols.end());
  }

  Result<std::unique_ptr<Plan>> run() {
    TRANSEPT_TRY(checkSymbols());
    TRANSEPT_TRY(checkGuards());
    Status status = placeBuffers();
    if (status.ok())
      status = planDispatches();
    if (!status.ok())
      return status.withContext("entry '" + printable(entry_.name()) + "' with " + describeSymbols(entry_, symbols_));
    return std::move(plan_);
  }

private:
  Status checkSymbols() const;
  Status checkGuards() const;
  Status placeBuffers();
  Status placeBound(const program::Buffer &buffer, Plan::Place &place, std::vector<PlannedTensor> &tensors);
  Status placeState(const program::Buffer &buffer, Plan::Place &place, int64_t bytes) const;
  Status planDispatches();

  Status misplaced(const program::Buffer &buffer, const std::string &why) const {
    return {Code::ArtifactRefused, "buffer '" + printable(buffer.name()) + "' " + why};
  }

  const Model &model_;
  const program::Entry &entry_;
  Span<const int64_t> symbols_;
  const PlanMemory &memory_;
  std::unique_ptr<Plan> plan_;
  uint64_t programArena_ = 0; // without inputs and outputs
};

Status Planner::checkSymbols() const {
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const program::Symbol &symbol = entry_.symbols(static_cast<int>(i));
    if (symbols_[i] >= symbol.min() && (symbol.max() == 0 || symbols_[i] <= symbol.max()))
      continue;
    return {Code::InvalidInput,
            "'" + printable(symbol.name()) + "' is " + std::to_string(symbols_[i]) + ", entry '" +
                printable(entry_.name()) + "' takes " +
                (symbol.max() == 0 ? std::to_string(symbol.min()) + " or more"
                                   : std::to_string(symbol.min()) + " to " + std::to_string(symbol.max()))};
  }
  return {};
}

Status Planner::checkGuards() const {
  for (const program::Guard &guard : entry_.guards()) {
    TRANSEPT_ASSIGN(int64_t left, evaluateExpr(guard.left(), symbols_));
    TRANSEPT_ASSIGN(int64_t right, evaluateExpr(guard.right(), symbols_));
    if (!holds(guard.relation(), left, right))
      return {Code::InvalidInput, printable(guard.message(), 400) + ": " + std::to_string(left) + " must be " +
                                      relationText(guard.relation()) +
                                      (guard.relation() == program::Guard::EQ ? " to " : " ") + std::to_string(right) +
                                      " (" + describeSymbols(entry_, symbols_) + ")"};
  }
  return {};
}

Status Planner::placeBuffers() {
  if (entry_.arena_bytes().terms_size() != 0) {
    TRANSEPT_ASSIGN(int64_t bytes, evaluateExpr(entry_.arena_bytes(), symbols_));
    if (bytes < 0)
      return {Code::ArtifactRefused, "its arena would have " + std::to_string(bytes) + " bytes"};
    programArena_ = static_cast<uint64_t>(bytes);
  }
  plan_->arenaBytes_ = alignUp(programArena_, alignment);
  for (const program::Buffer &buffer : entry_.buffers()) {
    Plan::Place &place = plan_->places_.emplace_back();
    place.storage = buffer.storage();
    if (buffer.storage() == program::INPUT || buffer.storage() == program::OUTPUT) {
      TRANSEPT_TRY(placeBound(buffer, place, buffer.storage() == program::INPUT ? plan_->inputs_ : plan_->outputs_));
      continue;
    }
    if (buffer.storage() == program::CONSTANT) { // verified at load
      TRANSEPT_ASSIGN(int64_t offset, evaluateExpr(buffer.offset(), {}));
      place.offset = static_cast<uint64_t>(offset);
      continue;
    }
    std::vector<int64_t> dims;
    TRANSEPT_ASSIGN(int64_t bytes, denseBytes(buffer.dtype(), buffer.dims(), symbols_, dims));
    if (buffer.bytes().terms_size() != 0) {
      TRANSEPT_ASSIGN(int64_t stated, evaluateExpr(buffer.bytes(), symbols_));
      if (stated < bytes)
        return misplaced(buffer, "has " + std::to_string(stated) + " bytes for " + std::to_string(bytes));
      bytes = stated;
    }
    if (buffer.storage() == program::STATE) {
      TRANSEPT_TRY(placeState(buffer, place, bytes));
      continue;
    }
    TRANSEPT_ASSIGN(int64_t offset, evaluateExpr(buffer.offset(), symbols_));
    if (offset < 0 || static_cast<uint64_t>(offset) > programArena_ ||
        static_cast<uint64_t>(bytes) > programArena_ - static_cast<uint64_t>(offset) ||
        static_cast<uint64_t>(offset) % alignment != 0)
      return misplaced(buffer, "lies at " + std::to_string(offset) + " with " + std::to_string(bytes) +
                                   " bytes in an arena of " + std::to_string(programArena_));
    place.offset = static_cast<uint64_t>(offset);
  }
  return {};
}

Status Planner::placeBound(const program::Buffer &buffer, Plan::Place &place, std::vector<PlannedTensor> &tensors) {
  PlannedTensor tensor;
  tensor.buffer = &buffer;
  TRANSEPT_ASSIGN(tensor.bytes, denseBytes(buffer.dtype(), buffer.dims(), symbols_, tensor.dims));
  if (static_cast<uint64_t>(tensor.bytes) > (uint64_t(1) << 46) || plan_->arenaBytes_ > (uint64_t(1) << 46))
    return {Code::OutOfMemory,
            "'" + printable(buffer.name()) + "' would have " + std::to_string(tensor.bytes) + " bytes"};
  place.offset = tensor.offset = plan_->arenaBytes_;
  plan_->arenaBytes_ += alignUp(static_cast<uint64_t>(tensor.bytes), alignment);
  tensors.push_back(std::move(tensor));
  return {};
}

Status Planner::placeState(const program::Buffer &buffer, Plan::Place &place, int64_t bytes) const {
  const program::Manifest &manifest = model_.manifest();
  for (int i = 0; i < manifest.states_size(); ++i)
    if (manifest.states(i).name() == buffer.name())
      place.state = static_cast<size_t>(i);
  if (static_cast<uint64_t>(bytes) > memory_.stateBytes[place.state])
    return {Code::InvalidInput, "state '" + printable(buffer.name()) + "' would need " + std::to_string(bytes) +
                                    " bytes, the session has " + std::to_string(memory_.stateBytes[place.state])};
  return {};
}

Status Planner::planDispatches() {
  const program::Manifest &manifest = model_.manifest();
  for (const program::Dispatch &dispatch : entry_.dispatches()) {
    PlannedDispatch planned;
    planned.kernel = model_.kernel(dispatch.kernel());
    planned.barrier = dispatch.barrier();
    TRANSEPT_ASSIGN(planned.items, evaluateExpr(dispatch.items(), symbols_));
    const program::Kernel &kernel = manifest.kernels(static_cast<int>(dispatch.kernel()));
    if (planned.items < 0)
      return {Code::ArtifactRefused,
              "kernel '" + printable(kernel.name()) + "' would get " + std::to_string(planned.items) + " items"};
    size_t firstSize = plan_->sizes_.size();
    for (const program::Expr &expr : dispatch.sizes()) {
      TRANSEPT_ASSIGN(int64_t size, evaluateExpr(expr, symbols_));
      plan_->sizes_.push_back(size);
    }
    plan_->bufferIndices_.insert(plan_->bufferIndices_.end(), dispatch.buffers().begin(), dispatch.buffers().end());
    if (kernel.scratch_bytes().terms_size() != 0) {
      Span<const int64_t> sizes(plan_->sizes_.data() + firstSize, plan_->sizes_.size() - firstSize);
      TRANSEPT_ASSIGN(int64_t scratch, evaluateExpr(kernel.scratch_bytes(), sizes));
      if (scratch < 0 || scratch > (int64_t(1) << 40))
        return {Code::OutOfMemory, "kernel '" + printable(kernel.name()) + "' would need " + std::to_string(scratch) +
                                       " bytes of scratch"};
      plan_->scratchBytes_ = std::max(plan_->scratchBytes_, static_cast<uint64_t>(scratch));
    }
    plan_->dispatches_.push_back(planned);
  }
  plan_->pointers_.resize(plan_->bufferIndices_.size());
  return {};
}

Result<std::unique_ptr<Plan>> Plan::create(const Model &model, int entry, Span<const int64_t> symbols,
                                           const PlanMemory &memory) {
  return Planner(model, entry, symbols, memory).run();
}

void Plan::bind(const Model &model, const PlanMemory &memory) {
  auto address = [&](uint32_t buffer) -> void * {
    const Place &place = places_[buffer];
    if (place.storage == program::CONSTANT) // kernels only read constants
      return const_cast<uint8_t *>(model.weights()) + place.offset;
    if (place.storage == program::STATE)
      return memory.states + memory.stateOffsets[place.state];
    return memory.arena + place.offset;
  };
  std::transform(bufferIndices_.begin(), bufferIndices_.end(), pointers_.begin(), address);
  for (std::vector<PlannedTensor> *tensors : {&inputs_, &outputs_})
    for (PlannedTensor &tensor : *tensors)
      tensor.data = memory.arena + tensor.offset;
  const program::Entry &entry = model.manifest().entries(entry_);
  size_t pointer = 0, size = 0;
  for (int i = 0; i < entry.dispatches_size(); ++i) {
    dispatches_[static_cast<size_t>(i)].call = {pointers_.data() + pointer, sizes_.data() + size, memory.error};
    pointer += static_cast<size_t>(entry.dispatches(i).buffers_size());
    size += static_cast<size_t>(entry.dispatches(i).sizes_size());
  }
}

} // namespace transept
