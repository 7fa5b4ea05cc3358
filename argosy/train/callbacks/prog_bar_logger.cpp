#include "argosy/train/callbacks/prog_bar_logger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "argosy/base/terminal.h"
#include "argosy/base/text.h"
#include "argosy/events/progress_bar.h"
#include "argosy/train/counted.h"
#include "argosy/train/model.h"

namespace argosy::train {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kBarWidth = 30;
constexpr int kLeastBarWidth = 8;

/// Nothing is written under ARGOSY_PROGRESS=off.
int level(const ProgBarLoggerOptions& options, int verbose) {
  return events::automatic_style(options.out) == events::ProgressStyle::kOff
             ? 0
             : options.verbose.value_or(verbose);
}

/// "13ms/step", as Paddle writes it.
std::string per_step(double seconds) {
  if (seconds >= 1) {
    return fmt::format("{:.0f}s/step", seconds);
  }
  return seconds >= 1e-3 ? fmt::format("{:.0f}ms/step", seconds * 1e3)
                         : fmt::format("{:.0f}us/step", seconds * 1e6);
}

std::string left(double seconds) {
  return seconds < 60 ? fmt::format("{:.0f}s", seconds) : events::clock_time(seconds);
}

std::string bar_of(int64_t done, int64_t total, int width) {
  const auto filled = static_cast<int>(done * width / std::max<int64_t>(total, 1));
  if (done >= total) {
    return std::string(static_cast<std::size_t>(width), '=');
  }
  std::string bar(static_cast<std::size_t>(filled), '=');
  if (filled > 0) {
    bar.back() = '>';
  }
  bar.append(static_cast<std::size_t>(width - filled), '.');
  return bar;
}

}  // namespace

struct ProgBarLogger::Pass {
  Clock::time_point begun{};
  Clock::time_point line{};   // when the last line came
  Clock::time_point drawn{};  // when the bar was last drawn
  int64_t batches = 0;        // since the begin
  int64_t batch_of_line = 0;  // of these until the last line
  int64_t samples_since_line = 0;
  int64_t tokens_since_line = 0;  // 0: the samples are no tokens
  double waited_since_line = 0;   // for the loader
  double waited = 0;              // the same since the begin, where that is what is told
  std::string metrics{};          // the latest, for a bar that is drawn between two of them
  bool open = false;              // a line that is redrawn stands on the terminal
};

ProgBarLogger::ProgBarLogger(ProgBarLoggerOptions options) : options_(std::move(options)) {}

void ProgBarLogger::begin(std::optional<int64_t> batches, int verbose, int64_t log_freq) {
  batches_ = batches;
  verbose_ = level(options_, verbose);
  log_freq_ = log_freq;
  const Clock::time_point now = options_.now();
  pass_ = std::make_shared<Pass>(Pass{.begun = now, .line = now});
}

void ProgBarLogger::print(const std::string& line) {
  fmt::print(options_.out, "{}\n", line);
  std::fflush(options_.out);
}

void ProgBarLogger::end_line() {
  if (pass_ != nullptr && pass_->open) {
    fmt::print(options_.out, "\n");
    std::fflush(options_.out);
    pass_->open = false;
  }
}

void ProgBarLogger::show(int64_t batch, const std::string& figures, int64_t samples, bool last) {
  constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
  Pass& pass = *pass_;
  const int64_t done = batch + 1;
  ++pass.batches;
  const Clock::time_point now = options_.now();
  pass.samples_since_line += samples;
  const bool bar =
      verbose_ == 1 && events::automatic_style(options_.out) == events::ProgressStyle::kBar;
  if (bar ? (!last && now - pass.drawn < kBetweenDrawings) : (!last && done % log_freq_ != 0)) {
    return;
  }
  const double each = Seconds(now - pass.begun).count() / static_cast<double>(pass.batches);
  std::string head = fmt::format("step {}", done);
  if (batches_.has_value()) {
    const std::string total = std::to_string(*batches_);
    head = fmt::format("step {:>{}}/{}", done, total.size(), total);
  }
  std::string line = (figures.empty() ? "" : " - ") + figures;
  if (bar && batches_.has_value() && !last) {
    line += fmt::format(" - ETA: {}", left(each * static_cast<double>(*batches_ - done)));
  }
  line += " - " + per_step(each);
  const double seconds = Seconds(now - pass.line).count();
  if (pass.tokens_since_line > 0 && seconds > 0) {
    const double rate = static_cast<double>(pass.tokens_since_line) / seconds;
    line += fmt::format(" - {} tokens/s", text::count(std::llround(rate)));
  }
  if (verbose_ == 3) {
    const auto batches = static_cast<double>(pass.batches - pass.batch_of_line);
    line += fmt::format(
        " - avg_reader_cost: {:.5f} sec - avg_batch_cost: {:.5f} sec - ips: {:.5f} samples/sec",
        pass.waited_since_line / batches,
        seconds / batches,
        static_cast<double>(pass.samples_since_line) / seconds);
  }
  pass.line = pass.drawn = now;
  pass.batch_of_line = pass.batches;
  pass.samples_since_line = 0;
  pass.tokens_since_line = 0;
  pass.waited_since_line = 0;
  if (bar) {
    const int columns =
        options_.columns > 0 ? options_.columns : terminal::columns(fileno(options_.out));
    const int room = columns - 1 - static_cast<int>(head.size() + line.size()) - 3;  // " [" and "]"
    if (batches_.has_value() && room >= kLeastBarWidth) {
      head += fmt::format(" [{}]", bar_of(done, *batches_, std::min(room, kBarWidth)));
    }
    line.insert(0, head);
    line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(columns - 1, 1))), ' ');
    fmt::print(options_.out, "\r\033[K{}", line);
    std::fflush(options_.out);
    pass.open = true;
    if (last) {
      end_line();
    }
  } else {
    print(head + line);
  }
}

