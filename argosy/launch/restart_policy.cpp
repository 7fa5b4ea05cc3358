#include "argosy/launch/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/text.h"

namespace argosy::launch {

using namespace std::chrono_literals;

bool RestartPolicy::usage_error(const RankEnd& end) const {
  const int code = end.exit.signal == 0 ? end.exit.code : 0;
  return usage_errors_ == UsageErrors::kEndTheJob && (code == 2 || code == 126 || code == 127);
}

std::optional<std::chrono::milliseconds> RestartPolicy::next(const RankEnd& first) {
  if (count_ >= most_ || usage_error(first) || asks_to_resume(first)) {
    return std::nullopt;
  }
  ++count_;
  quick_ = first.ran < kQuick ? quick_ + 1 : 0;
  if (quick_ <= 1) {
    return 0ms;
  }
  return std::min<std::chrono::milliseconds>(1000ms * (1LL << std::min(quick_ - 2, 10)), kLongest);
}

std::string RestartPolicy::describe(const RankEnd& first,
                                    std::optional<std::chrono::milliseconds> wait) const {
  if (wait) {
    return fmt::format(
        "restart {} of {} {}", count_, most_, *wait == 0ms ? "now" : "in " + text::duration(*wait));
  }
  const std::string code = fmt::format("exit code {}", first.exit.shell_code());
  if (most_ > 0 && usage_error(first)) {
    return code + ", not restarted: it would come again (--restart_usage_errors tries)";
  }
  return count_ == 0 ? code
                     : fmt::format("{} after {} restart{}", code, count_, count_ == 1 ? "" : "s");
}

}  // namespace argosy::launch
