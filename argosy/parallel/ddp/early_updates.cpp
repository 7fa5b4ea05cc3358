#include "argosy/parallel/ddp/early_updates.h"

#include <algorithm>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"

namespace argosy::parallel::ddp {

void EarlyUpdates::add(const std::shared_ptr<optim::OptimizerImpl>& optimizer) {
  optimizers_.push_back(optimizer);
}

void EarlyUpdates::remove(const optim::OptimizerImpl& optimizer) {
  std::erase_if(optimizers_, [&](const std::weak_ptr<optim::OptimizerImpl>& each) {
    const std::shared_ptr<optim::OptimizerImpl> known = each.lock();
    return known == nullptr || optim::have_parameters_in_common(*known, optimizer);
  });
}

comm::Work EarlyUpdates::start(std::vector<at::Tensor> parameters, comm::Group& group) const {
  return comm::run_in_order(
      // Keeps no optimizer: with the last one the group might go, in its own thread.
      [optimizers = optimizers_, parameters = std::move(parameters), gate = gate_] {
        const std::lock_guard lock(gate->mutex);
        for (const std::weak_ptr<optim::OptimizerImpl>& each : optimizers) {
          const std::shared_ptr<optim::OptimizerImpl> optimizer = each.lock();
          if (gate->open && optimizer != nullptr) {
            optimizer->step_early(parameters);
          }
        }
      },
      group);
}

void EarlyUpdates::check_steps_complete() const {
  ARGOSY_CHECK(!under_way(),
               "parallel.ddp",
               "backward() again before optimizer.step(): with overlap_update each averaged "
               "backward is followed by a step. Gather gradients of several passes under "
               "no_sync().");
}

bool EarlyUpdates::under_way() const {
  return std::ranges::any_of(optimizers_, [](const std::weak_ptr<optim::OptimizerImpl>& each) {
    const std::shared_ptr<optim::OptimizerImpl> optimizer = each.lock();
    return optimizer != nullptr && optimizer->stepped_early();
  });
}

void EarlyUpdates::abandon() noexcept {
  {
    const std::lock_guard lock(gate_->mutex);
    gate_->open = false;
  }
  for (const std::weak_ptr<optim::OptimizerImpl>& each : optimizers_) {
    if (const std::shared_ptr<optim::OptimizerImpl> optimizer = each.lock()) {
      optimizer->abandon_step();  // other ranks' updates may still be under way
    }
  }
}

}  // namespace argosy::parallel::ddp