void ProgBarLogger::on_train_begin(const Training& training) {
  verbose_ = level(options_, training.verbose);
  begin(training.batches, training.verbose, training.log_freq);
  if (!training.done && training.model.is_first_worker() && verbose_ > 0) {
    print(
        "The loss printed is that of the last update, a metric is the average of the epoch so far; "
        "both over all ranks.");
  }
}

void ProgBarLogger::on_train_end(const Training& training) {
  if (training.model.is_first_worker()) {
    end_line();
  }
}

void ProgBarLogger::on_epoch_begin(const Epoch& epoch) {
  begin(batches_, verbose_, log_freq_);
  if (epoch.model.is_first_worker() && verbose_ > 0) {
    print(fmt::format("Epoch {}/{}", epoch.epoch + 1, epoch.epochs));
  }
}

void ProgBarLogger::on_epoch_end(const Epoch& epoch) {
  if (epoch.model.is_first_worker()) {
    end_line();
  }
}

void ProgBarLogger::on_train_batch_end(const Step& step) {
  if (verbose_ == 0 || !step.model.is_first_worker()) {
    return;
  }
  batches_ = step.batches;
  const bool last = step.batches.has_value() && step.batch + 1 == *step.batches;
  std::string figures = "loss: " + shown(step.loss);
  if (!step.logs.empty()) {
    pass_->metrics = " - " + step.logs.to_string();
  }
  figures += pass_->metrics;
  const Counted counted = counted_in(step.inputs, {});
  if (step.updates && std::string_view(counted.things) == "tokens") {
    pass_->tokens_since_line += step.samples * counted.in_a_sample;
  }
  show(step.batch, figures, step.updates ? step.samples : 0, last);
}

void ProgBarLogger::on_phase(const Phase& phase) {
  if (phase.kind == PhaseKind::kDataWait && pass_ != nullptr) {
    pass_->waited_since_line += phase.seconds();
  }
}

void ProgBarLogger::on_eval_begin(const Evaluation& evaluation) {
  begin(evaluation.batches, evaluation.verbose, evaluation.log_freq);
  if (evaluation.model.is_first_worker() && verbose_ > 0) {
    print("Eval begin...");
  }
}

void ProgBarLogger::on_eval_batch_end(const EvalStep& step) {
  if (verbose_ > 0 && step.model.is_first_worker()) {
    const bool last = step.batches.has_value() && step.batch + 1 == *step.batches;
    pass_->waited_since_line += step.waited - std::exchange(pass_->waited, step.waited);
    show(step.batch, "", step.samples, last);
  }
}

void ProgBarLogger::on_eval_end(const Evaluation& evaluation) {
  if (verbose_ > 0 && evaluation.model.is_first_worker()) {
    end_line();
    print(evaluation.logs.to_string());
    print(fmt::format("Eval samples: {}", evaluation.samples));
  }
}

void ProgBarLogger::on_predict_begin(const Evaluation& evaluation) {
  begin(evaluation.batches, evaluation.verbose, evaluation.log_freq);
  if (evaluation.model.is_first_worker() && verbose_ > 0) {
    print("Predict begin...");
  }
}

void ProgBarLogger::on_predict_batch_end(const EvalStep& step) {
  on_eval_batch_end(step);
}

void ProgBarLogger::on_predict_end(const Evaluation& evaluation) {
  if (verbose_ > 0 && evaluation.model.is_first_worker()) {
    end_line();
    print(fmt::format("Predict samples: {}", evaluation.samples));
  }
}

}  // namespace argosy::train
