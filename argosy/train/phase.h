#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace argosy::train {

/// The phases of fit()'s time.
enum class PhaseKind {
  kDataWait,    ///< waiting for the loader's next batch; with num_workers = 0 also making it
  kForward,     ///< the network and the loss
  kBackward,    ///< including kReduceWait
  kReduce,      ///< gradients travel to the other ranks, beside backward
  kReduceWait,  ///< the part of it at the end of backward that nothing hides
  kAgree,       ///< the ranks sum losses and metrics, and wait for the slowest rank
  kUpdate,      ///< the optimizer
  kEvaluation,
  kCheckpoint,  ///< the time in which a save stops the loop
};

[[nodiscard]] std::string_view to_string(PhaseKind kind);  ///< "data wait", "forward", …

/// A phase of this rank's time in fit().
struct Phase {
  using Moment = std::chrono::steady_clock::time_point;

  PhaseKind kind = PhaseKind::kForward;
  Moment begin{};
  Moment end{};
  int64_t step = 0;  ///< updates before it

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(end - begin).count();
  }
};

}  // namespace argosy::train
