#include "argosy/optim/finite.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <ATen/Dispatch.h>

#include "argosy/engine/layout.h"
#include "argosy/optim/kernels/norm.h"

namespace argosy::optim {
namespace {

template <typename T>
bool all_finite(const T* data, std::size_t count) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return kernels::all_finite(data, count);
  } else {
    return std::all_of(
        data, data + count, [](T value) { return std::isfinite(static_cast<float>(value)); });
  }
}

}  // namespace

std::optional<int64_t> first_nonfinite(const at::Tensor& tensor) {
  if (!tensor.is_cpu() || tensor.layout() != at::kStrided || !tensor.is_floating_point() ||
      !engine::is_dense(tensor)) {
    return std::nullopt;
  }
  std::optional<int64_t> first;
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, tensor.scalar_type(), "first_nonfinite", [&] {
        const auto* const data = tensor.data_ptr<scalar_t>();
        const auto* const end = data + tensor.numel();
        if (!all_finite(data, static_cast<std::size_t>(tensor.numel()))) {
          first = std::find_if(
                      data,
                      end,
                      [](scalar_t value) { return !std::isfinite(static_cast<double>(value)); }) -
                  data;
        }
      });
  return first;
}

}  // namespace argosy::optim
