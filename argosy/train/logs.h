#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace argosy::train {

/// Figures with their names, in the order in which they were set: the result of an epoch or an
/// evaluation.
///
///     train::Logs result = model.evaluate(test);
///     result["acc_top1"]                              // an unknown name: UsageError with the names
///     fmt::print("{}\n", result.to_string());         // loss: 1.2340 - acc_top1: 0.7100
class Logs final {
 public:
  using Entry = std::pair<std::string, double>;

  Logs() = default;
  Logs(std::initializer_list<Entry> entries) : entries_(entries) {}

  /// Adds a figure, or replaces the one with this name in its place.
  void set(std::string_view name, double value);
  /// Adds the figures of `other`, with `prefix` before their names.
  void add(const Logs& other, std::string_view prefix = "");

  /// Errors: UsageError naming the existing figures.
  [[nodiscard]] double operator[](std::string_view name) const;
  /// Returns nullptr if there is no such figure.
  [[nodiscard]] const double* find(std::string_view name) const;

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }

  /// "loss: 0.4213 - acc: 0.8520", as Paddle prints figures.
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<Entry> entries_;
};

/// Returns `value` with four decimals, or "4.2000e-05" if it is small. Source: Paddle 3.3,
/// hapi/progressbar.py.
[[nodiscard]] std::string shown(double value);

}  // namespace argosy::train
