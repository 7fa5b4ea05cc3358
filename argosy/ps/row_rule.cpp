#include "argosy/ps/row_rule.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "argosy/base/check.h"

namespace argosy::ps {
namespace {

constexpr std::array<std::string_view, 5> kNames{
    "naive", "adagrad", "std_adagrad", "adam", "shared_adam"};

void check_bounds(const WeightBounds& bounds) {
  ARGOSY_CHECK(bounds.low <= bounds.high,
               "ps.rule",
               "expected weight bounds with low <= high, got [{}, {}]",
               bounds.low,
               bounds.high);
}

float bounded(float value, const WeightBounds& bounds) {
  if (!(value >= bounds.low)) {  // NaN too, as in Paddle
    return bounds.low;
  }
  return value > bounds.high ? bounds.high : value;
}

class Naive final : public RowRule {
 public:
  explicit Naive(const NaiveOptions& options) : options_(options) { check_bounds(options.bounds); }
  [[nodiscard]] std::string_view name() const override { return kNames[0]; }
  [[nodiscard]] size_t state_size(size_t /*dim*/) const override { return 0; }
  void begin(std::span<float> /*state*/) const override {}
  void update(std::span<const RowUpdate> rows, size_t dim, double lr) const override {
    const auto rate = static_cast<float>(lr);
    for (const RowUpdate& row : rows) {
      for (size_t i = 0; i < dim; ++i) {
        row.weights[i] = bounded(row.weights[i] - rate * row.gradient[i], options_.bounds);
      }
    }
  }

 private:
  const NaiveOptions options_;
};

/// One step of a weight, and what it adds to G.
struct AdagradStep {
  double rate;
  double initial;
  WeightBounds bounds;

  [[nodiscard]] double factor(float g2sum) const { return std::sqrt(initial / (initial + g2sum)); }
  double operator()(float& weight, float gradient, float shows, double factor) const {
    const double scaled = gradient / shows;
    weight = bounded(static_cast<float>(weight - rate * scaled * factor), bounds);
    return scaled * scaled;
  }
};

class Adagrad final : public RowRule {
 public:
  enum class Sums { kOfRow, kOfWeight };
  Adagrad(const AdagradRowOptions& options, Sums sums) : options_(options), sums_(sums) {
    check_bounds(options.bounds);
    ARGOSY_CHECK(options.initial_g2sum > 0,
                 "ps.rule",
                 "initial_g2sum must be greater than 0, got {}",
                 options.initial_g2sum);
  }
  [[nodiscard]] std::string_view name() const override {
    return sums_ == Sums::kOfRow ? kNames[1] : kNames[2];
  }
  [[nodiscard]] size_t state_size(size_t dim) const override {
    return sums_ == Sums::kOfRow ? 1 : dim;
  }
  void begin(std::span<float> state) const override { std::ranges::fill(state, 0.0F); }
  void update(std::span<const RowUpdate> rows, size_t dim, double lr) const override {
    const AdagradStep step{static_cast<float>(lr), options_.initial_g2sum, options_.bounds};
    for (const RowUpdate& row : rows) {
      if (sums_ == Sums::kOfRow) {
        double added = 0;
        const double factor = step.factor(*row.state);
        for (size_t i = 0; i < dim; ++i) {
          added += step(row.weights[i], row.gradient[i], row.shows, factor);
        }
        *row.state = static_cast<float>(*row.state + added / static_cast<double>(dim));
      } else {
        for (size_t i = 0; i < dim; ++i) {
          const double added =
              step(row.weights[i], row.gradient[i], row.shows, step.factor(row.state[i]));
          row.state[i] = static_cast<float>(row.state[i] + added);
        }
      }
    }
  }

