#include "argosy/checkpoint/shard_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "argosy/base/error.h"
#include "argosy/checkpoint/piece.h"
#include "argosy/checkpoint/safetensors_file.h"
#include "argosy/comm/json.h"

namespace argosy::checkpoint {
namespace {

using nlohmann::json;
using Key = std::pair<std::string, std::string>;

/// A tensor, or a part of it, that some ranks have alike.
struct Candidate {
  Key key;
  std::string kind;      ///< "F32 [64, 3]"
  IndexRange range;      ///< of the whole's elements; of a whole tensor 0 to -1
  int64_t elements = 0;  ///< of the whole
  int64_t bytes = 0;
  std::vector<size_t> owners{};
};

/// What this rank has: [part, name, kind, bytes, begin, end, elements of the whole] for each.
json describe(const Snapshot& snapshot, const std::string& error) {
  json all = json::array();
  json parts = json::array();
  if (error.empty()) {
    for (const auto& [part, dict] : snapshot.parts) {
      parts.push_back(part);
      for (const auto& [name, tensor] : dict) {
        const Piece piece = piece_of(tensor);
        const auto entry = describe_safetensor(name, piece.values);
        const std::string kind = fmt::format("{} [{}]{}{}",
                                             to_string(entry.type),
                                             fmt::join(tensor.sizes(), ", "),
                                             piece.order.empty() ? "" : " in the order of dims ",
                                             fmt::join(piece.order, ", "));
        all.push_back({part,
                       name,
                       kind,
                       entry.bytes,
                       piece.range.begin,
                       piece.is_all ? -1 : piece.range.end,
                       tensor.numel()});
      }
    }
  }
  return {{"error", error}, {"parts", std::move(parts)}, {"tensors", std::move(all)}};
}

json describe_or_say_why_not(const Snapshot& snapshot, const std::string& error) {
  try {
    return describe(snapshot, error);
  } catch (const std::exception& bad) {  // of any kind: the others wait for this rank's word
    return describe(snapshot, bad.what());
  }
}

Candidate candidate_in(const json& tensor) {
  return {.key = {tensor[0].get<std::string>(), tensor[1].get<std::string>()},
          .kind = tensor[2].get<std::string>(),
          .range = {tensor[4].get<int64_t>(), tensor[5].get<int64_t>()},
          .elements = tensor[6].get<int64_t>(),
          .bytes = tensor[3].get<int64_t>()};
}

[[noreturn]] void fail_plan(const Key& key, const std::string& what) {
  throw CheckpointError(
      "checkpoint.save", fmt::format("of {}: {}", key.first, what), {{}, key.second});
}

struct Offered {
  std::vector<Key> order{};  ///< of first appearance, rank by rank
  std::vector<Candidate> all{};
};

Offered candidates(const std::vector<json>& ranks) {
  Offered offered;
  std::vector<Candidate>& all = offered.all;
  std::set<Key> seen;
  std::map<std::pair<Key, int64_t>, size_t> index;  // by key and beginning
  std::map<Key, std::pair<std::string, size_t>> kinds;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (const auto error = ranks[rank].at("error").get<std::string>(); !error.empty()) {
      throw CheckpointError("checkpoint.save", fmt::format("(rank {}) {}", rank, error));
    }
    for (const json& tensor : ranks[rank].at("tensors")) {
      const Candidate theirs = candidate_in(tensor);
      if (seen.insert(theirs.key).second) {
        offered.order.push_back(theirs.key);
      }
      if (theirs.range.size() == 0 && theirs.elements > 0) {
        continue;  // others have it
      }
      const auto& [kind, first] = kinds.try_emplace(theirs.key, theirs.kind, rank).first->second;
      if (kind != theirs.kind) {
        fail_plan(theirs.key,
                  fmt::format("rank {} has {}, rank {} has {}. Give the pieces of a sharded "
                              "tensor names of their own",
                              first,
                              kind,
                              rank,
                              theirs.kind));
      }
      const auto [place, added] = index.try_emplace({theirs.key, theirs.range.begin}, all.size());
      if (added) {
        all.push_back(theirs);
      }
      Candidate& candidate = all[place->second];
      if (candidate.range.end != theirs.range.end) {
        fail_plan(theirs.key, fmt::format("rank {} has elements that others have, too", rank));
      }
      candidate.owners.push_back(rank);
    }
  }
  return offered;
}

int64_t covered(const std::vector<const Candidate*>& pieces) {
  int64_t sum = 0;
  for (const Candidate* piece : pieces) {
    sum += piece->range.size();
  }
  return sum;
}

/// Each element of a divided tensor is written, and once.
void check_complete(const Offered& offered) {
  std::map<Key, std::vector<const Candidate*>> pieces_of;
  for (const Candidate& each : offered.all) {
    pieces_of[each.key].push_back(&each);
  }
  for (const Key& key : offered.order) {
    std::vector<const Candidate*>& pieces = pieces_of[key];
    if (pieces.size() == 1 && pieces.front()->range.end == -1) {
      continue;
    }
    std::ranges::sort(pieces, {}, [](const Candidate* each) { return each->range.begin; });
    int64_t next = 0;
    for (const Candidate* piece : pieces) {
      next = piece->range.begin == next ? piece->range.end : next;
    }
    if (pieces.empty() || next != pieces.front()->elements || next != covered(pieces)) {
      fail_plan(key,
                fmt::format("no rank has its element {}, or two ranks have different parts with it",
                            next));
    }
  }
}

/// Who writes which: the largest first, each to the owner with the least until then.
std::vector<size_t> writers(const std::vector<Candidate>& all,
                            size_t ranks,
                            const std::function<bool(const Candidate&)>& is_of_rank_0) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return all[i].bytes; });
  std::vector<int64_t> load(ranks, 0);
  std::vector<size_t> writer(all.size());
  for (const size_t i : order) {
    writer[i] = is_of_rank_0(all[i]) ? 0
                                     : *std::ranges::min_element(
                                           all[i].owners, {}, [&](size_t r) { return load[r]; });
    load[writer[i]] += all[i].bytes;
  }
  return writer;
}

}  // namespace

ShardPlan plan_shards(const Snapshot& snapshot,
                      const std::string& error,
                      const comm::Group& group,
                      bool shares_wholes) {
  const std::vector<json> ranks =
      comm::all_gather_object(describe_or_say_why_not(snapshot, error), group);
  const Offered offered = candidates(ranks);
  check_complete(offered);
  const std::vector<Candidate>& all = offered.all;
  const std::vector<size_t> writer = writers(all, ranks.size(), [&](const Candidate& each) {
    const bool have_all = each.range.end == -1 && each.owners.size() == ranks.size();
    return have_all && (!shares_wholes || snapshot.of_rank_0.contains(each.key));
  });
  ShardPlan plan;
  for (const json& rank : ranks) {
    for (const json& part : rank.at("parts")) {
      if (std::ranges::find(plan.parts, part.get<std::string>()) == plan.parts.end()) {
        plan.parts.push_back(part.get<std::string>());
      }
    }
  }
  plan.order = offered.order;
  std::map<std::string, engine::StateDict> own;
  for (size_t i = 0; i < all.size(); ++i) {
    if (writer[i] == static_cast<size_t>(group.rank())) {
      const auto& [part, name] = all[i].key;
      own[part].set(name, snapshot.find(part)->at(name));
    }
  }
  for (auto& [part, dict] : own) {
    plan.own.emplace_back(part, std::move(dict));
  }
  return plan;
}

}  // namespace argosy::checkpoint
