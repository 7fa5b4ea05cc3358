#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace argosy::rendezvous {

inline constexpr std::size_t kProofBytes = 32;

/// Returns what only who knows `key` can say of `text`: its HMAC with SHA-256, kProofBytes bytes.
/// Compare it by strings::equal_constant_time().
[[nodiscard]] std::string proof_of(std::string_view key, std::string_view text);

}  // namespace argosy::rendezvous
