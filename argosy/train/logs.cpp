#include "argosy/train/logs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "argosy/base/check.h"

namespace argosy::train {
namespace {

constexpr double kSmallest = 1e-3;

}  // namespace

void Logs::set(std::string_view name, double value) {
  const auto found = std::find_if(
      entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == name; });
  if (found == entries_.end()) {
    entries_.emplace_back(name, value);
  } else {
    found->second = value;
  }
}

void Logs::add(const Logs& other, std::string_view prefix) {
  for (const auto& [name, value] : other) {
    set(std::string(prefix) + name, value);
  }
}

const double* Logs::find(std::string_view name) const {
  const auto found = std::find_if(
      entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == name; });
  return found == entries_.end() ? nullptr : &found->second;
}

double Logs::operator[](std::string_view name) const {
  const double* const value = find(name);
  if (value == nullptr) {
    std::vector<std::string> names;
    std::transform(entries_.begin(), entries_.end(), std::back_inserter(names), [](const Entry& e) {
      return e.first;
    });
    throw UsageError("train.Logs",
                     fmt::format("no figure \"{}\": there are {}", name, fmt::join(names, ", ")));
  }
  return *value;
}

std::string Logs::to_string() const {
  std::string text;
  for (const auto& [name, value] : entries_) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : " - ", name, shown(value));
  }
  return text;
}

std::string shown(double value) {
  return std::abs(value) > kSmallest || value == 0 || !std::isfinite(value)
             ? fmt::format("{:.4f}", value)
             : fmt::format("{:.4e}", value);
}

}  // namespace argosy::train
