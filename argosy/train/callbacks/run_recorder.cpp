#include "argosy/train/callbacks/run_recorder.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <utility>

#include <ATen/Parallel.h>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/engine/version.h"
#include "argosy/runs/run_folder.h"
#include "argosy/train/callbacks/description.h"
#include "argosy/train/model.h"

#include <nlohmann/json.hpp>

namespace argosy::train::detail {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

int64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

/// The folder's own name: of "runs/cifar/" it is "cifar".
std::string name_of(const std::string& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

/// Whether the user wants the timeline otherwise.
bool has_timeline(const Training& training) {
  return training.options != nullptr &&
         std::ranges::any_of(training.options->callbacks, [](const AnyCallback& callback) {
           return dynamic_cast<const TimelineLogger*>(&*callback) != nullptr;
         });
}

}  // namespace

void RankFigures::add(const Phase& phase) {
  if (phase.kind == PhaseKind::kDataWait) {
    input_ += phase.seconds();
  } else if (phase.kind == PhaseKind::kReduceWait || phase.kind == PhaseKind::kAgree) {
    communication_ += phase.seconds();
  }
}

void RankFigures::add(const Step& step) {
  const Clock::time_point now = Clock::now();
  seconds_ += std::chrono::duration<double>(now - std::exchange(mark_, now)).count();
  if (!step.inputs.empty() && step.inputs[0].dim() > 0) {
    counted_ = counted_in(step.inputs, counted_);
    samples_ += step.inputs[0].size(0);
  }
}

nlohmann::ordered_json RankFigures::about(const Model& model) const {
  const engine::NamedTensors parameters = model.parameters();
  nlohmann::ordered_json about{
      {"rank", model.group().rank()},
      {"host", host_name()},
      {"device", parameters.empty() ? "cpu" : parameters.front().second.device().str()},
      {"threads", at::get_num_threads()}};
  if (seconds_ > 0) {
    about[counted_.rate_name()] = static_cast<double>(samples_ * counted_.in_a_sample) / seconds_;
    about["input_wait"] = std::min(input_ / seconds_, 1.0);
    about["comm_wait"] = std::min(communication_ / seconds_, 1.0);
  }
  about["peak_memory_bytes"] = peak_memory_bytes();
  return about;
}

RunRecorder::RunRecorder(std::string folder)
    : folder_(std::move(folder)), log_({.path = folder_ + "/metrics.jsonl"}), page_(folder_) {}

bool RunRecorder::is_recorded_as_ended() const {
  try {
    const runs::RunConfig config = runs::read_run_config(folder_);
    return config.state == runs::RunState::kFinished ||
           (config.state == runs::RunState::kStopped && !config.exit_code.has_value());
  } catch (const DataError&) {  // none, or torn
    return false;
  }
}

void RunRecorder::on_train_begin(const Training& training) {
  ended_before_ = training.done && is_recorded_as_ended();
  if (ended_before_) {
    return;
  }
  samples_.set_class_names(training.class_names);
  if (training.model.is_first_worker()) {
    begin_run(training);
  }
  log_.on_train_begin(training);
  if (!has_timeline(training)) {
    timeline_.emplace(TimelineLoggerOptions{.folder = folder_});
    timeline_->on_train_begin(training);
  }
  write_all(training.model);
  begun_ = true;
}

void RunRecorder::begin_run(const Training& training) {
  runs::RunConfig config =
      runs::RunConfig::capture({.name = name_of(folder_), .ranks = training.model.group().size()});
  config.options = description(training);
  config.versions["libtorch"] = engine::torch_version();
  if (training.options != nullptr) {
    config.seed = training.options->data.seed;
  }
  if (training.step > 0) {  // it goes on
    try {
      config.resume(runs::read_run_config(folder_), training.step);
    } catch (const DataError&) {  // that is new here, or was torn: it begins now
    }
  }
  runs::write_run_config(folder_, config);
  runs::move_away_ranks(folder_, training.model.group().size());
  runs::move_away_servers(folder_);
  config_ = std::move(config);
}

void RunRecorder::on_train_end(const Training& training) {
  if (ended_before_) {
    return;
  }
  if (timeline_.has_value()) {
    timeline_->on_train_end(training);
  }
  const History& history = *training.history;
  const bool leaves = history.ended == Ended::kPreempted &&
                      training.options->checkpoint.on_signal == OnSignal::kSaveAndExit;
  end_run(training.model,
          {.state = history.ended == Ended::kFinished ? runs::RunState::kFinished
                                                      : runs::RunState::kStopped,
           .why = history.reason,
           .exit_code = leaves ? std::optional(history.interrupted ? 128 + SIGINT : kResumeExitCode)
                        : history.ended == Ended::kFinished ? std::optional(0)
                                                            : std::nullopt});
}

void RunRecorder::on_exception(const Training& training, const std::string& what) {
  if (!begun_) {
    return;
  }
  if (timeline_.has_value()) {
    timeline_->on_exception(training, what);
  }
  error_ = what;
  error_at_ = std::chrono::system_clock::now();
  end_run(training.model, {.state = runs::RunState::kFailed, .why = what});
}

void RunRecorder::end_run(const Model& model, const End& end) {
  if (config_.has_value()) {
    config_->end(end.state, error_.empty() ? end.why : first_cause(), end.exit_code);
    writer_.write([&] { runs::write_run_config(folder_, *config_); });
  }
  writer_.write_paced([&] { write_all(model); });
}

std::string RunRecorder::first_cause() const {
  return runs::first_failure(folder_, text::utc(error_at_)).value_or(error_);
}

void RunRecorder::on_epoch_begin(const Epoch& epoch) {
  epoch_ = epoch.epoch + 1;
  rank_.begin_epoch();
  log_.on_epoch_begin(epoch);
}

void RunRecorder::on_epoch_end(const Epoch& epoch) {
  writer_.write([&] { log_.on_epoch_end(epoch); });
}

void RunRecorder::on_train_batch_end(const Step& step) {
  rank_.add(step);
  writer_.write([&] { log_.on_train_batch_end(step); });
  write_now_and_then(step.model);
}

void RunRecorder::on_phase(const Phase& phase) {
  rank_.add(phase);
  log_.on_phase(phase);
  if (timeline_.has_value()) {
    timeline_->on_phase(phase);
  }
}

void RunRecorder::on_eval_begin(const Evaluation& /*evaluation*/) {
  samples_.clear();
}

void RunRecorder::on_eval_batch_end(const EvalStep& step) {
  if (config_.has_value()) {
    samples_.add(step);
  }
  write_now_and_then(step.model);
}

void RunRecorder::on_eval_end(const Evaluation& /*evaluation*/) {
  if (samples_.empty()) {
    return;
  }
  writer_.write(
      [&] { runs::write_samples(folder_, fmt::format("epoch {}", epoch_), samples_.pictures()); });
}

void RunRecorder::write_now_and_then(const Model& model) {
  if (writer_.is_due()) {
    writer_.write_paced([&] { write_all(model); });
  }
}

void RunRecorder::write_all(const Model& model) {
  nlohmann::ordered_json about = rank_.about(model);
  if (!error_.empty()) {
    about["failed"] = text::utc(error_at_);
    about["error"] = error_;
  }
  runs::write_rank_file(folder_, model.group().rank(), about);
  if (config_.has_value()) {
    page_.write();
  }
}

}  // namespace argosy::train::detail
