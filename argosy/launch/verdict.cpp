#include "argosy/launch/verdict.h"

#include <algorithm>
#include <iterator>

namespace argosy::launch {

bool Verdict::add(const std::vector<RankEnd>& batch, bool stopping) {
  std::vector<RankEnd> failed;
  std::ranges::copy_if(
      batch, std::back_inserter(failed), [](const RankEnd& end) { return !end.exit.ok(); });
  const bool found = !stopping && !first_ && !failed.empty();
  if (found) {
    first_ = failed[root_cause(failed)];
  }
  std::ranges::copy_if(batch, std::back_inserter(others_), [&](const RankEnd& end) {
    return !first_ || end.rank != first_->rank;
  });
  return found;
}

std::vector<RankEnd> Verdict::all() const {
  std::vector<RankEnd> ends = others_;
  if (first_) {
    ends.push_back(*first_);
  }
  return ends;
}

}  // namespace argosy::launch