 private:
  const AdagradRowOptions options_;
  const Sums sums_;
};

/// The state of a row: first moments, second moments, power of β₁, power of β₂.
class Adam final : public RowRule {
 public:
  enum class Moments { kOfWeight, kOfRow };
  Adam(const AdamRowOptions& options, Moments moments) : options_(options), moments_(moments) {
    check_bounds(options.bounds);
    for (const float beta : {options.beta1, options.beta2}) {
      ARGOSY_CHECK(beta >= 0 && beta < 1, "ps.rule", "betas must be in [0, 1), got {}", beta);
    }
  }
  [[nodiscard]] std::string_view name() const override {
    return moments_ == Moments::kOfWeight ? kNames[3] : kNames[4];
  }
  [[nodiscard]] size_t state_size(size_t dim) const override { return 2 * moments(dim) + 2; }
  void begin(std::span<float> state) const override {
    std::ranges::fill(state, 0.0F);
    state[state.size() - 2] = options_.beta1;
    state[state.size() - 1] = options_.beta2;
  }
  void update(std::span<const RowUpdate> rows, size_t dim, double lr) const override {
    for (const RowUpdate& row : rows) {
      float* const powers = row.state + 2 * moments(dim);
      const auto rate =
          static_cast<float>(static_cast<float>(lr) * std::sqrt(1 - powers[1]) / (1 - powers[0]));
      if (moments_ == Moments::kOfWeight) {
        update_each(row, dim, rate);
      } else {
        update_shared(row, dim, rate);
      }
      powers[0] *= options_.beta1;
      powers[1] *= options_.beta2;
    }
  }

 private:
  [[nodiscard]] size_t moments(size_t dim) const {
    return moments_ == Moments::kOfWeight ? dim : 1;
  }
  void update_each(const RowUpdate& row, size_t dim, float rate) const {
    const auto [beta1, beta2, epsilon, bounds] = options_;
    float* const first = row.state;
    float* const second = row.state + dim;
    for (size_t i = 0; i < dim; ++i) {
      const float g = row.gradient[i];
      first[i] = beta1 * first[i] + (1 - beta1) * g;
      second[i] = beta2 * second[i] + (1 - beta2) * g * g;
      row.weights[i] =
          bounded(row.weights[i] - rate * (first[i] / (std::sqrt(second[i]) + epsilon)), bounds);
    }
  }
  void update_shared(const RowUpdate& row, size_t dim, float rate) const {
    const auto [beta1, beta2, epsilon, bounds] = options_;
    double firsts = 0;
    double seconds = 0;
    for (size_t i = 0; i < dim; ++i) {
      const float g = row.gradient[i];
      const double first = beta1 * row.state[0] + (1 - beta1) * g;
      const double second = beta2 * row.state[1] + (1 - beta2) * g * g;
      row.weights[i] = bounded(
          static_cast<float>(row.weights[i] - rate * (first / (std::sqrt(second) + epsilon))),
          bounds);
      firsts += first;
      seconds += second;
    }
    row.state[0] = static_cast<float>(firsts / static_cast<double>(dim));
    row.state[1] = static_cast<float>(seconds / static_cast<double>(dim));
  }

  const AdamRowOptions options_;
  const Moments moments_;
};

}  // namespace

std::shared_ptr<const RowRule> naive(const NaiveOptions& options) {
  return std::make_shared<const Naive>(options);
}
std::shared_ptr<const RowRule> adagrad(const AdagradRowOptions& options) {
  return std::make_shared<const Adagrad>(options, Adagrad::Sums::kOfRow);
}
std::shared_ptr<const RowRule> std_adagrad(const AdagradRowOptions& options) {
  return std::make_shared<const Adagrad>(options, Adagrad::Sums::kOfWeight);
}
std::shared_ptr<const RowRule> adam(const AdamRowOptions& options) {
  return std::make_shared<const Adam>(options, Adam::Moments::kOfWeight);
}
std::shared_ptr<const RowRule> shared_adam(const AdamRowOptions& options) {
  return std::make_shared<const Adam>(options, Adam::Moments::kOfRow);
}

std::shared_ptr<const RowRule> row_rule(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  ARGOSY_CHECK(found != kNames.end(),
               "ps.rule",
               "there is no rule \"{}\". There are {}",
               name,
               fmt::join(kNames, ", "));
  switch (found - kNames.begin()) {
    case 0:
      return naive();
    case 1:
      return adagrad();
    case 2:
      return std_adagrad();
    case 3:
      return adam();
    default:
      return shared_adam();
  }
}

}  // namespace argosy::ps
