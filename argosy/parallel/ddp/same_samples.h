#pragma once

#include <chrono>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/comm/work.h"

namespace argosy::parallel::ddp {

/// Finds out whether all virtual ranks of a job have computed the same gradients, as they do on the
/// same samples. It is for the first update. It can look at gradients on the CPU only.
class SameSamples final {
 public:
  SameSamples();

  /// Adds a bucket of a virtual rank's gradients, before they are averaged.
  void add(const at::Tensor& flat);
  /// Ends a virtual rank's gradients.
  void end_leaf();
  /// Starts the comparison. Collective.
  [[nodiscard]] comm::Work compare(const comm::Group& group, std::chrono::milliseconds timeout);
  /// Call it when that has ended. Returns true if all had the same, and not only zeros.
  [[nodiscard]] bool all_same() const;

 private:
  uint64_t digest_ = 0;
  bool any_ = false;   // some gradient of the virtual rank is not zero
  at::Tensor bounds_;  // maxima of the digests and of the inverted digests
};

}  // namespace argosy::parallel::ddp
