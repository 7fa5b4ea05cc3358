#include "argosy/ps/optimizer_rule.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "argosy/base/check.h"
#include "argosy/optim/flat_optimizer.h"
#include "argosy/optim/rule.h"

namespace argosy::ps {
namespace {

/// The state of a row: the rule's own, one after the other, and the bits of the number of steps.
class OptimizerRule final : public RowRule {
 public:
  OptimizerRule(std::shared_ptr<const optim::Rule> rule, const optim::WeightDecay& decay)
      : rule_(std::move(rule)), decay_(decay) {}

  [[nodiscard]] std::string_view name() const override { return rule_->name(); }
  [[nodiscard]] size_t state_size(size_t dim) const override {
    return rule_->state_names().size() * dim + 1;
  }
  void begin(std::span<float> state) const override { std::ranges::fill(state, 0.0F); }
  void update(std::span<const RowUpdate> rows, size_t dim, double lr) const override {
    for (const RowUpdate& row : rows) {
      float& steps = row.state[rule_->state_names().size() * dim];
      steps = std::bit_cast<float>(std::bit_cast<uint32_t>(steps) + 1);
      optim::MemoryRange range{.param = row.weights, .grad = row.gradient, .count = dim};
      for (size_t i = 0; i < rule_->state_names().size(); ++i) {
        range.states[i] = row.state + i * dim;
      }
      optim::Update update{.lr = lr, .step = std::bit_cast<uint32_t>(steps), .decay = decay_};
      if (rule_->needs_whole_parameter()) {
        update.sums = rule_->prepare(range, update).value();
      }
      rule_->update(range, update);
    }
  }

 private:
  const std::shared_ptr<const optim::Rule> rule_;
  const optim::WeightDecay decay_;
};

}  // namespace

std::vector<std::shared_ptr<const RowRule>> rules_of(const optim::Optimizer& optimizer) {
  const std::optional<optim::FlatSettings> settings = optim::settings_of(*optimizer.impl());
  ARGOSY_CHECK(settings.has_value(),
               "ps.optimizer",
               "{} wraps another optimizer: give the servers that one",
               optimizer.impl()->name());
  ARGOSY_CHECK(std::holds_alternative<std::monostate>(settings->grad_clip),
               "ps.optimizer",
               "{} clips gradients, and a server has only a part of them: clip them before step()",
               settings->rule);
  std::vector<std::shared_ptr<const RowRule>> rules;
  for (const optim::WeightDecay& decay : settings->decays) {
    rules.push_back(std::make_shared<const OptimizerRule>(settings->formula, decay));
  }
  return rules;
}

}  // namespace argosy::ps
