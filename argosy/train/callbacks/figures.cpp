#include "argosy/train/callbacks/figures.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace argosy::train::detail {
namespace {

constexpr std::string_view kEval = "eval_";

/// Seconds since 1970, to the millisecond.
double now_in_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) /
         1e3;
}

nlohmann::ordered_json to_object(const Logs& logs) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : logs) {
    object[name] = value;
  }
  return object;
}

/// Taken out of the logs, for its own field.
double take_loss(Logs& logs) {
  Logs others;
  double loss = std::nan("");
  for (const auto& [name, value] : logs) {
    if (name == "loss") {
      loss = value;
    } else {
      others.set(name, value);
    }
  }
  logs = std::move(others);
  return loss;
}

}  // namespace

void TrainWindow::begin_epoch() {
  begun_ = now_();
  waited_ = 0;
  samples_ = 0;
  due_ = false;
  metrics_ = {};
}

void TrainWindow::add(const Phase& phase) {
  if (phase.kind == PhaseKind::kDataWait) {
    waited_ += phase.seconds();
  }
}

std::optional<TrainFigures> TrainWindow::add(const Step& step) {
  if (!step.logs.empty()) {
    metrics_ = step.logs;
  }
  const bool last = step.batches.has_value() && step.batch + 1 == *step.batches;
  due_ = due_ || last || (step.batch + 1) % log_freq_ == 0;
  if (!step.updates) {  // the loss and the samples are those of the update before
    return std::nullopt;
  }
  samples_ += step.samples;
  counted_ = counted_in(step.inputs, counted_);
  if (!due_) {
    return std::nullopt;
  }
  const Clock::time_point now = now_();
  const double seconds = std::chrono::duration<double>(now - begun_).count();
  const bool some_time = seconds > 0;
  TrainFigures figures{
      .step = step.step,
      .epoch = step.epoch + 1,
      .loss = step.loss,
      .lr = step.lr,
      .samples_per_second = some_time ? static_cast<double>(samples_) / seconds : 0,
      .counted = counted_,
      .input_wait = some_time ? std::min(waited_ / seconds, 1.0) : 0,
      .metrics = std::exchange(metrics_, {})};
  begun_ = now;
  waited_ = 0;
  samples_ = 0;
  due_ = false;
  return figures;
}

Logs evaluation_in(const Logs& epoch) {
  Logs evaluation;
  for (const auto& [name, value] : epoch) {
    if (name.starts_with(kEval)) {
      evaluation.set(name.substr(kEval.size()), value);
    }
  }
  return evaluation;
}

nlohmann::ordered_json train_record(const TrainFigures& figures) {
  nlohmann::ordered_json record{{"step", figures.step},
                                {"epoch", figures.epoch},
                                {"split", "train"},
                                {"loss", figures.loss},
                                {"lr", figures.lr},
                                {figures.counted.rate_name(), figures.rate()},
                                {"input_wait", figures.input_wait}};
  if (!figures.metrics.empty()) {
    record["metrics"] = to_object(figures.metrics);
  }
  record["time"] = now_in_seconds();
  return record;
}

nlohmann::ordered_json eval_record(int64_t step, int64_t epoch, const Logs& evaluation) {
  Logs metrics = evaluation;
  const double loss = take_loss(metrics);
  nlohmann::ordered_json record{
      {"step", step}, {"epoch", epoch}, {"split", "eval"}, {"loss", loss}};
  if (!metrics.empty()) {
    record["metrics"] = to_object(metrics);
  }
  record["time"] = now_in_seconds();
  return record;
}

}  // namespace argosy::train::detail
