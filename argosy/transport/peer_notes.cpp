#include "argosy/transport/peer_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "argosy/base/strings.h"

namespace argosy::transport {
namespace {

constexpr std::string_view kVictim = "victim ";
constexpr std::array<std::string_view, 3> kKinds{"", "timeout ", "mismatch "};  ///< of Blame

/// "1,0,2,-1,400,0,5,0": a call's fields in their order, which one release reads of itself only.
std::string as_numbers(const Call& call) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{}",
                     static_cast<int>(call.op),
                     static_cast<int>(call.dtype),
                     static_cast<int>(call.reduction),
                     call.root,
                     call.bytes,
                     static_cast<int64_t>(call.parts),
                     call.seq,
                     static_cast<int64_t>(call.step),
                     call.place.update,
                     call.place.pass,
                     call.place.frozen);
}

std::optional<Call> from_numbers(const std::string& text) {
  std::vector<int64_t> fields;
  for (const std::string& word : strings::split(text, ',')) {
    fields.push_back(strings::parse_int(word).value_or(-1));
  }
  if (fields.size() != 11) {
    return std::nullopt;
  }
  return Call{.op = static_cast<Op>(fields[0]),
              .dtype = static_cast<DType>(fields[1]),
              .reduction = static_cast<ReduceOp>(fields[2]),
              .root = static_cast<int32_t>(fields[3]),
              .bytes = fields[4],
              .parts = static_cast<uint64_t>(fields[5]),
              .seq = fields[6],
              .step = static_cast<uint64_t>(fields[7]),
              .place = {.update = static_cast<uint32_t>(fields[8]),
                        .pass = static_cast<uint32_t>(fields[9]),
                        .frozen = static_cast<uint32_t>(fields[10])}};
}

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

std::optional<Call> Progress::call_at(int64_t number) const {
  return number == seq ? call : number + 1 == seq ? before : std::nullopt;
}

std::string Progress::encode() const {
  std::string note = fmt::format("{} {} {}", inside ? "in" : "done", seq, op);
  for (const std::optional<Call>& one : {call, before}) {
    note += one ? " " + as_numbers(*one) : "";
  }
  return note;
}

std::optional<Progress> Progress::decode(const std::string& note) {
  const auto words = strings::split(note, ' ');
  if (words.size() < 3 || (words[0] != "in" && words[0] != "done")) {
    return std::nullopt;
  }
  const auto seq = strings::parse_int(words[1]);
  if (!seq) {
    return std::nullopt;
  }
  return Progress{.inside = words[0] == "in",
                  .seq = *seq,
                  .op = words[2],
                  .call = words.size() > 3 ? from_numbers(words[3]) : std::nullopt,
                  .before = words.size() > 4 ? from_numbers(words[4]) : std::nullopt};
}

}  // namespace argosy::transport
