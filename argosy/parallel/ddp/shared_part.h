#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/engine/memory_count.h"

namespace argosy::parallel::ddp {

/// Makes flat tensors of zeros: in ordinary memory, or cut from a SharedPart.
using Allocate = std::function<at::Tensor(int64_t elements, const at::TensorOptions& options)>;
[[nodiscard]] Allocate ordinary_memory();

/// Returns the bytes that a tensor takes among others, where each starts at a cache line.
[[nodiscard]] int64_t aligned_bytes(const at::Tensor& tensor);
[[nodiscard]] int64_t aligned_bytes(std::span<const at::Tensor> tensors);

/// Shared memory in which each rank of a group has its own part, which the other ranks can also
/// reach. Tensors are cut from a rank's part one after the other, and each keeps the whole part
/// alive. The system gets it back with the last tensor.
class SharedPart final : public std::enable_shared_from_this<SharedPart> {
 public:
  /// Makes `bytes` for each rank. Returns nullptr, on all ranks, if they cannot share memory.
  /// Collective.
  [[nodiscard]] static std::shared_ptr<SharedPart> create(int64_t bytes,
                                                          const comm::Group& group,
                                                          std::chrono::milliseconds timeout);
  ~SharedPart();
  SharedPart(const SharedPart&) = delete;
  SharedPart& operator=(const SharedPart&) = delete;
  SharedPart(SharedPart&&) = delete;
  SharedPart& operator=(SharedPart&&) = delete;

  [[nodiscard]] at::Tensor zeros(int64_t elements, const at::TensorOptions& options);
  [[nodiscard]] Allocate allocate();

  /// Returns the address in the part of `rank` that corresponds to `mine` in this rank's part.
  [[nodiscard]] std::byte* of(int rank, const void* mine) const;
  [[nodiscard]] bool holds(const void* data) const;
  [[nodiscard]] int ranks() const { return ranks_; }
  /// Call it if others use this rank's part as theirs: it stays until all ranks have released the
  /// memory.
  void keep_for_others() { kept_ = true; }

  /// Moves a tensor whose place is at `mine` to memory outside, with its current values.
  void take_out(const at::Tensor& tensor, void* mine);
  /// True if a tensor lies in this rank's part, or was taken out and still lies where it was put.
  [[nodiscard]] bool keeps(const at::Tensor& tensor) const;
  /// Moves tensors that were taken out back to their places, with their current values.
  void bring_back();

 private:
  SharedPart(std::shared_ptr<comm::SharedBlock> block, int rank, int ranks);

  struct Outside {
    at::Tensor tensor{};
    void* place = nullptr;
    const void* data = nullptr;  ///< if it lies elsewhere now, the program moved it
  };

  const std::shared_ptr<comm::SharedBlock> block_;
  const int rank_;
  const int ranks_;
  const size_t stride_;
  const engine::CountedMemory counted_{stride_};
  size_t used_ = 0;
  bool kept_ = false;
  std::vector<Outside> outside_{};
};

/// Moves parameters into shared memory, with their values. Parameters that are not dense, or whose
/// memory other tensors also use, on any rank, stay where they are. Returns nullptr, on all ranks,
/// if there is no such memory. Collective.
[[nodiscard]] std::shared_ptr<SharedPart> move_into_shared_memory(
    std::span<const at::Tensor> parameters,
    const comm::Group& group,
    std::chrono::milliseconds timeout);

}  // namespace argosy::parallel::ddp
