#include "argosy/checkpoint/piece.h"

#include <algorithm>
#include <numeric>

#include "argosy/engine/parts.h"

namespace argosy::checkpoint {
namespace {

/// The dims as they lie in memory, the slowest first.
std::vector<int64_t> order_in_memory(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) {
    return {};
  }
  std::vector<int64_t> dims(static_cast<size_t>(tensor.dim()));
  std::iota(dims.begin(), dims.end(), int64_t{0});
  std::ranges::stable_sort(dims, std::greater<>(), [&](int64_t dim) { return tensor.stride(dim); });
  return dims;
}

std::optional<engine::TensorPart> part_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided ? engine::own_part(tensor)
                                                             : std::nullopt;
}

}  // namespace

bool is_divided(const at::Tensor& tensor) {
  return part_of(tensor).has_value();
}

Piece piece_of(const at::Tensor& tensor) {
  const auto part = part_of(tensor);
  if (!part.has_value()) {
    return {.values = tensor};
  }
  if (part->range.size() == tensor.numel()) {
    return {.values = part->elements.as_strided(
                tensor.sizes(), tensor.strides(), part->elements.storage_offset())};
  }
  return {.values = part->elements,
          .is_all = false,
          .range = part->range,
          .shape = tensor.sizes().vec(),
          .order = order_in_memory(tensor)};
}

}  // namespace argosy::checkpoint
