#include "argosy/recommend/click_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"

namespace argosy::recommend {

ClickStream::ClickStream(ClickStreamOptions options) : options_(std::move(options)) {
  ARGOSY_CHECK(
      options_.batch_size > 0 && options_.workers > 0 && options_.worker >= 0 &&
          options_.worker < options_.workers && options_.limit >= 0,
      "recommend.stream",
      "expected batch_size from 1 on, a worker below the number of workers, and limit from "
      "0 on, got batch_size {}, worker {} of {}, limit {}",
      options_.batch_size,
      options_.worker,
      options_.workers,
      options_.limit);
  log_.emplace(options_.path);
}

int64_t ClickStream::lines_left() const {
  return options_.limit == 0 ? std::numeric_limits<int64_t>::max() : options_.limit - log_->lines();
}

/// False: the log has fewer.
bool ClickStream::skip_lines(int64_t lines) {
  return lines <= lines_left() &&
         log_->skip(static_cast<size_t>(lines)) == static_cast<size_t>(lines);
}

/// Reads what is this worker's. False: the log has no whole round any more.
bool ClickStream::round(formats::ClickBatch* to) {
  if (!log_.has_value()) {
    log_.emplace(options_.path);
  }
  const auto mine = static_cast<size_t>(options_.batch_size);
  const size_t before = to == nullptr ? 0 : to->size();
  bool whole = options_.batch_size * options_.workers <= lines_left();
  whole = whole && skip_lines(options_.batch_size * options_.worker);
  whole = whole && (to == nullptr ? log_->skip(mine) : log_->read(mine, *to)) == mine;
  whole = whole && skip_lines(options_.batch_size * (options_.workers - 1 - options_.worker));
  if (!whole) {
    if (to != nullptr) {
      to->resize(before);
    }
    return false;
  }
  ++rounds_;
  return true;
}

bool ClickStream::next(formats::ClickBatch& to) {
  if (round(&to)) {
    return true;
  }
  end_epoch();
  return false;
}

void ClickStream::end_epoch() {
  if (rounds_ == rounds_before_) {
    throw DataError("recommend.stream",
                    fmt::format("{} lines are no batch of {} for each of {} worker{}. Take a "
                                "smaller batch, or fewer workers",
                                log_->lines(),
                                options_.batch_size,
                                options_.workers,
                                options_.workers == 1 ? "" : "s"),
                    {.path = options_.path});
  }
  rounds_before_ = rounds_;
  ++epochs_;
  log_.reset();  // opened again where somebody wants more
}

void ClickStream::skip(int64_t rounds) {
  for (int64_t left = rounds; left > 0;) {
    if (round(nullptr)) {
      --left;
    } else {
      end_epoch();
    }
  }
}

}  // namespace argosy::recommend
