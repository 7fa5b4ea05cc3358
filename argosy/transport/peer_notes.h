#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/error.h"

// Internal to the room: the notes that the ranks of a group write beside their presence in the
// store.
namespace argosy::transport {

/// The prefix of the names under which ranks are members of a store.
inline constexpr std::string_view kMember = "rank/";

[[nodiscard]] std::string member_name(int rank);
/// Returns the rank of a member; -1 when the member is not a rank.
[[nodiscard]] int rank_of(const std::string& member);
/// True if the note is the last word of a rank that failed.
[[nodiscard]] bool is_victim(const std::string& note);
/// Says what a rank did last: "it was last seen after all_reduce (seq 3)". A note may be a second
/// old.
[[nodiscard]] std::string in_words(const std::string& note);
/// Returns " (seq 3)", or nothing for a message, whose `seq` is -1.
[[nodiscard]] std::string number(int64_t seq);

/// Who is to blame for a failed operation, and why. A rank that fails is a victim, and leaves this
/// behind as its last note: "victim 3,5 | rank 3 died", "victim timeout 5 | rank 0's barrier timed
/// out …" or "victim mismatch  | rank 0's all_to_all: rank 1 sends 4 B, …".
struct Blame {
  enum class Kind {
    kGone,      ///< `peers` died or left
    kTimeout,   ///< `peers` did not come in time; nobody is known to be dead
    kMismatch,  ///< ranks called an operation differently; nobody in particular is to blame
  };

  std::vector<int> peers{};
  std::string story{};
  Kind kind = Kind::kGone;

  [[nodiscard]] std::string note() const;
  /// Returns nullopt when `note` is not the last word of a victim.
  [[nodiscard]] static std::optional<Blame> parse(std::string_view note);
  /// Returns the exception of this kind: TimeoutError or CommError.
  [[nodiscard]] std::exception_ptr error(const std::string& where,
                                         const std::string& what,
                                         CommContext context) const;
};

}  // namespace argosy::transport
