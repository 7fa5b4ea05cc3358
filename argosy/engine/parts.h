#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <optional>

#include <ATen/core/Tensor.h>

#include "argosy/base/even_part.h"
#include "argosy/engine/coming_memory.h"

/// Tensors of which a process has a part, and moving values between them without anybody else.
namespace argosy::engine {

/// Memory that one call brings whole, for as long as somebody uses it. What is written into it
/// stays for good. Where the call fails, operators get what lend_nothing() gives, and check()
/// throws.
class FetchedMemory : public ComingMemory {
 public:
  void before_use(bool writes) noexcept final;
  void after_use() noexcept final;
  void check() final;

 private:
  /// Returns all elements, flat.
  [[nodiscard]] virtual at::Tensor fetch() = 0;

  std::recursive_mutex mutex_{};
  int uses_ = 0;
  bool written_ = false;
  at::Tensor lent_{};
  std::exception_ptr error_{};
};

/// Returns a part of a dense tensor's elements, flat and in place.
[[nodiscard]] at::Tensor elements_of(const at::Tensor& dense, const IndexRange& part);

/// Returns `tensor` as one flat range in the order of the dense tensor `like`: itself if the
/// strides agree, else a copy.
[[nodiscard]] at::Tensor in_order_of(const at::Tensor& like, const at::Tensor& tensor);

/// Returns what this process has of a tensor that ranks divide; nullopt: it has, or can read, all
/// of it. `to_write`: a whole that is there goes.
[[nodiscard]] std::optional<TensorPart> own_part(const at::Tensor& tensor, bool to_write = false);

/// True if the tensor's values are in a file from which they can be read.
[[nodiscard]] bool is_in_file(const at::Tensor& tensor);

/// Returns a tensor shaped like `like` of which this process has a part. Whoever reads the whole
/// calls `gather` for it, on all ranks in the same order. It shares the part's memory, and the
/// whole is not for writing.
[[nodiscard]] at::Tensor divided_tensor(const at::Tensor& like,
                                        const TensorPart& part,
                                        std::function<at::Tensor()> gather);

/// Returns the elements `range` of `from`, flat, in the order of the dense tensor `like`. They may
/// share its memory. Of a tensor in a file only what is needed is read. Collective where ranks
/// divide `from` in another way.
[[nodiscard]] at::Tensor elements_like(const at::Tensor& like,
                                       const at::Tensor& from,
                                       const IndexRange& range);

/// Copies the values of `from` into `to`: into this process's part where ranks divide `to`.
/// Errors: those of reading a file.
void copy_values(const at::Tensor& to, const at::Tensor& from);

/// Returns the tensor with all its values in memory that stays: itself; what a file holds; or,
/// where ranks divide it, what they gather, which is collective. Errors: those of reading or
/// gathering.
[[nodiscard]] at::Tensor values_of(const at::Tensor& tensor);

}  // namespace argosy::engine
