#pragma once

#include <optional>
#include <vector>

#include "argosy/launch/report.h"

namespace argosy::launch {

/// Collects how the ranks ended and keeps the first failure, the cause, apart. Knows no processes.
class Verdict final {
 public:
  /// The ends that one turn of the launcher's loop has seen, in order. Once the launcher is
  /// `stopping` the job, for whatever reason, no end is the cause any more.
  /// True: the first failure is among them.
  bool add(const std::vector<RankEnd>& batch, bool stopping);

  [[nodiscard]] const std::optional<RankEnd>& first() const { return first_; }
  /// All ends.
  [[nodiscard]] std::vector<RankEnd> all() const;
  /// All other ends, in order.
  [[nodiscard]] const std::vector<RankEnd>& others() const { return others_; }

 private:
  std::optional<RankEnd> first_{};
  std::vector<RankEnd> others_{};
};

}  // namespace argosy::launch
