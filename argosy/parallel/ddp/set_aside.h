#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/parallel/ddp/bucket_set.h"
#include "argosy/parallel/ddp/parameter_table.h"

namespace argosy::parallel::ddp {

/// True if all bytes are zero; false if they are not the host's, or lie with gaps. Cost: reads up
/// to the first that is not.
[[nodiscard]] bool is_known_to_be_zero(const at::Tensor& tensor);

/// Keeps the averages of an earlier backward pass, which gradients hold, while those of another
/// pass are averaged in the buckets. The two are added at last, so that a sum of averages does not
/// depend on who averaged.
class SetAside final {
 public:
  /// Takes the gradients, which are undefined then. With `leave_zeros` those of a bucket that holds
  /// only zeros stay where they are.
  void take(const ParameterTable& table, BucketSet& buckets, bool leave_zeros);
  /// Adds what was taken to the gradients. A parameter that has none gets back its own.
  void give_back(const ParameterTable& table, const BucketSet& buckets);
  void drop() noexcept { taken_.clear(); }
  [[nodiscard]] bool empty() const { return taken_.empty(); }

 private:
  struct Taken {
    size_t parameter = 0;
    at::Tensor gradient{};
    bool in_bucket = false;  // `gradient` is a copy of what this rank kept of it in its bucket
  };

  std::vector<Taken> taken_{};
};

}  // namespace argosy::parallel::ddp
