#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "argosy/base/even_part.h"
#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/engine/coming_memory.h"

namespace argosy::parallel::sharded {

class ShardedMemory;

struct PoolOptions {
  /// Whole memories that stay beside the one in use: the one before it, for a backward that begins
  /// where forward ended.
  std::size_t kept = 1;
  /// Start to gather what followed the last time, while the one in use is computed with.
  bool ahead = true;
  std::chrono::milliseconds timeout{0};  ///< of each gather; zero: the group's
  /// What is written into a whole is this rank's own: it stays until a reduction or a step.
  bool keeps_written = false;
  /// The type of wholes made for f32 and 16 bits, whose parts are f32 then. Unset: as they are
  /// made.
  std::optional<at::ScalarType> whole_type{};
  /// Makes parts of another type than their wholes, of zeros. Empty: they lie in memory.
  std::function<at::Tensor(int64_t elements, const at::TensorOptions& options)> make_part{};
  /// Parts are masters: an element stays what it is where the whole still has its value, rounded.
  bool has_masters = false;
  /// Which of the equal parts of a memory each rank keeps; empty: that of its own number.
  std::vector<int> parts{};
  /// Where the ranks can share memory, the wholes are there, once for all of them: nothing is
  /// gathered, and any rank reads alone.
  bool share = false;
};

/// Collective: returns the whole of a tensor like the dense `like`, of which each rank has the
/// elements at its place in `ranges`, and this one the flat `part`.
[[nodiscard]] at::Tensor gather_ranges(const at::Tensor& like,
                                       const at::Tensor& part,
                                       const std::vector<IndexRange>& ranges,
                                       const comm::Group& group,
                                       std::chrono::milliseconds timeout);

/// Decides which sharded memories of a rank are whole, and in which order they are gathered.
///
/// All ranks of the group must use the memories in the same order, those that they share excepted.
/// Shared wholes are read without anybody. In a step each rank writes its parts in place; what it
/// writes at other times waits in memory of its own until somebody uses a whole, for which all
/// ranks then meet. Thread-safe.
class MemoryPool final : public std::enable_shared_from_this<MemoryPool> {
 public:
  MemoryPool(comm::Group group, PoolOptions options)
      : group_(std::move(group)), options_(std::move(options)) {}

  /// Returns a flat tensor of zeros, of which this rank keeps its part: ShardedMemory::of() finds
  /// it. The ranks' parts are equal, so `elements` is a multiple of their number.
  [[nodiscard]] at::Tensor make(int64_t elements, const at::TensorOptions& options);

  [[nodiscard]] const comm::Group& group() const { return group_; }
  /// Returns the parts of a flat tensor in the order of the ranks that keep them.
  [[nodiscard]] std::vector<at::Tensor> parts_by_rank(const at::Tensor& flat) const;
  [[nodiscard]] int own_part() const;
  /// Begins a sequence of uses that repeats: a forward and its backward.
  void begin_sequence();
  /// Frees memory that waits for wholes to come. Those to come have other sizes, say.
  void free_spare();
  /// Lets all memories keep their parts only, with what was written into them, and the parts be
  /// written. Collective where memory is shared, and all come by themselves. Errors: UsageError if
  /// some are held.
  void begin_writes();
  /// Says that this rank has written its parts. Collective where memory is shared.
  void end_writes();

  /// Calls `tell` before each gather, and before ranks meet to see what all have written, for ranks
  /// that do not come by themselves; empty: nobody is told.
  void tell_by(std::function<void(uint32_t told)> tell);
  /// True if it is told of a meeting: else `told` is the number of a memory that is gathered.
  [[nodiscard]] static bool is_publication(uint32_t told) { return (told & kPublication) != 0; }
  /// Takes part in what another rank told of. Collective.
  void follow(uint32_t told);
  /// Says that the uses that follow are not those of all ranks. Where that begins and ends all
  /// memories that are not held keep their parts only, so that they are alike on all ranks, and
  /// what comes next is foretold apart from what all use.
  void set_apart(bool apart);
  /// Forgets what has been used: ranks may have used different things, and would foretell them.
  void forget_uses();
  /// Collective: makes these whole, and keeps them so until release(). Errors: what stopped a
  /// gather; nothing is held then.
  void hold(const std::vector<std::shared_ptr<ShardedMemory>>& memories);
  void release(const std::vector<std::shared_ptr<ShardedMemory>>& memories);
  /// Throws what stopped a gather before an operator of libtorch, which then computed with NaN.
  void check();

 private:
  friend class ShardedMemory;

  [[nodiscard]] at::Tensor make_part(int64_t elements,
                                     const at::TensorOptions& whole,
                                     const at::TensorOptions& part) const;
  [[nodiscard]] at::Tensor make_shared(int64_t elements, const at::TensorOptions& options) const;
  [[nodiscard]] std::vector<ShardedMemory*> shared() const;
  void see_all_parts();
  void publish();
  void hand_out();
  void meet(const char* until);
  void use(ShardedMemory& memory, bool writes) noexcept;
  void bring(ShardedMemory& memory);
  void go_ahead(ShardedMemory& memory);
  void forget(ShardedMemory& memory);
  void shrink(const ShardedMemory& current);
  [[nodiscard]] comm::Work gather(const ShardedMemory& memory, const at::Tensor& whole);
  [[nodiscard]] at::Tensor take(int64_t elements, const at::TensorOptions& options);
  void give(at::Tensor memory);

