#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/optim/optimizer.h"

namespace argosy::parallel::ddp {

/// The optimizers whose updates run during backward (DivideOptions::overlap_update): a bucket's
/// parameters are updated in the group's thread, when the operations before it are done.
class EarlyUpdates final {
 public:
  [[nodiscard]] bool empty() const { return optimizers_.empty(); }
  void add(const std::shared_ptr<optim::OptimizerImpl>& optimizer);
  /// Removes optimizers that update one of this one's parameters.
  void remove(const optim::OptimizerImpl& optimizer);
  void clear() { optimizers_.clear(); }

  /// Updates these parameters after the group's operations so far. Only if not empty().
  [[nodiscard]] comm::Work start(std::vector<at::Tensor> parameters, comm::Group& group) const;
  /// Errors: UsageError if a backward pass was not followed by its step().
  void check_steps_complete() const;
  /// A pass has failed: the update that runs comes to its end, and none follows. The program may do
  /// what it likes with its optimizers then.
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
