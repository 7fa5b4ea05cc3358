#include "argosy/parallel/ddp/backward_pass.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace argosy::parallel::ddp {

BackwardPass::BackwardPass(std::vector<size_t> members)
    : members_(std::move(members)),
      missing_(members_),
      ready_(std::accumulate(members_.begin(), members_.end(), size_t{0})) {}

void BackwardPass::restart() noexcept {
  std::copy(members_.begin(), members_.end(), missing_.begin());
  std::fill(ready_.begin(), ready_.end(), uint8_t{0});
  ready_count_ = 0;
  next_ = 0;
}

void BackwardPass::mark_ready(size_t parameter, size_t bucket) {
  ready_[parameter] = 1;
  ++ready_count_;
  --missing_[bucket];
}

std::optional<size_t> BackwardPass::take_complete() {
  if (next_ == missing_.size() || missing_[next_] != 0) {
    return std::nullopt;
  }
  return next_++;
}

std::vector<size_t> BackwardPass::not_ready() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < ready_.size() && ready_count_ < ready_.size(); ++i) {
    if (ready_[i] == 0) {
      out.push_back(i);
    }
  }
  return out;
}

}  // namespace argosy::parallel::ddp
