#include "argosy/comm/group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/comm/at_exit.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/init.h"
#include "argosy/comm/solo_transport.h"

namespace argosy::comm {
namespace {

std::vector<int> iota(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Group adopt(std::unique_ptr<transport::Transport> transport,
            std::shared_ptr<rendezvous::Store> store,
            std::shared_ptr<Family> family,
            GroupStateOptions options) {
  auto state = std::make_shared<GroupState>(
      std::move(transport), std::move(store), std::move(family), std::move(options));
  close_at_exit(state);
  return Group(std::move(state));
}

/// The group of `members` (ranks of `parent`), which all of them make at the same time under a name
/// that only they use.
Group make_child(const GroupState& parent, const std::vector<int>& members, std::string name) {
  GroupStateOptions options = parent.options();
  options.name = std::move(name);
  options.world_ranks.clear();
  options.keep = nullptr;
  options.clears_store = true;
  for (const int member : members) {
    options.world_ranks.push_back(parent.options().world_ranks[static_cast<size_t>(member)]);
  }
  const auto self = std::ranges::find(members, parent.rank());
  if (self == members.end()) {
    return adopt(nullptr, nullptr, parent.shared_family(), std::move(options));
  }
  if (members.size() == 1) {
    return adopt(
        std::make_unique<SoloTransport>(), nullptr, parent.shared_family(), std::move(options));
  }
  ARGOSY_CHECK(parent.family().make_transport,
               "comm.new_group",
               "group \"{}\" was made over a transport of one's own and cannot make others. Give "
               "make_group() a make_transport.",
               parent.options().name);
  auto store = rendezvous::prefix_store(parent.store(), options.name);
  auto transport = parent.family().meet("new_group",
                                        parent.family().make_transport,
                                        {.rank = static_cast<int>(self - members.begin()),
                                         .size = static_cast<int>(members.size()),
                                         .group = options.name,
                                         .world_ranks = options.world_ranks,
                                         .store = store,
                                         .timeout = options.timeout});
  return adopt(std::move(transport), std::move(store), parent.shared_family(), std::move(options));
}

/// "0:6:2" for 0, 2, 4, 6; else all of them.
std::string list(const std::vector<int>& ranks) {
  const int step = ranks.size() > 1 ? ranks[1] - ranks[0] : 1;
  for (size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != step) {
      return fmt::format("{}", fmt::join(ranks, ","));
    }
  }
  return ranks.size() < 3 ? fmt::format("{}", fmt::join(ranks, ","))
                          : fmt::format("{}:{}:{}", ranks.front(), ranks.back(), step);
}

void check_members(const std::vector<int>& ranks, int size) {
  std::vector<bool> seen(static_cast<size_t>(size));
  ARGOSY_CHECK(!ranks.empty(), "comm.new_group", "no ranks given: expected at least one");
  for (const int rank : ranks) {
    ARGOSY_CHECK(rank >= 0 && rank < size,
                 "comm.new_group",
                 "rank {} is not in the group: expected 0 to {}",
                 rank,
                 size - 1);
    ARGOSY_CHECK(!seen[static_cast<size_t>(rank)], "comm.new_group", "rank {} given twice", rank);
    seen[static_cast<size_t>(rank)] = true;
  }
}

}  // namespace

GroupState& Group::state() const {
  ARGOSY_CHECK(
      state_ != nullptr,
      "comm.Group",
      "this group is empty (default-constructed or moved from). Make one with comm::init().");
  return *state_;
}

int Group::rank() const {
  return state().rank();
}
std::vector<int> Group::hosts() const {
  if (size() == 1) {
    return {0};
  }
  const std::vector<int>& of_world = state().family().hosts;
  std::map<int, int> numbers;
  std::vector<int> mine;
  for (const int rank : state().options().world_ranks) {
    const auto world = static_cast<size_t>(rank);
    if (world >= of_world.size() || of_world[world] < 0) {
      return {};
    }
    mine.push_back(
        numbers.try_emplace(of_world[world], static_cast<int>(numbers.size())).first->second);
  }
  return mine;
}
int Group::size() const {
  return state().size();
}
const std::string& Group::name() const {
  return state().options().name;
}
std::chrono::milliseconds Group::timeout() const {
  return state().options().timeout;
}

void Group::check() const {
  state().check_whole();
}

void Group::destroy() {
  GroupState& self = state();
  self.close(Deadline::after(self.options().timeout));
}

Group Group::new_group(const std::vector<int>& ranks, const NewGroupOptions& options) const {
  GroupState& parent = state();
  parent.check_usable("new_group");
  check_members(ranks, parent.size());
  const std::string members = fmt::format("{}[{}]", options.label, list(ranks));
  if (options.members_only) {
    ARGOSY_CHECK(std::ranges::find(ranks, rank()) != ranks.end(),
                 "comm.new_group",
                 "rank {} is not among the members {}, which alone make this group: leave the call "
                 "out, or leave members_only out on all ranks",
                 rank(),
                 fmt::join(ranks, ", "));
    const int64_t number = parent.next_child_of(members);
    return make_child(parent,
                      ranks,
                      number == 0 ? fmt::format("{}.{}", name(), members)
                                  : fmt::format("{}.{}#{}", name(), members, number + 1));
  }
  if (parent.options().checked) {
    parent.run(
        {.op = "new_group", .signature = fmt::format("new_group [{}]", fmt::join(ranks, ", "))},
        {},
        [](transport::Transport&, const Deadline&) {});
  }
  const int64_t number = parent.next_child();
  return make_child(parent,
                    ranks,
                    options.label.empty() ? fmt::format("{}.{}", name(), number)
                                          : fmt::format("{}.{}.{}", name(), number, members));
}

Group Group::split(const SplitOptions& options) const {
  struct Choice {
    int32_t color;
    int32_t key;
  };
  static_assert(sizeof(Choice) == 8);
  GroupState& parent = state();
  const Choice mine{options.color, options.key};
  std::vector<Choice> choices(static_cast<size_t>(size()));
  parent.run({.op = "split",
              .bytes = sizeof(Choice),
              .signature = parent.options().checked ? "split" : ""},
             {},
             [&](transport::Transport& transport, const Deadline& deadline) {
               transport.all_gather(
                   &mine, choices.data(), 2, transport::DType::kI32, deadline.remaining());
             });
  const int64_t child = parent.next_child();
  std::vector<int> members;
  for (const int rank : iota(options.color < 0 ? 0 : size())) {
    if (choices[static_cast<size_t>(rank)].color == options.color) {
      members.push_back(rank);
    }
  }
  std::ranges::stable_sort(
      members, {}, [&](int rank) { return choices[static_cast<size_t>(rank)].key; });
  return make_child(parent,
                    members,
                    options.color < 0 ? fmt::format("{}.{}.none", name(), child)
                                      : fmt::format("{}.{}.{}", name(), child, options.color));
}

Group make_group(std::unique_ptr<transport::Transport> transport,
                 std::shared_ptr<rendezvous::Store> store,
                 GroupOptions options) {
  ARGOSY_CHECK(transport != nullptr, "comm.make_group", "the transport is a null pointer");
  ARGOSY_CHECK(options.timeout > std::chrono::milliseconds(0),
               "comm.make_group",
               "timeout must be positive, got {} ms",
               options.timeout.count());
  const std::vector<int> world_ranks =
      options.world_ranks.empty() ? iota(transport->size()) : std::move(options.world_ranks);
  const int world_rank = world_ranks.at(static_cast<size_t>(transport->rank()));
  auto family = std::make_shared<Family>(world_rank,
                                         options.name,
                                         std::move(options.make_transport),
                                         std::move(options.make_device_transport),
                                         std::move(options.hosts));
  return adopt(std::move(transport),
               std::move(store),
               std::move(family),
               {.name = std::move(options.name),
                .timeout = options.timeout,
                .checked = options.checked,
                .world_ranks = world_ranks,
                .keep = std::move(options.keep)});
}

}  // namespace argosy::comm
