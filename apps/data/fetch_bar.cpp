#include "apps/data/fetch_bar.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace argosy::datatool {

void FetchBar::show(const datasets::FetchProgress& progress) {
  constexpr int64_t kUnit = 1000;
  const int64_t kb = progress.bytes / kUnit;
  if (kb_ < 0) {
    kb_ = kb;
  }
  if (kb < kb_) {  // begun anew
    bar_.reset();
    kb_ = 0;
  }
  if (!progress.ended && kb > kb_) {
    if (!bar_) {
      bar_.emplace(
          events::ProgressBarOptions{.label = std::string(progress.file),
                                     .total = std::max<int64_t>(progress.total / kUnit - kb_, 1),
                                     .unit = "kB",
                                     .style = style_,
                                     .out = stderr});
    }
    bar_->advance(kb - kb_);
    kb_ = kb;
  }
  if (progress.ended) {
    if (bar_ && progress.bytes == progress.total) {
      bar_->finish();
    }
    bar_.reset();  // ends a half-drawn line before a message
    kb_ = -1;
  }
}

}  // namespace argosy::datatool
