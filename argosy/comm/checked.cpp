#include "argosy/comm/checked.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/transport/call.h"

namespace argosy::comm {
namespace {

using transport::TrainingPlace;
static_assert(std::has_unique_object_representations_v<TrainingPlace>, "blocks are compared");

constexpr size_t kBlock = 256;
constexpr size_t kText = kBlock - sizeof(TrainingPlace);
using Block = std::array<char, kBlock>;

/// "all_reduce f32 [3, 4] sum" with the sequence number in front, and the place in the training at
/// the end. The end of a text that is too long is what gives way, for its hash stands in front.
Block pack(const Operation& operation) {
  Block block{};
  const std::string text = fmt::format("{:016x}{:016x}{}",
                                       static_cast<uint64_t>(operation.seq),
                                       std::hash<std::string>()(operation.info.signature),
                                       operation.info.signature);
  std::memcpy(block.data(), text.data(), std::min(text.size(), kText - 1));
  std::memcpy(block.data() + kText, &operation.info.place, sizeof(TrainingPlace));
  return block;
}

TrainingPlace place_of(const Block& block) {
  TrainingPlace place;
  std::memcpy(&place, block.data() + kText, sizeof(TrainingPlace));
  return place;
}

/// True if they are one call of wrapped models that are not equally far.
bool are_out_of_step(const Block& a, const Block& b) {
  return a != b && std::memcmp(a.data(), b.data(), kText) == 0 && place_of(a).update > 0 &&
         place_of(b).update > 0;
}

std::string describe(const Block& block, bool with_seq) {
  std::string text(block.data() + 32);
  if (place_of(block).update > 0) {
    text += " for a wrapped model";
  }
  if (!with_seq) {
    return text;
  }
  return fmt::format("{} as seq {}", text, std::stoull(std::string(block.data(), 16), nullptr, 16));
}

}  // namespace

void compare_signatures(const Operation& operation,
                        const transport::RankNames& names,
                        transport::Transport& transport,
                        const Deadline& deadline) {
  const int size = transport.size();
  const Block mine = pack(operation);
  std::vector<Block> blocks(static_cast<size_t>(size));
  transport.all_gather(
      mine.data(), blocks.data(), kBlock, transport::DType::kU8, deadline.remaining());
  std::map<Block, std::vector<int>> callers;
  for (int rank = 0; rank < size; ++rank) {
    callers[blocks[static_cast<size_t>(rank)]].push_back(rank);
  }
  if (callers.size() == 1) {
    return;
  }
  // The most frequent call is taken as meant; with a tie, that of the lowest rank.
  const auto meant = std::ranges::max_element(callers, [](const auto& a, const auto& b) {
    return std::pair(a.second.size(), -a.second.front()) <
           std::pair(b.second.size(), -b.second.front());
  });
  const bool with_seq = std::ranges::any_of(callers, [&](const auto& caller) {
    return std::memcmp(caller.first.data(), meant->first.data(), 16) != 0;
  });
  std::vector<int> peers;
  std::string text;
  for (const auto& [block, ranks] : callers) {
    if (are_out_of_step(block, meant->first)) {
      throw CommError("comm.checked",
                      transport::disagreement(names.one(ranks.front()),
                                              {.place = place_of(block)},
                                              names.one(meant->second.front()),
                                              {.place = place_of(meant->first)}),
                      {.peers = ranks});
    }
    if (block != meant->first) {
      text += fmt::format("{} called {}, ", names.several(ranks), describe(block, with_seq));
      peers.insert(peers.end(), ranks.begin(), ranks.end());
    }
  }
  std::ranges::sort(peers);
  const std::string others =
      meant->second.size() == 1 ? names.one(meant->second.front()) : "the others";
  throw CommError(
      "comm.checked",
      fmt::format(
          "the ranks do not do the same: {}{} {}", text, others, describe(meant->first, with_seq)),
      {.peers = peers});
}

}  // namespace argosy::comm
