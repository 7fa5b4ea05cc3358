#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/base/even_part.h"

namespace at {
struct RecordFunction;
}
namespace c10 {
struct StorageImpl;
}

namespace argosy::engine {

/// Elements of a dense tensor: those at `range` in the order of its memory, flat.
struct TensorPart {
  IndexRange range{};
  at::Tensor elements{};
};

/// Memory that is there while somebody uses it. Derive from it to bring the memory of a flat tensor
/// before an operator of libtorch reads or writes it, or a view of it: in forward, in backward,
/// wherever it stands. Operators that only make views bring nothing.
///
///     struct Paged : ComingMemory { void before_use(bool) noexcept override { lend(read()); } … };
///     at::Tensor weights = std::make_shared<Paged>()->make_flat(1 << 20, at::kFloat);
///     weights.sum();      // before_use(), the sum, after_use()
///
/// What takes a data_ptr() without an operator says so by a DirectUse.
/// Cost: about a microsecond for each operator of the process while there is one.
class ComingMemory : public std::enable_shared_from_this<ComingMemory> {
 public:
  ComingMemory() = default;
  virtual ~ComingMemory() = default;
  ComingMemory(const ComingMemory&) = delete;
  ComingMemory& operator=(const ComingMemory&) = delete;
  ComingMemory(ComingMemory&&) = delete;
  ComingMemory& operator=(ComingMemory&&) = delete;

  /// Comes before each use, in its thread. `writes`: it may change values. It cannot throw, because
  /// libtorch would go on without the memory: lend some, and tell of the error later.
  virtual void before_use(bool writes) noexcept = 0;
  /// Comes after it. Uses may be nested.
  virtual void after_use() noexcept = 0;
  /// Comes instead of before_use() where an operator of libtorch is the one who uses it.
  virtual void before_operator(const at::RecordFunction& /*function*/, bool writes) noexcept {
    before_use(writes);
  }

  /// Returns what this process keeps of a dense view where ranks divide the tensor, without asking
  /// anybody. `to_write`: a whole that is there is out of date from now on.
  [[nodiscard]] virtual std::optional<TensorPart> own_part(const at::Tensor& /*view*/,
                                                           bool /*to_write*/) {
    return std::nullopt;
  }
  /// Collective: returns the whole of a tensor that ranks divide as they divide the dense `view`,
  /// of which this one has the flat `part`. In the view's layout.
  [[nodiscard]] virtual at::Tensor gather(const at::Tensor& /*view*/, const at::Tensor& /*part*/) {
    return {};
  }
  /// Throws what stopped the memory from coming in a use that is over.
  virtual void check() {}
  /// True if read() can be called: the values are in a file.
  [[nodiscard]] virtual bool can_read() const { return false; }
  /// Returns elements of a contiguous view, flat. Errors: those of the file.
  [[nodiscard]] virtual at::Tensor read(const at::Tensor& /*view*/, const IndexRange& /*range*/) {
    return {};
  }

  /// Returns a flat tensor without memory, which keeps this object alive, as its views do. Once.
  [[nodiscard]] at::Tensor make_flat(int64_t elements, const at::TensorOptions& options);
  /// Takes the memory of a new tensor, whose values are lost, instead of make_flat(). Once.
  void empty_out(const at::Tensor& fresh);
  /// Gives that tensor the memory of another one of its size. Nothing happens once it is gone.
  void lend(const at::Tensor& memory);
  /// Where its memory did not come: gives it NaN, or -1 where it has no fractions.
  void lend_nothing() noexcept;
  /// Takes the memory away.
  void take_back();
  /// Gives it this memory for good: no more uses are told of.
  void settle(const at::Tensor& memory);

 private:
  struct Place;
  struct Held;
  static void release(void* held);
  void own(c10::StorageImpl* storage, const at::TensorOptions& options);

  std::weak_ptr<Place> place_{};
};

/// Returns what brings the memory of this tensor; nullptr: it is always there.
[[nodiscard]] std::shared_ptr<ComingMemory> coming_memory_of(const at::Tensor& tensor);

/// While it lives, the memory of these tensors is there, for kernels that are no operators. Also
/// tells used_tensors() of them, so that parallel::recompute() knows. Tensors may be undefined.
class [[nodiscard]] DirectUse final {
 public:
  explicit DirectUse(const std::vector<at::Tensor>& tensors, bool writes = false);
  ~DirectUse();
  DirectUse(const DirectUse&) = delete;
  DirectUse& operator=(const DirectUse&) = delete;
  DirectUse(DirectUse&&) = delete;
  DirectUse& operator=(DirectUse&&) = delete;

 private:
  std::vector<std::shared_ptr<ComingMemory>> used_{};
};

}  // namespace argosy::engine
