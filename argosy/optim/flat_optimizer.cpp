#include "argosy/optim/flat_optimizer.h"

#include <fmt/ranges.h>

#include <cmath>
#include <cstring>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/engine/layout.h"
#include "argosy/optim/flat_step.h"
#include "argosy/optim/flat_view.h"
#include "argosy/optim/load_state.h"
#include "argosy/optim/param_registry.h"

namespace argosy::optim {
namespace {

class FlatOptimizer final : public OptimizerImpl {
 public:
  FlatOptimizer(std::unique_ptr<const Rule> rule,
                const engine::NamedTensors& parameters,
                const CommonOptions& options,
                const std::vector<ParamGroup>& groups)
      : rule_(std::move(rule)),
        where_(fmt::format("optim.{}", rule_->name())),
        grad_clip_(options.grad_clip),
        registry_(*rule_, where_, options, parameters, groups),
        slots_(registry_.size()) {
    check_clip();
  }

  [[nodiscard]] const engine::NamedTensors& parameters() const override {
    return registry_.parameters();
  }
  [[nodiscard]] const std::vector<GroupInfo>& groups() const override { return registry_.groups(); }

  void set_group_lr(std::size_t group, double lr) override { registry_.set_lr(group, lr); }

  void add_param_group(const engine::NamedTensors& parameters, const ParamGroup& group) override {
    registry_.add_group(parameters, group);
    slots_.resize(registry_.size());
  }

  void step() override {
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> grads;
    std::vector<Active> active = collect(grads);
    apply_clip(active, grads);
    if (division_ != nullptr) {
      division_->begin(digest(active));
      share_states(*division_, rule_->state_names().size(), active, slots_);
    }
    update(active);
    if (division_ != nullptr) {
      division_->end();
    }
    for (const Active& one : active) {
      at::Tensor parameter = parameters()[one.slot].second;
      slots_[one.slot].step = one.update.step;
      if (one.param.data_ptr() == parameter.data_ptr()) {
        parameter.unsafeGetTensorImpl()->bump_version();  // autograd must see the change
      } else {
        parameter.copy_(one.param);
      }
    }
  }

  [[nodiscard]] std::optional<std::size_t> states_per_parameter() const override {
    return rule_->state_names().size();
  }

  void divide(const std::shared_ptr<StepDivision>& division) override {
    const c10::NoGradGuard no_grad;
    for (Slot& slot : slots_) {
      take_back(slot);
    }
    division_ = division;
  }

  void zero_grad(const ZeroGradOptions& options) override {
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> flat;
    for (const auto& [name, parameter] : parameters()) {
      at::Tensor& grad = parameter.mutable_grad();
      if (!grad.defined()) {
        continue;
      }
      if (options.set_to_none) {
        grad = at::Tensor();
        continue;
      }
      if (grad.grad_fn() != nullptr) {  // after backward(create_graph)
        grad = grad.detach();
      }
      if (engine::is_dense(grad) && grad.device().is_cpu()) {
        flat.push_back(grad);
      } else {
        grad.zero_();
      }
    }
    const std::vector<kernels::Piece> pieces = cut(flat);
    kernels::for_each_piece(pieces, at::get_num_threads(), [&](std::size_t i) {
      const auto [array, begin, count] = pieces[i];
      const std::size_t size = flat[array].element_size();
      std::memset(static_cast<char*>(flat[array].data_ptr()) + begin * size, 0, count * size);
    });
    for (const at::Tensor& grad : flat) {
      grad.unsafeGetTensorImpl()->bump_version();
    }
  }