  static constexpr uint32_t kPublication = uint32_t{1} << 31U;

  const comm::Group group_;
  const PoolOptions options_;
  std::recursive_mutex mutex_{};
  std::vector<ShardedMemory*> all_{};    // by number; nullptr: gone
  std::vector<ShardedMemory*> whole_{};  // or coming; the one used last is the last one
  /// What has been used, from which follows what will be.
  struct History {
    std::vector<ShardedMemory*> now{}, last{};
    std::size_t place = 0;  // in `last`, of the one that is expected
  };
  History history_{}, other_history_{};  // the other one: of uses apart, or of those of all ranks
  bool apart_ = false;
  std::function<void(uint32_t)> tell_{};
  /// Memory for wholes to come, on the CPU.
  std::vector<at::Tensor> spare_{};
  bool in_step_ = false;  // ranks write their parts of shared wholes in place
  bool stale_ = false;    // this rank has written parts that the others do not see yet
  uint32_t publications_ = 0;
  std::exception_ptr error_{};
};

/// A flat tensor of which each rank of a group keeps its part. The whole is there while somebody
/// uses it: an all-gather brings it. What is written into the whole, by all ranks alike, is kept.
class ShardedMemory final : public engine::ComingMemory {
 public:
  /// `number`: from 1 on; ranks compare it in each gather.
  ShardedMemory(std::shared_ptr<MemoryPool> pool,
                uint32_t number,
                int64_t elements,
                const at::TensorOptions& whole,
                const at::TensorOptions& part);
  ~ShardedMemory() override;
  ShardedMemory(const ShardedMemory&) = delete;
  ShardedMemory& operator=(const ShardedMemory&) = delete;
  ShardedMemory(ShardedMemory&&) = delete;
  ShardedMemory& operator=(ShardedMemory&&) = delete;

  /// Returns that of a flat tensor or of a view of it; nullptr if it has none.
  [[nodiscard]] static std::shared_ptr<ShardedMemory> of(const at::Tensor& tensor);

  /// Returns this rank's elements, flat. They are always there.
  [[nodiscard]] at::Tensor part();
  [[nodiscard]] at::ScalarType part_type() const;
  /// Returns which elements of a dense view of the flat tensor are in the part, in their order in
  /// memory, and those elements.
  [[nodiscard]] IndexRange range_of(const at::Tensor& view) const {
    return range_of_part(view, pool_->own_part());
  }
  [[nodiscard]] at::Tensor part_of(const at::Tensor& view);
  /// The same to be written: a whole that is there goes, for it would be out of date.
  [[nodiscard]] at::Tensor part_to_write(const at::Tensor& view);

  /// Gives it memory for all elements, of no certain values, and returns true, unless it is whole.
  /// It stays until drop() or keep().
  bool make_room();
  /// Says that the whole has been written without an operator.
  void note_write();
  [[nodiscard]] MemoryPool& pool() const { return *pool_; }
  /// True if this rank has memory of its own for the whole.
  [[nodiscard]] bool is_whole() const;
  /// Returns its memory while it is whole, or shared; else an undefined tensor.
  [[nodiscard]] at::Tensor whole() const;
  /// Leaves the part as it is.
  void drop();
  /// Takes this rank's part over from the whole.
  void keep();

  void before_use(bool writes) noexcept override { pool_->use(*this, writes); }
  void after_use() noexcept override;
  void check() override { pool_->check(); }
  [[nodiscard]] at::Tensor gather(const at::Tensor& view, const at::Tensor& part) override;
  /// While it is held, all of it is there to be written.
  [[nodiscard]] std::optional<engine::TensorPart> own_part(const at::Tensor& view,
                                                           bool to_write) override;

 private:
  friend class MemoryPool;

  [[nodiscard]] IndexRange range_of_part(const at::Tensor& view, int number) const;
  [[nodiscard]] at::Tensor own_range(const at::Tensor& whole) const;
  void start();
  void make_writable();
  void copy_shared();
  void hand_out();
  void finish();
  void let_go() noexcept;
  void take_over();
  [[nodiscard]] int64_t part_elements() const { return part_.numel(); }
  [[nodiscard]] int64_t elements() const { return part_elements() * pool_->group().size(); }

  const std::shared_ptr<MemoryPool> pool_;
  const uint32_t number_;
  const at::TensorOptions options_;  // of the whole
  const at::Tensor shared_;          // the whole that all ranks have; undefined: each has its own
  at::Tensor part_;      // in shared_ if types agree, unless it was written outside of a step
  at::Tensor memory_{};  // for a whole of this rank's own; undefined where there is none
  comm::Work coming_{};
  bool is_coming_ = false;
  bool shared_is_lent_ = false;
  bool dirty_ = false;        // the whole has been written
  bool is_stale_ = false;     // the part has, and the others do not see it yet
  bool is_room_ = false;      // it is not to go before drop() or keep()
  int holds_ = 0;             // … before so many release()
  int uses_ = 0;              // operators that are running
  bool has_nothing_ = false;  // they compute with NaN, for the memory did not come
};

/// Makes flat tensors in the pool, for make_buckets().
[[nodiscard]] inline auto in_pool(std::shared_ptr<MemoryPool> pool) {
  return [pool = std::move(pool)](int64_t elements, const at::TensorOptions& options) {
    return pool->make(elements, options);
  };
}

}  // namespace argosy::parallel::sharded
