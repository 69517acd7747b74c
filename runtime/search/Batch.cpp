#include "runtime/search/Batch.h"

namespace transept::search {

Status runBatch(Stepper &stepper, std::vector<BatchMember> &members, const BatchHooks &hooks) {
  size_t capacity = 0;
  for (const BatchMember &member : members)
    capacity += static_cast<size_t>(member.search->settings().width());
  std::vector<StepRow> rows;
  std::vector<StepResult> results;
  rows.reserve(capacity);
  results.reserve(capacity);
  std::vector<int32_t> first(members.size(), -1),
      previous(members.size(), -1); // a member's first row, this step and the last

  for (;;) {
    StepWants wants;
    rows.clear();
    for (size_t i = 0; i < members.size(); ++i) {
      RequestSearch &search = *members[i].search;
      previous[i] = first[i];
      if (search.done() || !members[i].status.ok())
        continue;
      search.prepare();
      wants.weights = wants.weights || search.wantsWeights();
      wants.logits = wants.logits || search.wantsLogits();
      first[i] = static_cast<int32_t>(rows.size());
      for (int32_t row = 0; row < search.rows(); ++row) {
        int32_t parent = search.parent(row);
        rows.push_back({search.tokens(row), static_cast<int32_t>(i), parent < 0 ? -1 : previous[i] + parent,
                        search.specials(row)});
      }
    }
    if (rows.empty())
      return Status::success();
    if (hooks.cancelled && hooks.cancelled->load(std::memory_order_relaxed))
      return {Code::Cancelled, "interrupted"};
    TRANSEPT_TRY(stepper.step(rows, wants));

    results.clear();
    for (size_t row = 0; row < rows.size(); ++row)
      results.push_back(stepper.result(static_cast<int32_t>(row)));
    for (size_t i = 0; i < members.size(); ++i) {
      RequestSearch &search = *members[i].search;
      if (search.done() || !members[i].status.ok())
        continue;
      if (search.wantsWeights())
        search.keepWeights(stepper, first[i], members[i].sourceLength);
      members[i].status = search.advance(results.data() + first[i]);
      if (hooks.advanced && search.settings().stream && members[i].status.ok())
        hooks.advanced(i);
    }
  }
}

} // namespace transept::search
