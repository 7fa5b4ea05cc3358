#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/data/random.h"
#include "argosy/vision/transforms/any_transform.h"
#include "argosy/vision/transforms/picture.h"

// Transforms made of transforms. Their steps have separate streams, as in Compose.
namespace argosy::vision {

/// Applies all steps with probability p, else none.
///
///     RandomApply({GaussianBlur(23), Grayscale(3)}, 0.2)
///
/// Source: torchvision's RandomApply. Errors: UsageError for p outside [0, 1].
class RandomApply final {
 public:
  static constexpr std::string_view kName = "RandomApply";
  explicit RandomApply(std::vector<AnyTransform> steps, double p = 0.5);
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  detail::Steps steps_;
  double p_;
};

/// Applies one of the steps, drawn by their weights (default: equal).
///
///     RandomChoice({RandomRotation(30), ColorJitter({.hue = 0.1})}, {3, 1})
///
/// Source: torchvision's RandomChoice. Errors: UsageError if there are no steps, and for weights
/// that are negative, all 0, or not one per step.
class RandomChoice final {
 public:
  static constexpr std::string_view kName = "RandomChoice";
  explicit RandomChoice(std::vector<AnyTransform> steps, std::vector<double> weights = {});
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  detail::Steps steps_;
  std::vector<double> weights_;
};

/// Applies all steps, in a new random order for each sample. Source: torchvision's RandomOrder.
class RandomOrder final {
 public:
  static constexpr std::string_view kName = "RandomOrder";
  explicit RandomOrder(std::vector<AnyTransform> steps) : steps_(std::move(steps)) {}
  [[nodiscard]] Picture operator()(Picture picture, data::Random& random) const;
  [[nodiscard]] std::string to_string() const;

 private:
  detail::Steps steps_;
};

/// A user's function with a name, for messages and prints. AnyTransform lists the inputs that it
/// may take.
///
///     Lambda("AddNoise", [](at::Tensor chw, data::Random& random) { … })
///
/// Its draws are keyed by the name. Functions without a name share the name "Lambda" and are told
/// apart by their order.
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
