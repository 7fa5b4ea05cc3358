#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/micro_batch.h"
#include "argosy/parallel/ddp/parameter_table.h"

namespace argosy::parallel::ddp {

/// Compares what the ranks of a job hold to be the same, beside the reductions of a pass.
///
/// It looks at the options of the optimizers that it watches, the scale of the loss, and a part of
/// the parameters: four elements of each, and a 64th of all elements, which goes round in 64
/// updates. Of parameters on another device it looks at none.
class DriftCheck final {
 public:
  static constexpr int64_t kParts = 64;

  /// The table must outlive the check.
  DriftCheck(const ParameterTable& table,
             const comm::Group& group,
             std::chrono::milliseconds timeout);

  /// Looks at this optimizer's options too, and no longer at those of others with its parameters.
  void watch(const std::shared_ptr<optim::OptimizerImpl>& optimizer);
  /// Starts the comparison of a pass. `flag` is for any(). Collective.
  /// Cost: a reduction of 24 bytes, and a look at a 64th of the parameters.
  [[nodiscard]] comm::Work start(const transport::TrainingPlace& place,
                                 const MicroBatch& micro_batch,
                                 bool flag);
  /// Call it when that has ended. Collective if there is a difference.
  /// Errors: UsageError, on all ranks, naming what differs, ranks and values.
  void finish() const;
  /// True if some rank's flag was true.
  [[nodiscard]] bool any() const { return bounds_.data_ptr<int64_t>()[2] != 0; }

 private:
  [[nodiscard]] uint64_t digest_of_options() const;
  [[nodiscard]] uint64_t digest_of_parameters(int64_t part) const;
  void compare_options() const;
  void compare_parameters() const;

  const ParameterTable& table_;
  comm::Group group_;
  std::chrono::milliseconds timeout_;
  std::vector<std::weak_ptr<optim::OptimizerImpl>> optimizers_{};
  at::Tensor bounds_{};  // maxima over the ranks: of the digest, inverted too, and of the flag
  uint32_t update_ = 0;
  MicroBatch micro_batch_{};
};

}  // namespace argosy::parallel::ddp
