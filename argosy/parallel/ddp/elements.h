#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/base/even_part.h"

// The elements of dense tensors on the CPU, in the order of memory.
namespace argosy::parallel::ddp {

/// Returns a hash of the bits of the elements, or of those in `range`; 0 for a tensor that is not
/// dense or not on the CPU.
[[nodiscard]] uint64_t bits_of(const at::Tensor& tensor);
[[nodiscard]] uint64_t bits_of(const at::Tensor& tensor, IndexRange range);

/// The same of four elements that are far from each other; nullopt where bits_of() is 0 for a want
/// of access.
[[nodiscard]] std::optional<uint64_t> bits_of_samples(const at::Tensor& tensor);

/// Returns the place of the first element whose bits differ. Returns nullopt if there is none, or
/// the memory cannot be compared.
[[nodiscard]] std::optional<int64_t> first_difference(const at::Tensor& a, const at::Tensor& b);

/// Returns "fc.weight[3, 17]" for the element at this place.
[[nodiscard]] std::string element_name(const std::string& name,
                                       const at::Tensor& tensor,
                                       int64_t place);
/// Returns it with as many digits as tell it from all others of its type.
[[nodiscard]] std::string element_value(const at::Tensor& tensor, int64_t place);

}  // namespace argosy::parallel::ddp
