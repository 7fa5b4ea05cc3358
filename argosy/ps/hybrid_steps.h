#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/ps/local_dense.h"
#include "argosy/ps/served_model.h"
#include "argosy/ps/table_client.h"
#include "argosy/ps/tables.h"
#include "argosy/ps/worker_steps.h"

namespace argosy::ps {

/// Steps whose rows the servers update, and whose parameters each worker does, by the average of
/// all workers' gradients. The average has the order of every sum here, and the update is that of
/// the servers' rule: in kSync the bits are those of PushedSteps. The reduction runs while the
/// rows' gradients are sent. Internal to the room.
class HybridSteps final : public WorkerSteps {
 public:
  /// `group`: of the workers, by their numbers. Lifetime: client and model stay.
  HybridSteps(TableClient& client, const ServedModel& model, comm::Group group);

  /// The first worker's parameters, or those of its checkpoint, become everybody's.
  void begin(const std::string& checkpoint) override;
  void step() override;
  void pull() override {}  // no other worker changes them
  [[nodiscard]] std::vector<SavedDense> dense() override;
  void end() override { group_.destroy(); }

 private:
  TableClient& client_;
  const ServedModel& model_;
  comm::Group group_;
  LocalDense dense_;
  at::Tensor gradients_;  ///< f32, of all parameters, one after the other
};

}  // namespace argosy::ps
