#include "argosy/transport/peer_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "argosy/base/strings.h"
#include "argosy/transport/progress.h"

namespace argosy::transport {
namespace {

constexpr std::string_view kVictim = "victim ";
constexpr std::array<std::string_view, 3> kKinds{"", "timeout ", "mismatch "};  ///< of Blame

}  // namespace

std::string member_name(int rank) {
  return fmt::format("{}{}", kMember, rank);
}

int rank_of(const std::string& member) {
  const auto number = strings::parse_int(std::string_view(member).substr(kMember.size()));
  return number ? static_cast<int>(*number) : -1;
}

bool is_victim(const std::string& note) {
  return note.starts_with(kVictim);
}

std::string in_words(const std::string& note) {
  const auto progress = Progress::decode(note);
  if (!progress) {  // a rank's first note comes a moment after the rank
    return "what it did last is not known";
  }
  if (progress->seq == 0) {
    return "it was last seen before its first operation";
  }
  return progress->inside
             ? fmt::format("it was last seen in {} (seq {})", progress->op, progress->seq)
             : fmt::format("it was last seen after {} (seq {})", progress->op, progress->seq);
}

std::string number(int64_t seq) {
  return seq < 0 ? "" : fmt::format(" (seq {})", seq);
}

std::string Blame::note() const {
  return fmt::format(
      "{}{}{} | {}", kVictim, kKinds.at(static_cast<size_t>(kind)), fmt::join(peers, ","), story);
}

std::optional<Blame> Blame::parse(std::string_view note) {
  const size_t bar = note.find(" | ");
  if (!note.starts_with(kVictim) || bar == std::string_view::npos) {
    return std::nullopt;
  }
  Blame blame;
  blame.story = note.substr(bar + 3);
  note = note.substr(kVictim.size(), bar - kVictim.size());
  for (const Kind kind : {Kind::kTimeout, Kind::kMismatch}) {
    const std::string_view word = kKinds.at(static_cast<size_t>(kind));
    if (note.starts_with(word)) {
      blame.kind = kind;
      note.remove_prefix(word.size());
    }
  }
  for (const auto& piece : strings::split(note, ',')) {
    if (const auto rank = strings::parse_int(piece)) {
      blame.peers.push_back(static_cast<int>(*rank));
    }
  }
  return blame;
}

std::exception_ptr Blame::error(const std::string& where,
                                const std::string& what,
                                CommContext context) const {
  context.mismatch = kind == Kind::kMismatch;
  return kind == Kind::kTimeout ? std::make_exception_ptr(TimeoutError(where, what, context))
                                : std::make_exception_ptr(CommError(where, what, context));
}

}  // namespace argosy::transport
