#include "argosy/transport/progress.h"

#include <fmt/format.h>

#include <vector>

#include "argosy/base/strings.h"

namespace argosy::transport {
namespace {

/// Returns the fields of a call in their order: "1,0,2,-1,400,0,5,0,0,0,0,0,1". Only processes of
/// the same release read it.
std::string as_numbers(const Call& call) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
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
                     call.place.frozen,
                     call.place.layout,
                     call.place.unit,
                     call.exact ? 1 : 0);
}

std::optional<Call> from_numbers(const std::string& text) {
  std::vector<int64_t> fields;
  for (const std::string& word : strings::split(text, ',')) {
    fields.push_back(strings::parse_int(word).value_or(-1));
  }
  if (fields.size() != 14) {
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
              .exact = fields[13] == 1,
              .place = {.update = static_cast<uint32_t>(fields[8]),
                        .pass = static_cast<uint32_t>(fields[9]),
                        .frozen = static_cast<uint32_t>(fields[10]),
                        .layout = static_cast<uint32_t>(fields[11]),
                        .unit = static_cast<uint32_t>(fields[12])}};
}

}  // namespace

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
