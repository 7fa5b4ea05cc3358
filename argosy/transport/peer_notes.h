#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/transport/peer_watch.h"

// Internal to the room: what the ranks of a group write beside their presence, and how it reads.
namespace argosy::transport {

inline constexpr std::string_view kMember = "rank/";

[[nodiscard]] std::string member_name(int rank);
/// -1: not a rank.
[[nodiscard]] int rank_of(const std::string& member);
[[nodiscard]] bool is_victim(const std::string& note);
/// "it was last seen after all_reduce (seq 3)": a note may be a second old.
[[nodiscard]] std::string in_words(const std::string& note);
/// " (seq 3)", or nothing for a message.
[[nodiscard]] std::string number(int64_t seq);

/// The ranks of a group at one moment. Whoever leaves while it is taken is in both lists and counts
/// as present, so that nobody is ever in neither.
struct Muster {
  std::vector<rendezvous::Departure> left_job{};
  std::vector<rendezvous::Member> present{};
  std::vector<rendezvous::Departure> left{};
};

/// Who is to blame, and how it ended. A victim leaves it behind as its last note:
/// "victim 3,5 | rank 3 died", "victim timeout 5 | rank 0's barrier timed out …" or
/// "victim mismatch  | rank 0's all_to_all: rank 1 sends 4 B, …".
struct Blame {
  std::vector<int> peers{};
  std::string story{};
  enum class Kind {
    kGone,      ///< they died or left
    kTimeout,   ///< they did not come in time; nobody is known to be dead
    kMismatch,  ///< the ranks called an operation differently; nobody in particular is to blame
  };
  Kind kind = Kind::kGone;

  [[nodiscard]] std::string note() const;
  [[nodiscard]] static std::optional<Blame> parse(std::string_view note);
  [[nodiscard]] std::exception_ptr error(const std::string& where,
                                         const std::string& what,
                                         CommContext context) const;
};

}  // namespace argosy::transport
