#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <c10/core/ScalarType.h>

// Internal to the room: Python's names for element types.
namespace argosy::checkpoint {

inline constexpr std::array<std::pair<at::ScalarType, std::string_view>, 12> kTorchStorages{
    {{at::kFloat, "FloatStorage"},
     {at::kDouble, "DoubleStorage"},
     {at::kHalf, "HalfStorage"},
     {at::kBFloat16, "BFloat16Storage"},
     {at::kLong, "LongStorage"},
     {at::kInt, "IntStorage"},
     {at::kShort, "ShortStorage"},
     {at::kChar, "CharStorage"},
     {at::kByte, "ByteStorage"},
     {at::kBool, "BoolStorage"},
     {at::kComplexFloat, "ComplexFloatStorage"},
     {at::kComplexDouble, "ComplexDoubleStorage"}}};

[[nodiscard]] inline std::optional<at::ScalarType> type_of_storage(std::string_view name) {
  for (const auto& [type, storage] : kTorchStorages) {
    if (storage == name) {
      return type;
    }
  }
  return std::nullopt;
}

/// Empty if there is no such type.
[[nodiscard]] inline std::string_view storage_of_type(at::ScalarType wanted) {
  for (const auto& [type, storage] : kTorchStorages) {
    if (type == wanted) {
      return storage;
    }
  }
  return {};
}

}  // namespace argosy::checkpoint
