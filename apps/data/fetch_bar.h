#pragma once

#include <cstdint>
#include <optional>

#include "argosy/datasets/fetch.h"
#include "argosy/events/progress_bar.h"

namespace argosy::datatool {

/// Draws the progress of fetch() on standard error, a bar for each transfer. A bar begins where its
/// transfer begins, so that the rate is that of the line. Not thread-safe.
class FetchBar final {
 public:
  explicit FetchBar(events::ProgressStyle style = events::ProgressStyle::kAuto) : style_(style) {}

  void show(const datasets::FetchProgress& progress);

 private:
  events::ProgressStyle style_;
  int64_t kb_ = -1;  // shown so far; -1: between two transfers
  std::optional<events::ProgressBar> bar_{};
};

}  // namespace argosy::datatool
