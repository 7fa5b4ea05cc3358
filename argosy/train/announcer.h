#pragma once

#include <string>
#include <vector>

#include "argosy/train/callback.h"
#include "argosy/train/checkpoint_folder.h"
#include "argosy/train/options.h"
#include "argosy/train/phases.h"

namespace argosy::train::detail {

/// The callbacks of one fit(): the caller's, and those that fit() adds for its options. It calls
/// them in one order on all ranks.
class Announcer final {
 public:
  /// `steps` is the number of updates, which phases report.
  Announcer(const FitOptions& options, const int64_t& steps);

  template <typename About>
  void all(void (Callback::*hook)(const About&), const About& about) const {
    for (const AnyCallback& callback : callbacks_) {
      ((*callback).*hook)(about);
    }
  }
  /// Calls on_exception() of each callback. An exception of a callback goes to the log.
  void exception(const Training& training, const std::string& what) const;

  [[nodiscard]] const std::vector<AnyCallback>& callbacks() const { return callbacks_; }
  /// The callbacks that evaluations have too: all but progress and checkpoints.
  [[nodiscard]] const std::vector<AnyCallback>& watching() const { return watching_; }
  /// True if a callback saves checkpoints.
  [[nodiscard]] bool keeps_checkpoints() const { return keeps_ != Keeps::kNone; }
  [[nodiscard]] Phases& phases() { return phases_; }

 private:
  Keeps keeps_;
  std::vector<AnyCallback> callbacks_;
  std::vector<AnyCallback> watching_;
  Phases phases_;
};

}  // namespace argosy::train::detail
