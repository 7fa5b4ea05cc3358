#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>

namespace argosy::loss {

/// What Loss takes: anything to call with an output and a target.
template <typename F>
concept LossFunction = requires(const F& loss, const at::Tensor& tensor) {
  { loss(tensor, tensor) } -> std::convertible_to<at::Tensor>;
};

/// Any loss of two tensors behind one type: one of this room's, or a function. The trainer holds
/// one.
///
///     Loss loss = CrossEntropy({.label_smoothing = 0.1});
///     Loss own([](const at::Tensor& output, const at::Tensor& target) { return …; }, "dice");
///
/// Copies share one loss, which calls do not change. Empty until it is given one.
class Loss final {
 public:
  using Count = std::function<double(const at::Tensor& output, const at::Tensor& target)>;

  Loss() = default;
  /// A loss with name() and count(), or a function called "loss" whose mean is over the samples.
  template <LossFunction F>
  requires(!std::same_as<std::remove_cvref_t<F>, Loss>)
      Loss(F loss)  // NOLINT(google-explicit-constructor)
  {
    auto held = std::make_shared<const F>(std::move(loss));
    if constexpr (requires(const F& f) { std::string(f.name()); }) {
      name_ = held->name();
    }
    if constexpr (requires(const F& f) { std::string(f.parameters()); }) {
      parameters_ = held->parameters();
    }
    if constexpr (requires(const F& f, const at::Tensor& t) { double(f.count(t, t)); }) {
      count_ = [held](const at::Tensor& output, const at::Tensor& target) {
        return held->count(output, target);
      };
    }
    if constexpr (requires(const F& f, const at::Tensor& t) { at::Tensor(f.counted(t, t)); }) {
      counted_ = [held](const at::Tensor& output, const at::Tensor& target) {
        return held->counted(output, target);
      };
    }
    function_ = [held](const at::Tensor& output, const at::Tensor& target) {
      return at::Tensor((*held)(output, target));
    };
  }
  /// A function with its name and the divisor of its mean; without a count it is the number of
  /// samples.
  template <LossFunction F>
  Loss(F loss, std::string name, Count count = {}) : Loss(std::move(loss)) {
    name_ = std::move(name);
    if (count) {
      count_ = std::move(count);
      counted_ = nullptr;
    }
  }

  /// 0-dim, with its gradient. Errors: UsageError when empty, and for a result that is not one
  /// number (Reduction::kNone).
  [[nodiscard]] at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const;
  /// Returns the divisor of the value's mean: over batches and ranks the mean is Σ value·count ÷ Σ
  /// count.
  [[nodiscard]] double count(const at::Tensor& output, const at::Tensor& target) const;
  /// The same as a tensor, 0-dim f64, which may be on the device. For the losses of this room it
  /// does not wait for the device.
  [[nodiscard]] at::Tensor counted(const at::Tensor& output, const at::Tensor& target) const;
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns what the loss's parameters() returns, or nothing: "label_smoothing=0.1".
  [[nodiscard]] const std::string& parameters() const { return parameters_; }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(function_); }

 private:
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> function_{};
  Count count_{};
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> counted_{};
  std::string name_ = "loss";
  std::string parameters_{};
};

}  // namespace argosy::loss
