#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/parallel/ddp/micro_batch.h"

namespace argosy::parallel::ddp {

/// What happens next in the passes of an update.
struct PassNews {
  enum class What : int64_t {
    kFormat,      ///< the memory format is decided
    kRebuild,     ///< the buckets are made anew
    kCleared,     ///< a pass that averages begins, and found no gradients
    kZeroed,      ///< it found gradients that are zero, on all ranks
    kKept,        ///< it found others
    kBucket,      ///< a pass that averages sends its next bucket
    kEndOfPass,   ///< it has sent all
    kGather,      ///< a unit of divided parameters is gathered
    kEndOfExtra,  ///< the passes end that only processes with more virtual ranks make
    kEnd,         ///< the update ends
  };
  What what = What::kEnd;
  int64_t model = 0;  ///< which of the group's wrappers it happens to
  /// The place of the update, as MicroBatch has it.
  int64_t epoch = -1;
  int64_t update = -1;
  int64_t unit = 0;  ///< which one is gathered
};

/// Lets processes without a virtual rank, the spares, follow the passes of the others, in which
/// they take part without a forward or a backward of their own. Where parameters are divided,
/// processes that have one virtual rank less than others follow their gathers in the passes of the
/// first one, which the others have alone.
///
/// Cost where there are some: a broadcast of 48 bytes for each collective of a pass, for which
/// nobody but a spare waits.
class Spares final {
 public:
  Spares(const comm::LeafDeal& deal, comm::Group group, std::chrono::milliseconds timeout);

  /// True if there are some, on any process.
  [[nodiscard]] bool any() const { return any_; }
  /// True on a spare.
  [[nodiscard]] bool is_one() const { return is_one_; }
  /// True if another process has fewer virtual ranks, or more. It is then one less.
  [[nodiscard]] bool has_more() const { return more_; }
  [[nodiscard]] bool has_fewer() const { return fewer_; }
  /// Tells who follows what happens next. Collective; nobody who follows calls it.
  void tell(const PassNews& news);
  /// Returns, where one follows, what happens next, however long the others compute. Until the next
  /// call this thread has the scale of the loss (optim::loss_scale_of_thread()) that the others
  /// have, so that a scaler may step. Collective.
  [[nodiscard]] PassNews next();

 private:
  comm::Group group_;
  std::chrono::milliseconds timeout_;
  bool any_ = false;
  bool is_one_ = false;
  bool more_ = false;
  bool fewer_ = false;
  std::vector<comm::Work> told_{};  // in this update
  std::shared_ptr<const double> scale_{};
};

}  // namespace argosy::parallel::ddp
