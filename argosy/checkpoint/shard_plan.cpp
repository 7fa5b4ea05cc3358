#include "argosy/checkpoint/shard_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "argosy/base/error.h"
#include "argosy/checkpoint/safetensors_file.h"
#include "argosy/comm/json.h"

namespace argosy::checkpoint {
namespace {

using nlohmann::json;
using Key = std::pair<std::string, std::string>;

struct Candidate {
  Key key;
  std::string kind;  ///< "F32 [64, 3]"
  int64_t bytes = 0;
  std::vector<size_t> owners;
};

/// What this rank has: [part, name, kind, bytes] for each.
json describe(const Snapshot& snapshot, const std::string& error) {
  json all = json::array();
  json parts = json::array();
  if (error.empty()) {
    for (const auto& [part, dict] : snapshot.parts) {
      parts.push_back(part);
      for (const auto& [name, tensor] : dict) {
        const auto entry = describe_safetensor(name, tensor);
        const std::string kind =
            fmt::format("{} [{}]", to_string(entry.type), fmt::join(entry.shape, ", "));
        all.push_back({part, name, kind, entry.bytes});
      }
    }
  }
  return {{"error", error}, {"parts", std::move(parts)}, {"tensors", std::move(all)}};
}

json describe_or_say_why_not(const Snapshot& snapshot, const std::string& error) {
  try {
    return describe(snapshot, error);
  } catch (const CheckpointError& bad) {
    return describe(snapshot, bad.what());
  }
}

/// In order of first appearance, rank by rank.
std::vector<Candidate> candidates(const std::vector<json>& ranks) {
  std::vector<Candidate> all;
  std::map<Key, size_t> index;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (const auto error = ranks[rank].at("error").get<std::string>(); !error.empty()) {
      throw CheckpointError("checkpoint.save", fmt::format("(rank {}) {}", rank, error));
    }
    for (const json& tensor : ranks[rank].at("tensors")) {
      const Key key{tensor[0].get<std::string>(), tensor[1].get<std::string>()};
      const auto [place, added] = index.try_emplace(key, all.size());
      if (added) {
        all.push_back({key, tensor[2].get<std::string>(), tensor[3].get<int64_t>(), {}});
      }
      Candidate& candidate = all[place->second];
      if (candidate.kind != tensor[2].get<std::string>()) {
        throw CheckpointError(
            "checkpoint.save",
            fmt::format("of {}: rank {} has {}, rank {} has {}. Give the pieces of a sharded "
                        "tensor names of their own",
                        key.first,
                        candidate.owners.front(),
                        candidate.kind,
                        rank,
                        tensor[2].get<std::string>()),
            {{}, key.second});
      }
      candidate.owners.push_back(rank);
    }
  }
  return all;
}

/// Who writes which: the largest first, each to the owner with the least until then.
std::vector<size_t> writers(const std::vector<Candidate>& all, size_t ranks) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return all[i].bytes; });
  std::vector<int64_t> load(ranks, 0);
  std::vector<size_t> writer(all.size());
  for (const size_t i : order) {
    writer[i] = *std::ranges::min_element(all[i].owners, {}, [&](size_t r) { return load[r]; });
    load[writer[i]] += all[i].bytes;
  }
  return writer;
}

}  // namespace

ShardPlan plan_shards(const Snapshot& snapshot,
                      const std::string& error,
                      const comm::Group& group) {
  const std::vector<json> ranks =
      comm::all_gather_object(describe_or_say_why_not(snapshot, error), group);
  const std::vector<Candidate> all = candidates(ranks);
  const std::vector<size_t> writer = writers(all, ranks.size());
  ShardPlan plan;
  for (const json& rank : ranks) {
    for (const json& part : rank.at("parts")) {
      if (std::ranges::find(plan.parts, part.get<std::string>()) == plan.parts.end()) {
        plan.parts.push_back(part.get<std::string>());
      }
    }
  }
  std::map<std::string, engine::StateDict> own;
  for (size_t i = 0; i < all.size(); ++i) {
    plan.order.push_back(all[i].key);
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
