#include "runtime/search/SessionStepper.h"

#include <algorithm>
#include <numeric>

namespace transept::search {

namespace {

/// Tokens of a block of the search head.
constexpr int64_t headBlockTokens = 2048;

/// The entry that computes logits of listed tokens, where a model has it.
constexpr std::string_view listedName = "step_listed";

/// Most rows for which reading less of the vocabulary is worth more than computing some of it twice.
constexpr size_t screenedRows = 8;

int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Blocks of the pool: what live rows can need, and one for idle rows.
int64_t poolBlocks(int64_t rows, int64_t capacity) { return BlockPool::blocksFor(rows, capacity) + 1; }

bool haveBeams(Span<const StepRow> rows) {
  return std::any_of(rows.begin(), rows.end(), [](const StepRow &row) { return row.beams > 1; });
}

} // namespace

SessionStepper::SessionStepper(std::shared_ptr<const Model> model, int threads, int32_t ahead)
    : model_(std::move(model)), threads_(threads), slots_(SourceSlots::create(model_->manifest())), mostAhead_(ahead) {
  for (const program::Entry &entry : model_->manifest().entries())
    if (entry.name() == generation().step_alignments() && !entry.name().empty())
      layers_ = std::count_if(entry.buffers().begin(), entry.buffers().end(),
                              [](const program::Buffer &buffer) { return buffer.storage() == program::OUTPUT; });
}

Result<SymbolValues> SessionStepper::symbols(const Demand &demand) const {
  int64_t capacity = roundUp(demand.positions, BlockPool::blockPositions);
  SymbolValues values;
  for (const program::Symbol &symbol : model_->manifest().generation_symbols()) {
    const std::string &name = symbol.name();
    int64_t value;
    if (name == "batch")
      value = demand.batch;
    else if (name == "source")
      value = demand.source;
    else if (name == "rows")
      value = demand.rows;
    else if (name == "capacity" || name == "target")
      value = symbol.max() > 0 ? std::min(capacity, symbol.max()) : capacity;
    else if (name == "blocks")
      value = poolBlocks(demand.rows, capacity);
    else if (name == "specials")
      value = demand.specials;
    else if (name == "topk")
      value = demand.topk;
    else if (name == "listed")
      value = std::max<int64_t>(demand.listed / ListedTokens::panelTokens, 1);
    else
      return Status(Code::ArtifactRefused,
                    "this runtime does not know the generation symbol '" + printable(name, 60) + "'");
    values.push_back({name, value});
  }
  return values;
}

Status SessionStepper::prepare(const Demand &wanted) {
  Demand demand = wanted;
  demand.specials = roundUp(wanted.specials, 8);
  // A list that is half of the vocabulary saves little.
  demand.listed = !hasList() ? 0 : roundUp(std::min(wanted.listed, vocabulary() / 2), ListedTokens::panelTokens);
  Demand next = demand;
  if (session_) {
    // What only has to be large enough never shrinks: a smaller batch then needs no new set-up.
    next.rows = std::max(next.rows, have_.rows);
    next.positions = std::max(next.positions, have_.positions);
    next.specials = std::max(next.specials, have_.specials);
    next.topk = std::max(next.topk, have_.topk);
    next.listed = std::max(next.listed, have_.listed);
  }
  bool same =
      session_ && next.batch == have_.batch && next.source == have_.source && next.rows == have_.rows &&
      roundUp(next.positions, BlockPool::blockPositions) == roundUp(have_.positions, BlockPool::blockPositions) &&
      next.specials == have_.specials && next.topk == have_.topk && next.listed == have_.listed;
  if (!same) {
    auto setUp = [&](const Demand &needed) -> Status {
      TRANSEPT_ASSIGN(SymbolValues values, symbols(needed));
      if (session_)
        return session_->resize(values);
      SessionOptions options;
      options.threads = threads_;
      options.symbols = values;
      TRANSEPT_ASSIGN(session_, model_->createSession(options));
      return Status::success();
    };
    Status status = setUp(next);
    if (!status.ok() && session_) { // the sum of what several batches needed may be too much where one is not
      next = demand;
      status = setUp(next);
    }
    TRANSEPT_TRY(status);
    have_ = next;
    TRANSEPT_TRY(bind());
  }
  knowsPadding_ = false;
  have_.positions = next.positions; // of the same capacity
  if (block_)
    pool_.emplace(have_.rows, capacity_, BlockPool::blocksFor(have_.rows, capacity_));
  ahead_.taken = ahead_.steps = 0;
  if (incremental())
    makeIdle(0, have_.rows);
  return Status::success();
}

void SessionStepper::makeIdle(int64_t begin, int64_t end, int64_t positions) {
  for (int64_t row = begin; row < end; ++row) {
    token_[row] = 0;
    if (position_)
      position_[row] = 0;
    if (source_)
      source_[row] = 0;
    if (parent_)
      parent_[row] = -1;
    if (score_) {
      score_[row] = 0;
      first_[row] = static_cast<int32_t>(row);
      beams_[row] = 1;
    }
    if (block_)
      std::fill_n(block_ + row * capacity_, positions, static_cast<int32_t>(poolBlocks(have_.rows, capacity_) - 1));
    std::fill_n(special_ + row * have_.specials, have_.specials, -1);
  }
}

Status SessionStepper::bind() {
  Status status;
  auto state = [&](const char *name, auto *&pointer, int64_t elements, bool optional = false) {
    using Element = std::remove_const_t<std::remove_pointer_t<std::remove_reference_t<decltype(pointer)>>>;
    TensorView view = session_->state(name);
    pointer = view.as<Element>();
    if (status.ok() && !(optional && !view.data) &&
        (!pointer || view.bytes < elements * static_cast<int64_t>(sizeof(Element))))
      status = {Code::ArtifactRefused,
                "the artifact's state '" + std::string(name) + "' is missing, too small or of another type"};
  };
  capacity_ = std::max(session_->symbol("capacity"), session_->symbol("target"));
  headBlocks_ = (vocabulary() + headBlockTokens - 1) / headBlockTokens;
  int64_t heads = have_.rows * headBlocks_;
  state("step.live", live_, 1, true);
  // A decoder that has no use for one of these leaves it out.
  state("step.source", source_, have_.rows, true);
  state("step.parent", parent_, have_.rows, true);
  state("step.special", special_, have_.rows * have_.specials);
  state("step.best", bestOnly_, 1, true);
  if (hasList()) {
    const int64_t tokens = session_->symbol("listed") * ListedTokens::panelTokens;
    state("step.listed", listTokens_, tokens);
    state("step.fresh", fresh_, session_->symbol("listed"));
    state("search.listed", listedLogits_, have_.rows * tokens);
    list_.reset(vocabulary(), tokens);
  }
  if (incremental()) {
    state("step.token", token_, have_.rows);
    state("step.position", position_, have_.rows, true);
    state("step.block", block_, have_.rows * std::max(capacity_, have_.positions), true);
    if (!generation().advance_beams().empty()) {
      state("step.score", score_, have_.rows);
      state("step.first", first_, have_.rows);
      state("step.beams", beams_, have_.rows);
      state("step.from", from_, have_.rows);
    }
  } else {
    state("step.prefix", prefix_, have_.rows);
    prefixBytes_ = session_->state("step.prefix").bytes;
  }
  state("search.max", maxima_, heads);
  state("search.sum", sums_, heads);
  state("search.value", values_, heads * have_.topk);
  state("search.token", best_, heads * have_.topk);
  state("search.special", specialLogits_, have_.rows * have_.specials);
  if (TensorView logits = session_->state("logits"); !logits.name.empty())
    if (logits.dtype != program::F32 || logits.bytes < have_.rows * vocabulary() * static_cast<int64_t>(sizeof(float)))
      return {Code::ArtifactRefused, "the artifact's state 'logits' is too small or of another type"};
  TRANSEPT_TRY(status);
  head_.emplace(have_.rows, headBlocks_, have_.topk);
  moves_.reserve(have_.rows);
  results_.resize(have_.rows);
  kept_.clear();
  log_.clear();
  recordBytes_ = 0;
  if (mostAhead_ < 2 || generation().advance().empty() || !block_ || !position_ || !session_->runsInTurn())
    return Status::success();
  kept_ = {{"step.token", have_.rows * sizeof(int64_t)},
           {"search.max", heads * sizeof(float)},
           {"search.sum", heads * sizeof(float)},
           {"search.value", heads * have_.topk * sizeof(float)},
           {"search.token", heads * have_.topk * sizeof(int32_t)},
           {"search.special", have_.rows * have_.specials * sizeof(float)}};
  if (from_)
    kept_.push_back({"step.from", have_.rows * sizeof(int32_t)});
  for (const Session::KeptState &state : kept_)
    recordBytes_ += state.bytes;
  log_.resize(recordBytes_ * static_cast<uint64_t>(mostAhead_));
  ahead_.rows.reserve(have_.rows);
  taken_.reserve(have_.rows);
  places_.reserve(have_.rows);
  return Status::success();
}

Status SessionStepper::encode(const RunArguments &arguments) {
  return generation().encode().empty() ? Status() : session_->run(generation().encode(), arguments);
}

Status SessionStepper::encode(RunArguments arguments, int64_t batch, int64_t length, Span<const SlotMove> moves) {
  if (generation().encode().empty())
    return Status::success();
  if (!slots_ || batch > have_.batch || length > have_.source)
    return {Code::Internal, "more sources or longer ones than the session was set up for"};
  const program::Entry &entry = model_->manifest().entries(model_->findEntry(generation().encode()));
  for (const program::Symbol &symbol : entry.symbols())
    if (symbol.name() == "batch" || symbol.name() == "source")
      arguments.symbols.push_back({symbol.name(), symbol.name() == "batch" ? batch : length});
  TRANSEPT_TRY(session_->run(generation().encode(), arguments));
  std::vector<int64_t> symbols;
  for (const program::Symbol &symbol : model_->manifest().generation_symbols())
    symbols.push_back(session_->symbol(symbol.name()));
  copies_.clear();
  const int64_t last = have_.batch - 1;
  TRANSEPT_TRY(slots_->appendCopies(moves, batch, length, knowsPadding_ ? last : -1, symbols, copies_));
  auto padded = std::find_if(moves.begin(), moves.end(), [&](const SlotMove &move) { return move.positions < length; });
  const bool shown = !knowsPadding_ && padded != moves.end();
  if (shown)
    TRANSEPT_TRY(slots_->appendPadding({padded->from, last}, batch, length, symbols, copies_));
  TRANSEPT_TRY(session_->copyInStates(copies_));
  knowsPadding_ = knowsPadding_ || shown;
  return {};
}

AttentionWeights SessionStepper::attention(int64_t layer, int32_t row) const {
  Span<const TensorView> outputs = session_->outputs();
  if (layer >= static_cast<int64_t>(outputs.size()) || outputs[layer].dims.size() != 4 ||
      row >= outputs[layer].dims[0] || !outputs[layer].as<float>())
    return {};
  const TensorView &output = outputs[layer];
  int64_t heads = output.dims[1], source = output.dims[3];
  return {output.as<float>() + row * heads * source, heads, source};
}

Status SessionStepper::prefill(Span<const StepRow> rows) {
  int64_t width = 0, count = 0; // rows behind the last new one have nothing to compute
  for (size_t row = 0; row < rows.size(); ++row)
    if (int64_t own = static_cast<int64_t>(rows[row].tokens.size()) - 1; rows[row].parent < 0 && own > 0) {
      width = std::max(width, own);
      count = static_cast<int64_t>(row) + 1;
    }
  if (width == 0)
    return Status::success();
  promptTokens_.assign(count * width, 0);
  savedBlocks_.resize(count * width);
  for (int64_t row = 0; row < count; ++row) {
    const StepRow &from = rows[row];
    int64_t own = from.parent < 0 ? static_cast<int64_t>(from.tokens.size()) - 1 : 0;
    std::copy_n(from.tokens.begin(), own, promptTokens_.begin() + row * width);
    // What lies behind the prompt goes to the block that no row reads.
    int32_t *table = block_ + row * capacity_;
    std::copy_n(table, width, savedBlocks_.begin() + row * width);
    std::fill(table + own, table + width, static_cast<int32_t>(poolBlocks(have_.rows, capacity_) - 1));
    if (source_)
      source_[row] = from.source;
    if (position_)
      position_[row] = 0;
  }
  RunArguments arguments;
  arguments.symbols = {{"rows", count}};
  std::vector<int64_t> dims = {count, width};
  arguments.inputs.push_back({"decoder_input_ids", program::I64, dims, promptTokens_.data(),
                              static_cast<int64_t>(promptTokens_.size() * sizeof(int64_t))});
  TRANSEPT_TRY(session_->run(generation().prefill(), arguments));
  for (int64_t row = 0; row < count; ++row)
    std::copy_n(savedBlocks_.begin() + row * width, width, block_ + row * capacity_);
  return Status::success();
}

//===-- Steps ahead -----------------------------------------------------------------------------------------------===//

Result<bool> SessionStepper::takeAhead(Span<const StepRow> rows, StepWants wants) {
  if (ahead_.taken >= ahead_.steps || wants.weights || wants.logits || (ahead_.best && !wants.best))
    return false;
  const uint8_t *record = log_.data() + recordBytes_ * static_cast<uint64_t>(ahead_.taken);
  const auto *tokens = reinterpret_cast<const int64_t *>(record);
  // Last in the record: which row of the step before each row was made of.
  const auto *from = ahead_.beams ? reinterpret_cast<const int32_t *>(record + recordBytes_) - have_.rows : nullptr;
  taken_.clear();
  for (const StepRow &row : rows) {
    if (row.parent < 0)
      return false;
    const int32_t parent = ahead_.rows[row.parent], own = ahead_.first[parent] + row.member;
    auto position = static_cast<int64_t>(row.tokens.size()) - 1;
    const int32_t *specials = ahead_.specials.data() + own * have_.specials;
    auto count = static_cast<int64_t>(row.specials.size());
    // Whole searches may leave, but none loses a row.
    if (row.beams != ahead_.count[parent] || (from && from[own] != parent) ||
        position != ahead_.positions[own] + ahead_.taken || row.tokens[position] != tokens[own] ||
        !std::equal(row.specials.begin(), row.specials.end(), specials) ||
        (count < have_.specials && specials[count] >= 0) || (!taken_.empty() && own <= taken_.back()))
      return false;
    taken_.push_back(own);
  }
  const int32_t *places = ahead_.places.data() + (ahead_.taken - 1) * ahead_.first.size();
  moves_.clear();
  places_.clear();
  for (size_t row = 0; row < rows.size(); ++row) {
    moves_.push_back({rows[row].parent, static_cast<int64_t>(rows[row].tokens.size()) - 1});
    places_.push_back(places[taken_[row]]);
  }
  TRANSEPT_TRY(pool_->advance(moves_, places_));
  size_t next = 0; // those of rows that have left stay free
  for (size_t row = 0; row < ahead_.first.size(); ++row) {
    if (next < taken_.size() && taken_[next] == static_cast<int32_t>(row))
      ++next;
    else
      pool_->release(places[row], ahead_.positions[row] + ahead_.taken);
  }
  for (size_t row = 0; row < rows.size(); ++row)
    joinResult(static_cast<int32_t>(row), taken_[row], record + kept_[0].bytes);
  std::swap(ahead_.rows, taken_);
  ++ahead_.taken;
  return true;
}

void SessionStepper::dropAhead() {
  for (; ahead_.taken < ahead_.steps; ++ahead_.taken)
    for (size_t row = 0; row < ahead_.first.size(); ++row)
      pool_->release(ahead_.places[(ahead_.taken - 1) * ahead_.first.size() + row],
                     ahead_.positions[row] + ahead_.taken);
  ahead_.taken = ahead_.steps = 0;
}

int32_t SessionStepper::stepsAtOnce(Span<const StepRow> rows, StepWants wants) const {
  if (kept_.empty() || wants.weights || wants.logits || wants.ahead < 1 || (!from_ && haveBeams(rows)))
    return 1;
  int64_t most = std::min<int64_t>(mostAhead_ - 1, wants.ahead), limit = capacity_;
  if (generation().position_limit() > 0)
    limit = std::min(limit, generation().position_limit());
  for (const StepRow &row : rows)
    most = std::min(most, limit - static_cast<int64_t>(row.tokens.size()));
  return static_cast<int32_t>(std::max<int64_t>(most, 0)) + 1;
}

Status SessionStepper::reserveAhead(Span<const StepRow> rows, int32_t steps) {
  ahead_.rows.clear();
  ahead_.first.clear();
  ahead_.count.clear();
  ahead_.positions.clear();
  ahead_.places.clear();
  ahead_.beams = haveBeams(rows);
  for (size_t row = 0; row < rows.size(); ++row) {
    ahead_.rows.push_back(static_cast<int32_t>(row));
    ahead_.first.push_back(static_cast<int32_t>(row) - rows[row].member);
    ahead_.count.push_back(rows[row].beams);
    ahead_.positions.push_back(static_cast<int64_t>(rows[row].tokens.size()) - 1);
  }
  ahead_.specials.assign(special_, special_ + rows.size() * static_cast<size_t>(have_.specials));
  ahead_.taken = 1;
  for (ahead_.steps = 1; ahead_.steps < steps; ++ahead_.steps)
    for (size_t row = 0; row < rows.size(); ++row) {
      int64_t position = ahead_.positions[row] + ahead_.steps;
      int32_t *table = block_ + static_cast<int64_t>(row) * capacity_;
      table[position] = pool_->reserve(position, table[position - 1]);
      if (table[position] < 0)
        return {Code::Internal, "no free place in the cache for steps ahead"};
      ahead_.places.push_back(table[position]);
    }
  return Status::success();
}

Status SessionStepper::runAhead(Span<const StepRow> rows, int32_t steps, bool best) {
  TRANSEPT_TRY(reserveAhead(rows, steps));
  ahead_.best = best;
  const auto live = static_cast<int64_t>(rows.size());
  makeIdle(live, have_.rows, steps);
  written_ = have_.rows; // rows that are not in use are continued, too
  const std::string &next = ahead_.beams ? generation().advance_beams() : generation().advance();
  Status status = session_->runInTurn(generation().step(), next, steps, {kept_.data(), kept_.size()}, log_.data());
  if (status.ok()) {
    for (size_t row = 0; row < rows.size(); ++row)
      joinResult(static_cast<int32_t>(row), static_cast<int32_t>(row), log_.data() + kept_[0].bytes);
    return status;
  }
  // What nobody asked for may have failed. The first step alone says.
  dropAhead();
  if (status.code() != Code::InvalidInput)
    return status;
  makeIdle(live, have_.rows);
  pool_->show(block_);
  TRANSEPT_TRY(writeRows(rows));
  return session_->run(generation().step());
}

void SessionStepper::joinResult(int32_t row, int32_t from, const uint8_t *results) {
  const int64_t heads = have_.rows * headBlocks_;
  const auto *maxima = reinterpret_cast<const float *>(results), *sums = maxima + heads, *values = sums + heads;
  const auto *tokens = reinterpret_cast<const int32_t *>(values + heads * have_.topk);
  const auto *specials = reinterpret_cast<const float *>(tokens + heads * have_.topk);
  HeadRow head{maxima + from * headBlocks_, sums + from * headBlocks_, values + from * headBlocks_ * have_.topk,
               tokens + from * headBlocks_ * have_.topk};
  StepResult &result = results_[row];
  result = head_->join(row, head);
  result.specials = specials + from * have_.specials;
  result.logits = nullptr;
}

//===-- A step ----------------------------------------------------------------------------------------------------===//

Status SessionStepper::writeRows(Span<const StepRow> rows) {
  for (size_t row = 0; row < rows.size(); ++row) {
    const StepRow &from = rows[row];
    int64_t position = static_cast<int64_t>(from.tokens.size()) - 1;
    if (parent_)
      parent_[row] = from.parent;
    if (source_)
      source_[row] = from.source;
    if (score_) {
      score_[row] = static_cast<float>(from.score);
      first_[row] = static_cast<int32_t>(row) - from.member;
      beams_[row] = from.beams;
    }
    int32_t *special = special_ + row * have_.specials;
    if (static_cast<int64_t>(from.specials.size()) > have_.specials)
      return {Code::Internal, "more special tokens than the session was set up for"};
    std::fill_n(std::copy(from.specials.begin(), from.specials.end(), special), have_.specials - from.specials.size(),
                -1);
    if (incremental()) {
      token_[row] = from.tokens[position];
      if (position_)
        position_[row] = position;
    } else {
      int64_t length = static_cast<int64_t>(rows[0].tokens.size());
      if (position + 1 != length || static_cast<int64_t>((row + 1) * length * sizeof(int64_t)) > prefixBytes_)
        return {Code::Internal, "prefixes of different lengths, or longer than the session was set up for"};
      std::copy(from.tokens.begin(), from.tokens.end(), prefix_ + row * length);
    }
  }
  return Status::success();
}

bool SessionStepper::screens(size_t rows, StepWants wants) const {
  return wants.best && !wants.weights && !wants.logits && !generation().step_greedy().empty() && rows <= screenedRows;
}

bool SessionStepper::hasList() const { return model_->findEntry(listedName) >= 0; }

void SessionStepper::writeList() {
  const Span<const int32_t> tokens = list_.tokens();
  std::copy(tokens.begin(), tokens.end(), listTokens_);
  for (int64_t panel = 0; panel < list_.panels(); ++panel)
    fresh_[panel] = panel >= list_.firstFresh();
}

void SessionStepper::takeListed(size_t rows) {
  list_.settle();
  for (size_t row = 0; row < rows; ++row) {
    results_[row] = {};
    results_[row].logits = listedLogits_ + row * list_.tokens().size();
    results_[row].places = list_.places();
  }
}

Status SessionStepper::step(Span<const StepRow> rows, StepWants wants) {
  if (wants.weights && !layers_)
    return {Code::InvalidInput, "the artifact reports no attention over the source"};
  const bool screened = screens(rows.size(), wants);
  const bool listed = listTokens_ && wants.logits && !wants.weights && list_.cover(rows);
  const std::string_view entry = wants.weights ? std::string_view(generation().step_alignments())
                                 : listed      ? listedName
                                 : screened    ? std::string_view(generation().step_greedy())
                                               : generation().step();
  if (static_cast<int64_t>(rows.size()) > have_.rows)
    return {Code::Internal, "more rows than the session was set up for"};
  TRANSEPT_ASSIGN(bool taken, takeAhead(rows, wants));
  if (taken)
    return Status::success();
  if (live_)
    *live_ = static_cast<int32_t>(rows.size());
  if (bestOnly_)
    *bestOnly_ = wants.best;
  if (incremental() && static_cast<int64_t>(rows.size()) < written_)
    makeIdle(static_cast<int64_t>(rows.size()), written_);
  written_ = static_cast<int64_t>(rows.size());
  moves_.clear();
  bool prompts = false;
  for (const StepRow &row : rows) {
    moves_.push_back({row.parent, static_cast<int64_t>(row.tokens.size()) - 1});
    prompts = prompts || (row.parent < 0 && row.tokens.size() > 1);
  }
  dropAhead();
  if (incremental() && prompts && !promptAtOnce())
    return {Code::Internal, "a row begins with several tokens"};
  if (incremental() && block_) {
    TRANSEPT_TRY(pool_->advance(moves_));
    pool_->show(block_);
  }
  if (incremental() && prompts)
    TRANSEPT_TRY(prefill(rows));
  TRANSEPT_TRY(writeRows(rows));
  if (int32_t steps = stepsAtOnce(rows, wants); steps > 1) {
    TRANSEPT_TRY(runAhead(rows, steps, wants.best));
    if (ahead_.steps > 0)
      return Status::success();
  } else {
    arguments_.symbols.clear();
    // The session may hold more rows. Where rows can change each other, those that are not in use must not be there.
    if (!incremental())
      arguments_.symbols = {{"target", static_cast<int64_t>(rows[0].tokens.size())},
                            {"rows", static_cast<int64_t>(rows.size())}};
    if (listed) {
      writeList();
      arguments_.symbols.push_back({"listed", list_.panels()});
    }
    TRANSEPT_TRY(session_->run(entry, arguments_));
  }
  if (listed) {
    takeListed(rows.size());
    return Status::success();
  }
  TRANSEPT_ASSIGN(const float *logits, wants.logits ? readLogits(rows.size()) : nullptr);
  for (size_t row = 0; row < rows.size(); ++row) {
    HeadRow head{maxima_ + row * headBlocks_, sums_ + row * headBlocks_, values_ + row * headBlocks_ * have_.topk,
                 best_ + row * headBlocks_ * have_.topk};
    StepResult &result = results_[row];
    result = head_->join(static_cast<int32_t>(row), head);
    result.specials = specialLogits_ + row * have_.specials;
    result.logits = logits ? logits + row * vocabulary() : nullptr;
    if (screened)
      screened_.logits += static_cast<int64_t>(std::accumulate(head.sums, head.sums + headBlocks_, 0.0));
  }
  screened_.rows += screened ? static_cast<int64_t>(rows.size()) : 0;
  return Status::success();
}

Result<const float *> SessionStepper::readLogits(size_t rows) {
  TensorView state = session_->state("logits");
  if (state.name.empty() || state.data)
    return state.as<float>();
  logits_.resize(rows * static_cast<size_t>(vocabulary()));
  TRANSEPT_TRY(session_->readState("logits", logits_.data(), logits_.size() * sizeof(float)));
  return logits_.data();
}

} // namespace transept::search
