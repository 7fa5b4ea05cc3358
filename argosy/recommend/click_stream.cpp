#include "argosy/recommend/click_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::recommend {

std::string ClickPlace::to_text() const {
  return fmt::format("epoch {} lines {}\n", epoch, lines);
}

std::optional<ClickPlace> ClickPlace::parse(const std::string& text) {
  const std::vector<std::string> words =
      strings::split(text.ends_with('\n') ? text.substr(0, text.size() - 1) : text, ' ');
  if (words.size() != 4 || words[0] != "epoch" || words[2] != "lines") {
    return std::nullopt;
  }
  const std::optional<int64_t> epoch = strings::parse_int(words[1]);
  const std::optional<int64_t> lines = strings::parse_int(words[3]);
  return epoch.value_or(-1) < 0 || lines.value_or(-1) < 0
             ? std::nullopt
             : std::optional(ClickPlace{.epoch = *epoch, .lines = *lines});
}

ClickStream::ClickStream(ClickStreamOptions options) : options_(std::move(options)) {
  ARGOSY_CHECK(
      options_.batch_size > 0 && options_.workers > 0 && options_.worker >= 0 &&
          options_.worker < options_.workers && options_.limit >= 0 && options_.from.epoch >= 0 &&
          options_.from.lines >= 0,
      "recommend.stream",
      "expected batch_size from 1 on, a worker below the number of workers, and limit and place "
      "from 0 on, got batch_size {}, worker {} of {}, limit {}, epoch {}, line {}",
      options_.batch_size,
      options_.worker,
      options_.workers,
      options_.limit,
      options_.from.epoch,
      options_.from.lines);
  epochs_ = options_.from.epoch;
  lines_ = options_.from.lines;
  (void)formats::CriteoReader(options_.path);  // what cannot be opened is told here
}

int64_t ClickStream::lines_left() const {
  return options_.limit == 0 ? std::numeric_limits<int64_t>::max() : options_.limit - log_->lines();
}

/// False: the log has fewer.
bool ClickStream::skip_lines(int64_t lines) {
  return lines <= lines_left() &&
         log_->skip(static_cast<size_t>(lines)) == static_cast<size_t>(lines);
}

/// Goes to where this epoch begins. False: the log ends before, or somebody asked to stop.
bool ClickStream::open(const std::stop_token& stop) {
  constexpr int64_t kAtOnce = 4096;
  if (!log_.has_value()) {
    log_.emplace(options_.path);
  }
  while (log_->lines() < lines_) {
    if (stop.stop_requested() || !skip_lines(std::min(kAtOnce, lines_ - log_->lines()))) {
      return false;
    }
  }
  return true;
}

/// Reads what is this worker's. False: the log has no whole round any more.
bool ClickStream::round(formats::ClickBatch* to, const std::stop_token& stop) {
  const auto mine = static_cast<size_t>(options_.batch_size);
  bool whole = open(stop) && options_.batch_size * options_.workers <= lines_left();
  whole = whole && skip_lines(options_.batch_size * options_.worker);
  whole = whole && (to == nullptr ? log_->skip(mine) : log_->take(mine, mine_)) == mine;
  whole = whole && skip_lines(options_.batch_size * (options_.workers - 1 - options_.worker));
  if (!whole) {
    return false;
  }
  if (to != nullptr) {  // a line that is left out may be torn
    log_->parse(mine_, *to);
  }
  lines_ = log_->lines();
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
  if (lines_ == 0) {  // an epoch that was resumed may have nothing left
    const int64_t wanted = options_.batch_size * options_.workers;
    const bool is_cut = options_.limit > 0 && options_.limit < wanted;
    throw DataError(
        "recommend.stream",
        fmt::format(
            "{} are no batch of {} for each of {} worker{}. Take {}a smaller batch, or "
            "fewer workers",
            is_cut ? fmt::format("limit={} leaves {} lines, which", options_.limit, options_.limit)
                   : fmt::format("{} lines", log_->lines()),
            options_.batch_size,
            options_.workers,
            options_.workers == 1 ? "" : "s",
            is_cut ? "a larger limit, " : ""),
        {.path = options_.path});
  }
  rounds_before_ = rounds_;
  ++epochs_;
  lines_ = 0;
  log_.reset();  // opened again where somebody wants more
}

void ClickStream::skip(int64_t rounds, const std::stop_token& stop) {
  (void)open(stop);
  for (int64_t left = rounds; left > 0 && !stop.stop_requested();) {
    if (round(nullptr, stop)) {
      --left;
      continue;
    }
    if (stop.stop_requested()) {
      return;
    }
    const bool was_whole = epochs_ > options_.from.epoch || options_.from.lines == 0;
    const int64_t of_epoch = rounds_ - rounds_before_;
    end_epoch();
    if (was_whole) {  // all are as long: only the last one is read
      const int64_t more = (left - 1) / of_epoch;
      epochs_ += more;
      rounds_ += more * of_epoch;
      rounds_before_ = rounds_;
      left -= more * of_epoch;
    }
  }
}

}  // namespace argosy::recommend
