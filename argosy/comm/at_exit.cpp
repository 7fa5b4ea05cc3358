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

/// A group in a static variable, or leaked, still has its threads here; the libraries that they
/// call are about to be taken down. Groups of local variables are long gone.
void close_what_is_left() {
  close_all(Deadline::after(GroupState::kGrace));
}

}  // namespace

void close_all(const Deadline& deadline) {
  std::vector<std::weak_ptr<GroupState>> groups;
  {
    const std::lock_guard lock(registry().mutex);
    groups.swap(registry().groups);
  }
  std::ranges::reverse(groups);  // sub-groups before the world they came from
  for (const std::weak_ptr<GroupState>& group : groups) {
    if (const std::shared_ptr<GroupState> state = group.lock()) {
      state->close(deadline.sooner(Deadline::after(state->options().timeout)));
    }
  }
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
