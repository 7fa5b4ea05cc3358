#include "argosy/train/callbacks/monitor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "argosy/base/check.h"

namespace argosy::train::detail {
namespace {

bool grows(const std::string& name, MonitorMode mode) {
  if (mode != MonitorMode::kAuto) {
    return mode == MonitorMode::kMax;
  }
  constexpr std::array<std::string_view, 5> kLarger{"acc", "auc", "f1", "precision", "recall"};
  return std::any_of(kLarger.begin(), kLarger.end(), [&](std::string_view part) {
    return name.find(part) != std::string::npos;
  });
}

}  // namespace

Monitor::Monitor(std::string name, MonitorMode mode, double min_delta)
    : name_(std::move(name)),
      larger_(grows(name_, mode)),
      min_delta_(std::abs(min_delta)),
      best_(larger_ ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::infinity()) {}

std::optional<double> Monitor::of_epoch(const Logs& logs, bool evaluates) const {
  if (evaluates && logs.find("eval_loss") == nullptr) {
    return std::nullopt;
  }
  const double* const evaluated = logs.find("eval_" + name_);
  return evaluated != nullptr ? *evaluated : logs[name_];
}

void Monitor::check(const Training& training) const {
  std::vector<std::string> names{"loss"};
  names.insert(names.end(), training.metrics.begin(), training.metrics.end());
  const auto is_among = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::string_view name = name_;
  const bool of_evaluation =
      training.evaluates && name.starts_with("eval_") && is_among(name.substr(5));
  ARGOSY_CHECK(of_evaluation || is_among(name) || (training.scales && name == "loss_scale"),
               "train.monitor",
               "the training will have no figure \"{}\" to follow: there are {}{}",
               name_,
               fmt::join(names, ", "),
               training.evaluates ? ", and the evaluation's: \"eval_\" before the name" : "");
}

bool Monitor::improves(double value) {
  const bool better = larger_ ? value > best_ + min_delta_ : value < best_ - min_delta_;
  if (better) {
    best_ = value;
  }
  return better;
}

}  // namespace argosy::train::detail
