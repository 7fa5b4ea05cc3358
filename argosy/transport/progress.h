#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "argosy/transport/call.h"

namespace argosy::transport {

/// What a rank does. It stands as a note beside the rank's presence in the store, where the others
/// read it.
struct Progress {
  bool inside = false;  ///< true: inside the operation; false: after it
  int64_t seq = 0;      ///< number of the operation
  std::string op{"nothing"};
  std::optional<Call> call{};    ///< of operation `seq`
  std::optional<Call> before{};  ///< of operation `seq` - 1

  /// Returns how this rank called collective `number`; nullopt when that is not known.
  [[nodiscard]] std::optional<Call> call_at(int64_t number) const;
  [[nodiscard]] std::string encode() const;
  /// Returns nullopt when `note` is not the text of a Progress.
  [[nodiscard]] static std::optional<Progress> decode(const std::string& note);
};

}  // namespace argosy::transport
