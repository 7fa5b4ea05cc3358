#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>

#include "argosy/data/checks.h"
#include "argosy/data/dataset.h"

namespace argosy::data {

/// Returns rows `indices` of `source` as one tensor in the context's memory.
///
/// Shape: source [N, …] → [indices, …], same dtype; any strides, CPU. Images get the memory format
/// of the context.
/// Errors: DataError with the index when one lies outside 0 … N - 1.
/// Cost: one memcpy per row when rows lie in the source as in the batch.
[[nodiscard]] at::Tensor gather_rows(const at::Tensor& source,
                                     std::span<const int64_t> indices,
                                     const BatchContext& context);

/// Returns the size of the first dimension. Checks that there is one and that it is equal in all
/// tensors.
int64_t check_same_rows(std::span<const at::Tensor> tensors);

/// A data set of tensors side by side: sample i is row i of each.
///
///     data::TensorDataset set(images, labels);
///     data::DataLoader loader(set, {.batch_size = 32});
///     for (auto& [x, y] : loader) ...
///
/// The tensors are shared, not copied. With one tensor a batch is a tuple of one.
/// Errors: UsageError when a first dimension is missing or they differ.
template <size_t N>
class TensorDataset final {
 public:
  template <typename... Tensors>
  requires(sizeof...(Tensors) == N && (std::is_convertible_v<Tensors, at::Tensor> &&
                                       ...)) explicit TensorDataset(Tensors&&... tensors)
      : tensors_{at::Tensor(std::forward<Tensors>(tensors))...}, size_(check_same_rows(tensors_)) {}

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] const std::array<at::Tensor, N>& tensors() const { return tensors_; }

  [[nodiscard]] std::array<at::Tensor, N> get(int64_t index) const {
    check_index("data.TensorDataset", index, size_);
    std::array<at::Tensor, N> sample;
    for (size_t i = 0; i < N; ++i) {
      sample[i] = tensors_[i].select(0, index);
    }
    return sample;
  }

  [[nodiscard]] auto get_batch(std::span<const int64_t> indices,
                               const BatchContext& context) const {
    return std::apply(
        [&](const auto&... tensor) {
          return std::make_tuple(gather_rows(tensor, indices, context)...);
        },
        tensors_);
  }

 private:
  std::array<at::Tensor, N> tensors_;
  int64_t size_;
};

template <typename... Tensors>
TensorDataset(Tensors&&...) -> TensorDataset<sizeof...(Tensors)>;

}  // namespace argosy::data
