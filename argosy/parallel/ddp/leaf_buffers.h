#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/parallel/ddp/micro_batch.h"

namespace argosy::parallel::ddp {

/// The buffers of a module, such as running statistics, while a process goes through several
/// virtual ranks. Each begins an update with the same ones, and has those that it writes to itself.
/// After the update those of the first remain.
class LeafBuffers final {
 public:
  explicit LeafBuffers(std::vector<at::Tensor> buffers) : buffers_(std::move(buffers)) {}

  /// Call it before each micro-batch.
  void begin(const MicroBatch& micro_batch);
  /// Call it after the last one of an update.
  void end_update();

 private:
  [[nodiscard]] std::vector<at::Tensor> copies() const;
  void set(const std::vector<at::Tensor>& values) const;

  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> begun_{};  // when the update began
  std::vector<at::Tensor> first_{};  // of the first virtual rank, when a second one has begun
};

}  // namespace argosy::parallel::ddp
