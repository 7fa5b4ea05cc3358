#pragma once

#include <cstdint>
#include <string_view>

namespace argosy::vision {

/// Which part of a data set.
enum class Split : uint8_t { kTrain, kValid, kTest };

[[nodiscard]] constexpr std::string_view to_string(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kValid:
      return "valid";
    case Split::kTest:
      return "test";
  }
  return "?";
}

}  // namespace argosy::vision
