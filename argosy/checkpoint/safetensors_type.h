#pragma once

#include <array>
#include <optional>
#include <utility>

#include <c10/core/ScalarType.h>

#include "argosy/formats/safetensors.h"

namespace argosy::checkpoint {

inline constexpr std::array<std::pair<at::ScalarType, formats::SafetensorType>, 10>
    kSafetensorTypes{{{at::kBool, formats::SafetensorType::kBool},
                      {at::kByte, formats::SafetensorType::kU8},
                      {at::kChar, formats::SafetensorType::kI8},
                      {at::kShort, formats::SafetensorType::kI16},
                      {at::kInt, formats::SafetensorType::kI32},
                      {at::kLong, formats::SafetensorType::kI64},
                      {at::kHalf, formats::SafetensorType::kF16},
                      {at::kBFloat16, formats::SafetensorType::kBF16},
                      {at::kFloat, formats::SafetensorType::kF32},
                      {at::kDouble, formats::SafetensorType::kF64}}};

[[nodiscard]] inline at::ScalarType scalar_type_of(formats::SafetensorType wanted) {
  for (const auto& [scalar, type] : kSafetensorTypes) {
    if (type == wanted) {
      return scalar;
    }
  }
  return at::ScalarType::Undefined;
}

/// Returns nullopt for a type that safetensors do not have (complex, quantized).
[[nodiscard]] inline std::optional<formats::SafetensorType> safetensor_type_of(
    at::ScalarType wanted) {
  for (const auto& [scalar, type] : kSafetensorTypes) {
    if (scalar == wanted) {
      return type;
    }
  }
  return std::nullopt;
}

}  // namespace argosy::checkpoint
