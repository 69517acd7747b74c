#include "runtime/search/Batch.h"

#include <algorithm>
#include <limits>

namespace transept::search {

void Batch::join(BatchMember &member) {
  member.first = -1;
  members_.insert(members_.begin() + static_cast<std::ptrdiff_t>(joined_++), &member);
  rows_.reserve(static_cast<size_t>(width())); // a step allocates nothing
  results_.reserve(static_cast<size_t>(width()));
}

void Batch::remove(const BatchMember &member) {
  auto found = std::find(members_.begin(), members_.end(), &member);
  if (found == members_.end())
    return;
  if (static_cast<size_t>(found - members_.begin()) < joined_)
    --joined_;
  members_.erase(found);
}

int64_t Batch::width() const {
  int64_t rows = 0;
  for (const BatchMember *member : members_)
    rows += member->search->settings().width();
  return rows;
}

Status Batch::step() {
  StepWants wants;
  wants.ahead = std::numeric_limits<int32_t>::max();
  wants.best = true;
  rows_.clear();
  for (BatchMember *member : members_) {
    RequestSearch &search = *member->search;
    if (!member->active())
      continue;
    search.prepare();
    wants.weights = wants.weights || search.wantsWeights();
    wants.logits = wants.logits || search.wantsLogits();
    wants.ahead = std::min(wants.ahead, search.ahead());
    wants.best = wants.best && search.wantsBestOnly();
    const int32_t previous = member->first;
    member->first = static_cast<int32_t>(rows_.size());
    for (int32_t row = 0; row < search.rows(); ++row) {
      int32_t parent = search.parent(row);
      rows_.push_back({search.tokens(row), member->source, parent < 0 ? -1 : previous + parent, search.specials(row),
                       row, search.rows(), search.score(row), search.allowed()});
    }
  }
  joined_ = 0;
  if (rows_.empty())
    return Status::success();
  TRANSEPT_TRY(stepper_.step(rows_, wants));

  results_.clear();
  for (size_t row = 0; row < rows_.size(); ++row)
    results_.push_back(stepper_.result(static_cast<int32_t>(row)));
  for (BatchMember *member : members_) {
    if (!member->active())
      continue;
    if (member->search->wantsWeights())
      member->search->keepWeights(stepper_, member->first, member->sourceLength);
    member->status = member->search->advance(results_.data() + member->first);
  }
  return Status::success();
}

} // namespace transept::search
