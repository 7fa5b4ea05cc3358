#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/base/error.h"
#include "argosy/comm/group.h"
#include "argosy/metrics/evaluate.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

/// A metric that AnyMetric can hold: a Metric that can be copied and names its values.
/// values(group), for several values, and state(), load_state() and merge_state() are optional.
template <typename T>
concept NamedMetric = Metric<T> && std::copy_constructible<T> && requires(const T& metric) {
  { metric.names() } -> std::convertible_to<std::vector<std::string>>;
};

/// Any metric of this room, or one of your own, behind one type. The trainer has a list of them.
///
///     std::vector<AnyMetric> metrics = {Accuracy({.topk = {1, 5}}), Auc()};
///     for (AnyMetric& metric : metrics) metric.update(logits, labels);
///     metrics[0].values(group);                // in the order of names()
///     metrics[1].get<Auc>()->compute(group);
///
/// A value: a copy counts separately. A metric of your own is a struct with update(output, labels),
/// compute(group), names() and reset(). Not thread-safe.
class AnyMetric final {
 public:
  template <NamedMetric M>
  requires(!std::same_as<std::remove_cvref_t<M>, AnyMetric>)
      AnyMetric(M metric)  // NOLINT(google-explicit-constructor)
      : held_(std::make_unique<Model<M>>(std::move(metric))) {}
  AnyMetric(const AnyMetric& other) : held_(other.held_->copy()) {}
  AnyMetric(AnyMetric&&) noexcept = default;
  AnyMetric& operator=(const AnyMetric& other) {
    held_ = other.held_->copy();
    return *this;
  }
  AnyMetric& operator=(AnyMetric&&) noexcept = default;
  ~AnyMetric() = default;

  void update(const at::Tensor& output, const at::Tensor& labels) { held_->update(output, labels); }
  /// Returns the values in the order of names(). Collective over `group`; an empty group means this
  /// process alone.
  [[nodiscard]] std::vector<double> values(const comm::Group& group = {}) const {
    return held_->values(group);
  }
  [[nodiscard]] std::vector<std::string> names() const { return held_->names(); }
  void reset() { held_->reset(); }
  /// Errors: UsageError from both if the metric lacks them; see keeps().
  [[nodiscard]] State state() const { return held_->state(); }
  void load_state(const State& state) { held_->load_state(state); }
  /// True if the metric has state() and load_state().
  [[nodiscard]] bool keeps() const { return held_->keeps(); }
  /// Errors: UsageError if the metric lacks it; see merges().
  void merge_state(const State& other) { held_->merge_state(other); }
  /// True if the metric has merge_state().
  [[nodiscard]] bool merges() const { return held_->merges(); }

  /// Returns the metric inside, or nullptr if it has another type.
  template <typename M>
  [[nodiscard]] M* get() {
    auto* model = dynamic_cast<Model<M>*>(held_.get());
    return model == nullptr ? nullptr : &model->metric;
  }
  template <typename M>
  [[nodiscard]] const M* get() const {
    const auto* model = dynamic_cast<const Model<M>*>(held_.get());
    return model == nullptr ? nullptr : &model->metric;
  }

 private:
  struct Concept {
    virtual ~Concept() = default;
    [[nodiscard]] virtual std::unique_ptr<Concept> copy() const = 0;
    virtual void update(const at::Tensor& output, const at::Tensor& labels) = 0;
    [[nodiscard]] virtual std::vector<double> values(const comm::Group& group) const = 0;
    [[nodiscard]] virtual std::vector<std::string> names() const = 0;
    virtual void reset() = 0;
    [[nodiscard]] virtual State state() const = 0;
    virtual void load_state(const State& state) = 0;
    [[nodiscard]] virtual bool keeps() const = 0;
    virtual void merge_state(const State& other) = 0;
    [[nodiscard]] virtual bool merges() const = 0;
  };

  template <typename M>
  struct Model final : Concept {
    explicit Model(M held) : metric(std::move(held)) {}
    [[nodiscard]] std::unique_ptr<Concept> copy() const override {
      return std::make_unique<Model>(metric);
    }
    void update(const at::Tensor& output, const at::Tensor& labels) override {
      metric.update(output, labels);
    }
    [[nodiscard]] std::vector<double> values(const comm::Group& group) const override {
      if constexpr (requires { metric.values(group); }) {
        return metric.values(group);
      } else {
        return {static_cast<double>(metric.compute(group))};
      }
    }
    [[nodiscard]] std::vector<std::string> names() const override { return metric.names(); }
    void reset() override { metric.reset(); }
    [[nodiscard]] State state() const override {
      if constexpr (requires { metric.state(); }) {
        return metric.state();
      } else {
        throw stateless();
      }
    }
    void load_state(const State& state) override {
      if constexpr (requires { metric.load_state(state); }) {
        metric.load_state(state);
      } else {
        throw stateless();
      }
    }
    [[nodiscard]] bool keeps() const override { return kKeeps; }
    void merge_state(const State& other) override {
      if constexpr (kMerges) {
        metric.merge_state(other);
      } else {
        throw lacking("cannot go on with what other ranks have counted: it has no merge_state()");
      }
    }
    [[nodiscard]] bool merges() const override { return kMerges; }
    [[nodiscard]] UsageError stateless() const {
      return lacking("cannot be kept in a checkpoint: it has no state() and load_state()");
    }
    [[nodiscard]] UsageError lacking(const char* what) const {
      const std::vector<std::string> all = metric.names();
      return {"metrics.AnyMetric",
              "the metric \"" + (all.empty() ? std::string("without a name") : all.front()) +
                  "\" " + what + ". Add it"};
    }
    static constexpr bool kKeeps = requires(M & held, const State& state) {
      held.load_state(state);
      held.state();
    };
    static constexpr bool kMerges = requires(M & held, const State& state) {
      held.merge_state(state);
    };
    M metric;
  };

  std::unique_ptr<Concept> held_;
};

}  // namespace argosy::metrics
