#pragma once

#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "argosy/parallel/ddp/stats.h"
#include "argosy/train/callback.h"

namespace argosy::train::detail {

/// Tells the callbacks what the loop's time goes into.
///
///     phases.time(PhaseKind::kUpdate, [&] { optimizer.step(); });
///
/// Lifetime: refers to both. Cost: two readings of the clock and a call of each callback, some 0.1
/// µs.
class Phases final {
 public:
  Phases(const std::vector<AnyCallback>& callbacks, const int64_t& steps)
      : callbacks_(callbacks), steps_(steps) {}

  /// Runs `work` and returns its result. If it throws, it counts as no phase.
  template <typename Work>
  decltype(auto) time(PhaseKind kind, const Work& work) {
    Phase phase{.kind = kind, .begin = Clock::now(), .step = steps_};
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      phase.end = Clock::now();
      tell(phase);
    } else {
      auto result = work();
      phase.end = Clock::now();
      tell(phase);
      return result;
    }
  }

  /// The communication of a backward pass, once.
  void tell_communication(const parallel::CommunicationTimes& times) {
    if (times.pass != told_pass_) {
      told_pass_ = times.pass;
      tell({PhaseKind::kReduce, times.begun, times.ended, steps_});
      tell({PhaseKind::kReduceWait, times.waited, times.ended, steps_});
    }
  }

  void tell(const Phase& phase) {
    for (const AnyCallback& callback : callbacks_) {
      callback->on_phase(phase);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::vector<AnyCallback>& callbacks_;
  const int64_t& steps_;
  int64_t told_pass_ = 0;
};

}  // namespace argosy::train::detail
