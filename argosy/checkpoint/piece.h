#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/base/even_part.h"

// Internal to the room.
namespace argosy::checkpoint {

/// What one rank writes of a tensor: all of it, or its part where ranks divide it.
struct Piece {
  at::Tensor values{};  ///< of a part flat
  bool is_all = true;
  IndexRange range{};            ///< of the whole's elements
  std::vector<int64_t> shape{};  ///< of the whole
  std::vector<int64_t> order{};  ///< see ManifestTensor
};

/// True if other ranks have elements of it that this one has not.
[[nodiscard]] bool is_divided(const at::Tensor& tensor);
[[nodiscard]] Piece piece_of(const at::Tensor& tensor);

}  // namespace argosy::checkpoint
