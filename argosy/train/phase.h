#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace argosy::train {

/// What fit()'s time goes into.
enum class PhaseKind {
  kDataWait,    ///< for the loader's next batch; with 0 workers: its making
  kForward,     ///< the network and the loss
  kBackward,    ///< with the waiting in it: kReduceWait
  kReduce,      ///< gradients are on their way to the other ranks, beside backward
  kReduceWait,  ///< the part of it at the end of backward in which nothing else is left to do
  kAgree,       ///< the ranks put losses and metrics together: also waiting for the slowest one
  kUpdate,      ///< the optimizer
  kEvaluation,
  kCheckpoint,  ///< what the loop stands still for
};

[[nodiscard]] std::string_view to_string(PhaseKind kind);  ///< "data wait", "forward", …

/// A piece of this rank's time in fit().
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
