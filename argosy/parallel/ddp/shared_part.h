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

namespace argosy::parallel::ddp {

/// Makes flat tensors of zeros: in ordinary memory, or cut from a SharedPart.
using Allocate = std::function<at::Tensor(int64_t elements, const at::TensorOptions& options)>;
[[nodiscard]] Allocate ordinary_memory();

/// Bytes that a tensor takes among others: each starts at a cache line.
[[nodiscard]] int64_t aligned_bytes(const at::Tensor& tensor);
[[nodiscard]] int64_t aligned_bytes(std::span<const at::Tensor> tensors);

/// Memory of which each rank of a group has a part of its own, which the others reach too. Tensors
/// are cut from a rank's part one after the other, and keep all of it; it goes back to the system
/// with the last of them.
class SharedPart final : public std::enable_shared_from_this<SharedPart> {
 public:
  /// Collective: `bytes` for each rank. nullptr, on all ranks, where they cannot share memory.
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

  /// Where `rank` has what this rank has at `mine`, which lies in this rank's part.
  [[nodiscard]] std::byte* of(int rank, const void* mine) const;
  [[nodiscard]] bool holds(const void* data) const;
  [[nodiscard]] int ranks() const { return ranks_; }
  /// Others use this rank's part as theirs: it stays until all ranks have let go of the memory.
  void keep_for_others() { kept_ = true; }

  /// Gives a tensor whose place is at `mine` memory outside, with the values that it has.
  void take_out(const at::Tensor& tensor, void* mine);
  /// Whether a tensor lies in this rank's part, or has been taken out and lies there still.
  [[nodiscard]] bool keeps(const at::Tensor& tensor) const;
  /// Tensors that have been taken out get their places again, with the values that they have.
  void bring_back();

 private:
  SharedPart(std::shared_ptr<comm::SharedBlock> block, int rank, int ranks);

  struct Outside {
    at::Tensor tensor{};
    void* place = nullptr;
    const void* data = nullptr;  ///< elsewhere by now: it has gone its own way
  };

  const std::shared_ptr<comm::SharedBlock> block_;
  const int rank_;
  const int ranks_;
  const size_t stride_;
  size_t used_ = 0;
  bool kept_ = false;
  std::vector<Outside> outside_{};
};

/// Collective. Gives parameters a place in shared memory with the values they have; those that are
/// not dense, or whose memory other tensors use too, on any rank, stay where they are. nullptr, on
/// all ranks, where there is no such memory.
[[nodiscard]] std::shared_ptr<SharedPart> move_into_shared_memory(
    std::span<const at::Tensor> parameters,
    const comm::Group& group,
    std::chrono::milliseconds timeout);

}  // namespace argosy::parallel::ddp