  [[nodiscard]] OptimizerState state_dict() const override {
    OptimizerState result{.optimizer = std::string(rule_->name()), .groups = groups()};
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].step == 0) {
        continue;
      }
      engine::StateDict entry;
      entry.set("step", at::scalar_tensor(static_cast<double>(slots_[i].step), at::kDouble));
      for (std::size_t k = 0; k < slots_[i].states.size(); ++k) {
        entry.set(rule_->state_names()[k], slots_[i].states[k]);
      }
      result.parameters.emplace_back(parameters()[i].first, std::move(entry));
    }
    return result;
  }

  void load_state_dict(const OptimizerState& state) override {
    check_loadable(state, *rule_, parameters(), groups());
    const c10::NoGradGuard no_grad;
    registry_.take_over_lr(state.groups);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].step = 0;
      slots_[i].states.clear();
      slots_[i].shared = false;  // no other process sees it before all of them make a step
      if (const engine::StateDict* entry = state.find(parameters()[i].first)) {
        slots_[i].step = static_cast<int64_t>(entry->at("step").item<double>());
        for (const std::string& name : rule_->state_names()) {
          slots_[i].states.push_back(new_state(parameters()[i].second).copy_(entry->at(name)));
        }
      }
    }
  }

 private:
  void check_clip() const {
    const auto positive = [&](const char* name, double value) {
      ARGOSY_CHECK(value > 0, where_, "grad_clip: {} must be > 0, got {}", name, value);
    };
    if (const auto* global = std::get_if<ClipGradByGlobalNorm>(&grad_clip_)) {
      positive("clip_norm", global->clip_norm);
    } else if (const auto* own = std::get_if<ClipGradByNorm>(&grad_clip_)) {
      positive("clip_norm", own->clip_norm);
    } else if (const auto* value = std::get_if<ClipGradByValue>(&grad_clip_)) {
      positive("max", value->max);
    }
  }

  // Zeros in the parameter's own order of memory.
  static at::Tensor new_state(const at::Tensor& parameter) {
    return at::zeros_like(parameter.detach());
  }

  void update(const std::vector<Active>& active) const {
    std::vector<std::size_t> lengths;
    lengths.reserve(active.size());
    for (const Active& one : active) {
      lengths.push_back(one.range.count);
    }
    const std::vector<kernels::Piece> pieces = kernels::cut(lengths);
    kernels::for_each_piece(pieces, at::get_num_threads(), [&](std::size_t i) {
      const auto [array, begin, count] = pieces[i];
      const Active& one = active[array];
      const Range part = one.range.sub(begin, count);
      rule_->update(part, one.update);
      if (one.part.divided) {
        division_->hand_out(part.param, count * item_bytes(part.precision));
      }
    });
  }

  // What this step updates. Nothing has changed when it throws.
  std::vector<Active> collect(std::vector<at::Tensor>& grads) {
    std::vector<Active> active;
    active.reserve(slots_.size());
    grads.reserve(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const auto& [name, parameter] = parameters()[i];
      const at::Tensor& grad = parameter.grad();
      if (!grad.defined() || !parameter.requires_grad()) {
        continue;
      }
      Active one{.slot = i};
      one.range.precision = checked_precision(where_, name, parameter);
      (void)checked_precision(where_, name + ".grad", grad);
      ARGOSY_CHECK(
          grad.sizes() == parameter.sizes() && grad.scalar_type() == parameter.scalar_type(),
          where_,
          "{}: expected a gradient of the parameter's shape and dtype, got [{}] {}",
          name,
          fmt::join(grad.sizes(), ", "),
          c10::toString(grad.scalar_type()));
      one.param = engine::is_dense(parameter) ? parameter : parameter.detach().contiguous();
      grads.push_back(in_order_of(one.param, grad));
      one.range.param = one.param.data_ptr();
      one.range.grad = grads.back().data_ptr();
      one.range.count = static_cast<std::size_t>(parameter.numel());
      one.whole_grad = one.range.grad;
      if (division_ != nullptr) {
        one.part = division_->part_of(one.param);
      }
      if (one.part.divided) {
        one.range = one.range.sub(one.part.begin, one.part.end - one.part.begin);
      } else {
        take_back(slots_[i]);
        fill_states(slots_[i], one);
      }
      const GroupInfo& group = registry_.group_of(i);
      one.update.lr = group.lr;
      one.update.decay = group.weight_decay;
      one.update.step = slots_[i].step + 1;
      active.push_back(std::move(one));
    }
    return active;
  }

  void fill_states(Slot& slot, Active& one) const {
    if (slot.states.empty()) {
      for (std::size_t k = 0; k < rule_->state_names().size(); ++k) {
        slot.states.push_back(new_state(one.param));
      }
    }
    for (std::size_t k = 0; k < slot.states.size(); ++k) {
      slot.states[k] = in_order_of(one.param, slot.states[k]);  // to_channels_last() came later
      one.range.states[k] = slot.states[k].data_ptr();
    }
  }

  void apply_clip(std::vector<Active>& active, const std::vector<at::Tensor>& grads) const {
    if (const auto* value = std::get_if<ClipGradByValue>(&grad_clip_)) {
      for (Active& one : active) {
        one.update.grad_limit = value->max;
      }
      return;
    }
    const auto* global = std::get_if<ClipGradByGlobalNorm>(&grad_clip_);
    const auto* own = std::get_if<ClipGradByNorm>(&grad_clip_);
    if (global == nullptr && own == nullptr) {
      return;
    }
    const std::vector<double> sums = sums_of_squares(grads);
    double total = 0;
    for (const double sum : sums) {
      total += sum;
    }
    for (std::size_t i = 0; i < active.size(); ++i) {
      const double limit = global != nullptr ? global->clip_norm : own->clip_norm;
      const double norm = std::sqrt(global != nullptr ? total : sums[i]);
      // Written so that a norm of NaN reaches the update instead of passing for a small one.
      active[i].update.grad_scale = norm <= limit ? 1.0 : limit / norm;
    }
  }

  std::unique_ptr<const Rule> rule_;
  std::string where_;
  GradClip grad_clip_;
  ParamRegistry registry_;
  std::vector<Slot> slots_;  // beside the registry's parameters
  std::shared_ptr<StepDivision> division_{};
};

}  // namespace

std::shared_ptr<OptimizerImpl> make_flat_optimizer(std::unique_ptr<const Rule> rule,
                                                   const engine::NamedTensors& parameters,
                                                   const CommonOptions& options,
                                                   const std::vector<ParamGroup>& groups) {
  return std::make_shared<FlatOptimizer>(std::move(rule), parameters, options, groups);
}

}  // namespace argosy::optim
