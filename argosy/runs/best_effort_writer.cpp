#include "argosy/runs/best_effort_writer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"

namespace argosy::runs {

void BestEffortWriter::write(const std::function<void()>& write) {
  const std::lock_guard lock(writing_);
  try {
    write();
  } catch (const DataError& error) {
    if (!std::exchange(told_, true)) {
      const std::string_view what = error.what();
      log::error(
          "{}{} The training continues; what cannot be written of the run is missing from now on.",
          what,
          what.ends_with('.') ? "" : ".");
    }
  }
}

void BestEffortWriter::write_paced(const std::function<void()>& write) {
  constexpr auto kBetween = std::chrono::seconds(5);
  constexpr int kShare = 100;  // of the time may go into this
  const Clock::time_point begun = Clock::now();
  this->write(write);
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(writing_);
  next_ = std::max(begun + kBetween, now + (now - begun) * kShare);
}

bool BestEffortWriter::is_due() {
  const std::lock_guard lock(writing_);
  return Clock::now() >= next_;
}

}  // namespace argosy::runs
