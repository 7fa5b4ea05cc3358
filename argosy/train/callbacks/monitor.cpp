#include "argosy/train/callbacks/monitor.h"

#include <algorithm>
#include <array>
#include <utility>

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

double Monitor::in(const Logs& logs) const {
  if (const double* const evaluated = logs.find("eval_" + name_)) {
    return *evaluated;
  }
  return logs[name_];
}

bool Monitor::improves(double value) {
  const bool better = larger_ ? value > best_ + min_delta_ : value < best_ - min_delta_;
  if (better) {
    best_ = value;
  }
  return better;
}

}  // namespace argosy::train::detail
