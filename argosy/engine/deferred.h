#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include "argosy/base/even_part.h"

namespace torch::nn {
class Module;
}

namespace argosy::engine {

/// While it lives, tensors that this thread makes on the CPU get no memory: torch::empty(),
/// zeros(), ones(), full(), rand() and randn() only note how their values come about, and so do the
/// usual initialisers in place (uniform_(), normal_(), fill_(), mul_() by a number …).
///
///     text::Gpt net = engine::deferred<text::Gpt>(options);   // or: const engine::Deferred guard;
///     auto model = fleet::distributed_model(net);             // each rank draws its part
///
/// fully_shard() and fleet::distributed_model() let each rank compute the values of its part, so
/// the whole model is never in one process's memory. Without them a parameter's memory comes with
/// its first use by an operator of libtorch. In each case the values have the bits that they have
/// without the guard, and the generators end in the same state.
///
/// Whatever else is done to such a tensor brings its memory at once, which is right but saves
/// nothing. Tensors under a page are made as ever. Code that takes data_ptr() without an operator
/// gets a null pointer, unless it holds a DirectUse: bring_memory() first.
/// Cost: each drawn tensor is drawn twice, in a scratch memory of the largest one's size.
/// Guards may be nested. Other threads see nothing of it.
/// Source: the purpose is that of PyTorch's meta device and torchdistx.deferred_init.
class [[nodiscard]] Deferred final {
 public:
  Deferred();
  ~Deferred();
  Deferred(const Deferred&) = delete;
  Deferred& operator=(const Deferred&) = delete;
  Deferred(Deferred&&) = delete;
  Deferred& operator=(Deferred&&) = delete;
};

/// Makes a module, or anything else, under a Deferred guard.
template <typename M, typename... Args>
[[nodiscard]] M deferred(Args&&... args) {
  const Deferred guard;
  return M(std::forward<Args>(args)...);
}

/// True while the tensor's memory is still to come.
[[nodiscard]] bool is_deferred(const at::Tensor& tensor);

/// Gives all parameters and buffers of a module, or one tensor, their memory and values now.
/// Errors: c10::Error where there is no memory for them. (An operator that needs the values and
/// gets no memory ends the process, with a line in the log.)
void bring_memory(const torch::nn::Module& module);
void bring_memory(const at::Tensor& tensor);

/// Fills `values` with the elements `first`, `first` + 1, … of a tensor in row-major order. The
/// values of an element must not depend on the range, nor on the thread.
using DrawRange = std::function<void(int64_t first, std::span<float> values)>;

/// Draws all values of a contiguous tensor, in several threads; a deferred tensor's later, and then
/// only those that are needed. `identity` tells the values of two draws apart, for ranks compare
/// it: name everything that they depend on.
void draw_values(const at::Tensor& tensor, DrawRange draw, std::string identity);

/// Writes the elements `range` of a deferred tensor, in row-major order, into the flat tensor
/// `part`. The tensor stays deferred. Cost: memory for the whole tensor, unless draw_values() has
/// told how to draw a range.
void draw_part(const at::Tensor& tensor, const at::Tensor& part, const IndexRange& range);

/// Returns a number that says how a deferred tensor's values come about: equal numbers, equal
/// values.
[[nodiscard]] uint64_t identity_of_values(const at::Tensor& tensor);

}  // namespace argosy::engine
