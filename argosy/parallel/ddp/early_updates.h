#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/optim/optimizer.h"

namespace argosy::parallel::ddp {

/// The optimizers whose updates run during backward (DivideOptions::overlap_update). The group's
/// thread updates a bucket's parameters after all earlier operations.
class EarlyUpdates final {
 public:
  [[nodiscard]] bool empty() const { return optimizers_.empty(); }
  void add(const std::shared_ptr<optim::OptimizerImpl>& optimizer);
  /// Removes optimizers that share a parameter with this one.
  void remove(const optim::OptimizerImpl& optimizer);
  void clear() { optimizers_.clear(); }

  /// Updates these parameters after the group's operations so far. Call it only if not empty().
  [[nodiscard]] comm::Work start(std::vector<at::Tensor> parameters, comm::Group& group) const;
  /// Errors: UsageError if a backward pass was not followed by its step().
  void check_steps_complete() const;
  /// True if such a step has begun, so that parameters may have new values.
  [[nodiscard]] bool under_way() const;
  /// Call it after a pass that failed: a running update ends, and none follows. The program may
  /// then use its optimizers freely.
  void abandon() noexcept;

 private:
  struct Gate {
    std::mutex mutex{};
    bool open = true;
  };

  std::vector<std::weak_ptr<optim::OptimizerImpl>> optimizers_{};
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

}  // namespace argosy::parallel::ddp
