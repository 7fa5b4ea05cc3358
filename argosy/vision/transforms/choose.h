#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/data/random.h"
#include "argosy/vision/transforms/picture.h"
#include "argosy/vision/transforms/step.h"

// Transforms made of transforms. Inside each, steps have streams of their own as in Compose.
namespace argosy::vision {

/// All steps with probability p, else none.
///
///     RandomApply({GaussianBlur(23), Grayscale(3)}, 0.2)
///
/// Source: torchvision's RandomApply. Errors: UsageError for p outside [0, 1].
class RandomApply final {
 public:
  static constexpr std::string_view kName = "RandomApply";
  explicit RandomApply(std::vector<Step> steps, double p = 0.5);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  detail::Steps steps_;
  double p_;
};

/// One of the steps, each as likely as its weight says (default: all alike).
///
///     RandomChoice({RandomRotation(30), ColorJitter({.hue = 0.1})}, {3, 1})
///
/// Source: torchvision's RandomChoice. Errors: UsageError without steps, and for weights that are
/// negative, all 0 or not as many as the steps.
class RandomChoice final {
 public:
  static constexpr std::string_view kName = "RandomChoice";
  explicit RandomChoice(std::vector<Step> steps, std::vector<double> weights = {});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  detail::Steps steps_;
  std::vector<double> weights_;
};

/// All steps, in an order drawn anew for each sample. Source: torchvision's RandomOrder.
class RandomOrder final {
 public:
  static constexpr std::string_view kName = "RandomOrder";
  explicit RandomOrder(std::vector<Step> steps) : steps_(std::move(steps)) {}
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  detail::Steps steps_;
};

/// A user's function with a name, for messages and prints; what it may take is said at Step.
///
///     Lambda("AddNoise", [](at::Tensor chw, data::Random& random) { … })
///
/// Its draws are keyed by the name: functions without one share the name "Lambda" and are told
/// apart by which of them it is.
template <typename F>
class Lambda final {
 public:
  explicit Lambda(F function) : Lambda("Lambda", std::move(function)) {}
  Lambda(std::string name, F function) : name_(std::move(name)), function_(std::move(function)) {}

  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const {
    return detail::call_transform(function_, name_, std::move(picture), random);
  }
  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] bool is_random() const { return detail::kDraws<F>; }
  [[nodiscard]] std::string to_string() const { return name_ + "()"; }

 private:
  std::string name_;
  F function_;
};

}  // namespace argosy::vision
