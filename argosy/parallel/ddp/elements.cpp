#include "argosy/parallel/ddp/elements.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include <ATen/Dispatch.h>
#include <c10/util/hash.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "argosy/engine/coming_memory.h"
#include "argosy/engine/layout.h"

namespace argosy::parallel::ddp {
namespace {

bool is_readable(const at::Tensor& tensor) {
  return tensor.is_cpu() && engine::is_dense(tensor) && engine::coming_memory_of(tensor) == nullptr;
}

}  // namespace

uint64_t bits_of(const at::Tensor& tensor, IndexRange range) {
  if (!is_readable(tensor)) {
    return 0;
  }
  const auto item = static_cast<int64_t>(tensor.element_size());
  const auto* const data = static_cast<const std::byte*>(tensor.data_ptr());
  return XXH3_64bits(data + range.begin * item, static_cast<size_t>(range.size() * item));
}

uint64_t bits_of(const at::Tensor& tensor) {
  return bits_of(tensor, {0, tensor.numel()});
}

std::optional<uint64_t> bits_of_samples(const at::Tensor& tensor) {
  constexpr int64_t kElements = 4;
  if (!is_readable(tensor)) {
    return std::nullopt;
  }
  if (tensor.numel() == 0) {
    return 0;
  }
  const auto* const data = static_cast<const std::byte*>(tensor.data_ptr());
  const auto item = static_cast<int64_t>(tensor.element_size());
  const auto size = std::min(sizeof(uint64_t), static_cast<size_t>(item));
  uint64_t digest = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    uint64_t element = 0;
    std::memcpy(&element, data + tensor.numel() * i / kElements * item, size);
    digest = c10::hash_combine(digest, element);
  }
  return digest;
}

std::optional<int64_t> first_difference(const at::Tensor& a, const at::Tensor& b) {
  if (!is_readable(a) || !is_readable(b)) {
    return std::nullopt;
  }
  const auto item = static_cast<int64_t>(a.element_size());
  const auto* const of_a = static_cast<const std::byte*>(a.data_ptr());
  const auto* const of_b = static_cast<const std::byte*>(b.data_ptr());
  const auto bytes = a.numel() * item;
  const auto* const found = std::mismatch(of_a, of_a + bytes, of_b).first;
  return found == of_a + bytes ? std::nullopt : std::optional((found - of_a) / item);
}

std::string element_name(const std::string& name, const at::Tensor& tensor, int64_t place) {
  std::vector<int64_t> order;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1) {
      order.push_back(d);
    }
  }
  std::ranges::sort(order, std::greater(), [&](int64_t d) { return tensor.stride(d); });
  std::vector<int64_t> index(static_cast<size_t>(tensor.dim()));
  for (const int64_t d : order) {
    index[static_cast<size_t>(d)] = place / tensor.stride(d);
    place %= tensor.stride(d);
  }
  return index.empty() ? name : fmt::format("{}[{}]", name, fmt::join(index, ", "));
}

std::string element_value(const at::Tensor& tensor, int64_t place) {
  std::string text;
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, tensor.scalar_type(), "element_value", [&] {
        using Shown = std::conditional_t<std::is_same_v<scalar_t, double>, double, float>;
        const auto value = static_cast<Shown>(tensor.data_ptr<scalar_t>()[place]);
        text = std::isnan(value) ? "NaN" : fmt::format("{}", value);  // whatever its sign
      });
  return text;
}

}  // namespace argosy::parallel::ddp
