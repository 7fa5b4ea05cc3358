#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"

namespace argosy::parallel::ddp {

/// What happens next in the passes of an update.
struct PassNews {
  enum class What : int64_t {
    kFormat,   ///< the memory format is decided
    kRebuild,  ///< the buckets are made anew
    kAverage,  ///< a pass averages
    kEnd,      ///< nothing more: the update ends
  };
  What what = What::kEnd;
  int64_t model = 0;  ///< which of the group's wrappers it happens to
};

/// Lets processes without a virtual rank, the spares, follow the passes of the others, in which
/// they take part without a forward or a backward of their own.
///
/// Cost where there are some: a broadcast of 24 bytes before what happens.
class Spares final {
 public:
  Spares(const comm::LeafDeal& deal, comm::Group group, std::chrono::milliseconds timeout);

  /// True if there are some, on any process.
  [[nodiscard]] bool any() const { return any_; }
  /// True on a spare.
  [[nodiscard]] bool is_one() const { return is_one_; }
  /// Tells the spares what happens next. Collective; no spare calls it.
  void tell(const PassNews& news) const;
  /// Returns, on a spare, what happens next. Until the next call this thread has the scale of the
  /// loss (optim::loss_scale_of_thread()) that the others have. So a scaler may step. Collective.
  [[nodiscard]] PassNews next();

 private:
  comm::Group group_;
  std::chrono::milliseconds timeout_;
  bool any_ = false;
  bool is_one_ = false;
  std::shared_ptr<const double> scale_{};
};

}  // namespace argosy::parallel::ddp
