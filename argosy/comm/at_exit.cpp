#include "argosy/comm/at_exit.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace argosy::comm {
namespace {

/// Groups that live, newest last.
struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<GroupState>> groups;
};

/// Never destroyed: a static may drop its last Group after every destructor of ours has run.
Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

/// Of those that live, newest first: sub-groups before the world they came from.
template <typename Chosen>
void close_those(const Deadline& deadline, Chosen chosen) {
  std::vector<std::weak_ptr<GroupState>> groups;
  {
    const std::lock_guard lock(registry().mutex);
    groups = registry().groups;
  }
  std::ranges::reverse(groups);
  for (const std::weak_ptr<GroupState>& group : groups) {
    const std::shared_ptr<GroupState> state = group.lock();
    if (state != nullptr && chosen(*state)) {
      state->close(deadline.sooner(Deadline::after(state->options().timeout)));
    }
  }
}

/// A group in a static variable, or leaked, still has its threads here; the libraries that they
/// call are about to be taken down. Groups of local variables are long gone.
void close_what_is_left() {
  close_those(Deadline::after(GroupState::kGrace), [](const GroupState& /*any*/) { return true; });
}

}  // namespace

void close_all(const Deadline& deadline) {
  close_those(deadline, [](const GroupState& group) { return !group.runs_here(); });
}

void close_at_exit(const std::shared_ptr<GroupState>& state) {
  static const int registered = std::atexit(close_what_is_left);
  (void)registered;
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().groups, [](const auto& group) { return group.expired(); });
  registry().groups.push_back(state);
}

void close_before_libraries_end() {
  (void)std::atexit(close_what_is_left);
}

}  // namespace argosy::comm
