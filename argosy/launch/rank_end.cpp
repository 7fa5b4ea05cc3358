#include "argosy/launch/rank_end.h"

#include <signal.h>

#include <algorithm>
#include <functional>

#include "argosy/base/exit_codes.h"

namespace argosy::launch {

bool failed_by_itself(const RankEnd& end) {
  return !end.exit.ok() && !end.asked_to_stop;
}

bool died_by_signal(const RankEnd& end) {
  return end.exit.signal != 0 && end.exit.signal != SIGABRT;
}

bool asks_to_resume(const RankEnd& end) {
  return end.exit.signal == 0 && end.exit.code == kResumeExitCode;
}

bool ask_to_resume(const std::vector<RankEnd>& ends) {
  return std::ranges::any_of(ends, asks_to_resume) &&
         std::ranges::all_of(ends, [](const RankEnd& end) {
           return asks_to_resume(end) || end.exit.shell_code() == 0;
         });
}

size_t root_cause(const std::vector<RankEnd>& failed) {
  constexpr int64_t kMomentUs = 1000;
  const RankEnd& first = failed.front();
  const auto find = [&](const std::function<bool(const RankEnd&)>& wanted) {
    return std::ranges::find_if(failed, [&](const RankEnd& end) {
      const bool same_turn = end.node == first.node && end.turn == first.turn;
      return (same_turn || end.at_us <= first.at_us + kMomentUs) && wanted(end);
    });
  };
  auto cause = find([](const RankEnd& end) { return !end.hung.empty(); });
  if (cause == failed.end()) {
    cause = find(died_by_signal);
  }
  return cause == failed.end() ? 0 : static_cast<size_t>(cause - failed.begin());
}

}  // namespace argosy::launch
