#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace argosy::parallel::ddp {

/// The progress of one backward pass: the gradients that are ready, and the next bucket.
///
///     pass.mark_ready(parameter, buckets.bucket_of(parameter));
///     while (const std::optional<size_t> bucket = pass.take_complete()) {
///       reduction.send(*bucket, pass.ready_count());
///     }
///
/// Complete buckets are taken in their order, which is the same on all ranks. A BackwardPass knows
/// neither tensors nor ranks.
class BackwardPass final {
 public:
  /// `members`: the number of parameters in each bucket.
  explicit BackwardPass(std::vector<size_t> members);

  /// Starts a pass in which no gradient is ready.
  void restart() noexcept;

  [[nodiscard]] bool is_ready(size_t parameter) const { return ready_[parameter] != 0; }
  /// Call it once per parameter.
  void mark_ready(size_t parameter, size_t bucket);
  /// Returns the next bucket if all its gradients are ready and all earlier buckets were taken.
  std::optional<size_t> take_complete();
  /// The bucket that take_complete() returns next.
  [[nodiscard]] size_t next() const { return next_; }
  /// True if take_complete() has returned the bucket.
  [[nodiscard]] bool is_taken(size_t bucket) const { return bucket < next_; }

  [[nodiscard]] size_t ready_count() const { return ready_count_; }
  [[nodiscard]] std::vector<size_t> not_ready() const;

 private:
  std::vector<size_t> members_;
  std::vector<size_t> missing_;  // per bucket
  std::vector<uint8_t> ready_;   // per parameter
  size_t ready_count_ = 0;
  size_t next_ = 0;
};

}  // namespace argosy::parallel::ddp
