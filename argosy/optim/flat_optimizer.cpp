#include "argosy/optim/flat_optimizer.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <array>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/engine/layout.h"
#include "argosy/optim/flat_view.h"
#include "argosy/optim/load_state.h"

namespace argosy::optim {
namespace {

struct Slot {
  std::size_t group = 0;
  int64_t step = 0;
  std::vector<at::Tensor> states{};  // empty until the first update
  bool shared = false;               // they lie where the processes that divide a step all see them
};

// One parameter in one step.
struct Active {
  std::size_t slot = 0;
  at::Tensor param{};  // flat; shares the parameter's memory unless it has gaps
  StepDivision::Part part{};
  Range range{};  // that part of it
  const void* whole_grad = nullptr;
  Update update{};
};

// FNV-1a over what processes that divide a step must agree on.
class Digest {
 public:
  template <typename T>
  void add(const T& value) {
    std::array<unsigned char, sizeof(T)> bytes{};
    std::memcpy(bytes.data(), &value, sizeof(T));
    for (const unsigned char byte : bytes) {
      hash_ = (hash_ ^ byte) * 0x100000001b3U;
    }
  }
  [[nodiscard]] uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325U;
};

uint64_t digest(const std::vector<Active>& active) {
  Digest all;
  for (const Active& one : active) {
    all.add(one.slot);
    all.add(one.update.lr);
    all.add(one.update.step);
    all.add(one.update.decay.kind);
    all.add(one.update.decay.coeff);
    all.add(one.update.grad_scale);
    all.add(one.update.grad_limit);
    all.add(one.part.divided);
    // Where gradients were not averaged, or one process has changed its own or its weights, some of
    // these differ.
    const std::size_t item = item_bytes(one.range.precision);
    const auto count = static_cast<std::size_t>(one.param.numel());
    for (const void* const data :
         {one.whole_grad, static_cast<const void*>(one.param.data_ptr())}) {
      for (const std::size_t i : {std::size_t{0}, count / 3, count / 2, count - 1}) {
        if (i < count) {
          uint64_t bits = 0;
          std::memcpy(&bits, static_cast<const char*>(data) + i * item, item);
          all.add(bits);
        }
      }
    }
  }
  return all.value();
}

class FlatOptimizer final : public OptimizerImpl {
 public:
  FlatOptimizer(std::unique_ptr<const Rule> rule,
                const engine::NamedTensors& parameters,
                const CommonOptions& options,
                const std::vector<ParamGroup>& groups)
      : rule_(std::move(rule)), where_(fmt::format("optim.{}", rule_->name())), options_(options) {
    check_lr(options.lr);
    check_clip();
    rule_->check_decay(options.weight_decay);
    ARGOSY_CHECK(!parameters.empty(), where_, "there are no parameters to optimize");
    groups_.push_back(group_info({}));
    for (const ParamGroup& group : groups) {
      groups_.push_back(group_info(group));
    }
    register_parameters(parameters, groups);
  }

  [[nodiscard]] const engine::NamedTensors& parameters() const override { return parameters_; }
  [[nodiscard]] const std::vector<GroupInfo>& groups() const override { return groups_; }

  void set_group_lr(std::size_t group, double lr) override {
    ARGOSY_CHECK(group < groups_.size(),
                 where_,
                 "group {} does not exist: there are {}",
                 group,
                 groups_.size());
    check_lr(lr);
    groups_[group].lr = lr;
  }

  void add_param_group(const engine::NamedTensors& parameters, const ParamGroup& group) override {
    ARGOSY_CHECK(group.names.empty() && group.params.empty(),
                 where_,
                 "add_param_group takes its parameters from its first argument. Leave names and "
                 "params empty.");
    const GroupInfo info = group_info(group);
    std::unordered_set<std::string> names;
    for (const auto& [name, parameter] : parameters) {
      check_new(name, parameter);
      ARGOSY_CHECK(names.insert(name).second, where_, "{}: two parameters have this name", name);
      ARGOSY_CHECK(!known_.contains(parameter.unsafeGetTensorImpl()),
                   where_,
                   "{}: the optimizer has this parameter already, under another name",
                   name);
    }
    groups_.push_back(info);
    for (const auto& [name, parameter] : parameters) {
      add(name, parameter, groups_.size() - 1);
    }
  }

  void step() override {
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> grads;
    std::vector<Active> active = collect(grads);
    apply_clip(active, grads);
    if (division_ != nullptr) {
      division_->begin(digest(active));
      share_states(active);
    }
    update(active);
    if (division_ != nullptr) {
      division_->end();
    }
    for (const Active& one : active) {
      at::Tensor& parameter = parameters_[one.slot].second;
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
    for (const auto& [name, parameter] : parameters_) {
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
    OptimizerState result{.optimizer = std::string(rule_->name()), .groups = groups_};
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].step == 0) {
        continue;
      }
      engine::StateDict entry;
      entry.set("step", at::scalar_tensor(static_cast<double>(slots_[i].step), at::kDouble));
      for (std::size_t k = 0; k < slots_[i].states.size(); ++k) {
        entry.set(rule_->state_names()[k], slots_[i].states[k]);
      }
      result.parameters.emplace_back(parameters_[i].first, std::move(entry));
    }
    return result;
  }

  void load_state_dict(const OptimizerState& state) override {
    check_loadable(state, *rule_, parameters_, groups_);
    const c10::NoGradGuard no_grad;
    for (std::size_t i = 0; i < state.groups.size(); ++i) {
      groups_[i].lr = state.groups[i].lr;
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].step = 0;
      slots_[i].states.clear();
      slots_[i].shared = false;  // no other process sees it before all of them make a step
      if (const engine::StateDict* entry = state.find(parameters_[i].first)) {
        slots_[i].step = static_cast<int64_t>(entry->at("step").item<double>());
        for (const std::string& name : rule_->state_names()) {
          slots_[i].states.push_back(new_state(parameters_[i].second).copy_(entry->at(name)));
        }
      }
    }
  }

 private:
  void check_lr(double lr) const {
    ARGOSY_CHECK(std::isfinite(lr) && lr >= 0, where_, "lr must be a number >= 0, got {}", lr);
  }

  void check_clip() const {
    const auto positive = [&](const char* name, double value) {
      ARGOSY_CHECK(value > 0, where_, "grad_clip: {} must be > 0, got {}", name, value);
    };
    if (const auto* global = std::get_if<ClipGradByGlobalNorm>(&options_.grad_clip)) {
      positive("clip_norm", global->clip_norm);
    } else if (const auto* own = std::get_if<ClipGradByNorm>(&options_.grad_clip)) {
      positive("clip_norm", own->clip_norm);
    } else if (const auto* value = std::get_if<ClipGradByValue>(&options_.grad_clip)) {
      positive("max", value->max);
    }
  }

  [[nodiscard]] GroupInfo group_info(const ParamGroup& group) const {
    GroupInfo info;
    info.weight_decay = group.weight_decay.value_or(options_.weight_decay);
    rule_->check_decay(info.weight_decay);
    if (group.lr) {
      check_lr(*group.lr);
      ARGOSY_CHECK(group.lr_scale == 1.0, where_, "a group has lr or lr_scale, not both");
      ARGOSY_CHECK(
          options_.lr > 0 || *group.lr == 0,
          where_,
          "a group's lr wants the optimizer's lr > 0, which set_lr() keeps it in proportion "
          "to, got 0");
      info.lr = *group.lr;
      info.lr_scale = options_.lr > 0 ? *group.lr / options_.lr : 1.0;
    } else {
      check_lr(group.lr_scale);
      info.lr_scale = group.lr_scale;
      info.lr = options_.lr * group.lr_scale;
    }
    return info;
  }

  // Errors: UsageError unless this parameter can be added under this name.
  void check_new(const std::string& name, const at::Tensor& parameter) const {
    ARGOSY_CHECK(parameter.defined(), where_, "{}: the parameter is undefined", name);
    (void)checked_precision(where_, name, parameter);
    ARGOSY_CHECK(parameter.is_leaf(),
                 where_,
                 "{}: expected a leaf tensor, got the result of an operation",
                 name);
    ARGOSY_CHECK(!names_.contains(name), where_, "{}: two parameters have this name", name);
  }

  void add(const std::string& name, const at::Tensor& parameter, std::size_t group) {
    if (!known_.insert(parameter.unsafeGetTensorImpl()).second) {
      return;  // tied weights: the first name counts
    }
    check_new(name, parameter);
    names_.insert(name);
    parameters_.emplace_back(name, parameter);
    slots_.push_back({.group = group});
    groups_[group].names.push_back(name);
  }

  void register_parameters(const engine::NamedTensors& parameters,
                           const std::vector<ParamGroup>& groups) {
    std::vector<std::vector<bool>> used(groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      used[g].assign(groups[g].names.size() + groups[g].params.size(), false);
      ARGOSY_CHECK(!used[g].empty(), where_, "group {} names no parameters", g + 1);
    }
    for (const auto& [name, parameter] : parameters) {
      ARGOSY_CHECK(parameter.defined(), where_, "{}: the parameter is undefined", name);
      std::size_t chosen = 0;
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if (claims(groups[g], name, parameter, used[g])) {
          ARGOSY_CHECK(chosen == 0 || chosen == g + 1,
                       where_,
                       "{}: groups {} and {} both claim this parameter",
                       name,
                       chosen,
                       g + 1);
          chosen = g + 1;
        }
      }
      add(name, parameter, chosen);
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t i = 0; i < used[g].size(); ++i) {
        ARGOSY_CHECK(used[g][i],
                     where_,
                     "group {}: no parameter {}. The first of {} is \"{}\".",
                     g + 1,
                     i < groups[g].names.size()
                         ? fmt::format("matches \"{}\"", groups[g].names[i])
                         : fmt::format("is params[{}]", i - groups[g].names.size()),
                     parameters.size(),
                     parameters.front().first);
      }
    }
  }

  // Does the group want this parameter? Notes which of its wishes were met.
  static bool claims(const ParamGroup& group,
                     const std::string& name,
                     const at::Tensor& parameter,
                     std::vector<bool>& used) {
    bool claimed = false;
    for (std::size_t i = 0; i < group.names.size(); ++i) {
      if (::fnmatch(group.names[i].c_str(), name.c_str(), 0) == 0) {
        used[i] = claimed = true;
      }
    }
    for (std::size_t i = 0; i < group.params.size(); ++i) {
      if (group.params[i].is_same(parameter)) {
        used[group.names.size() + i] = claimed = true;
      }
    }
    return claimed;
  }

  // Zeros in the parameter's own order of memory.
  static at::Tensor new_state(const at::Tensor& parameter) {
    return at::zeros_like(parameter.detach());
  }

  // State that all processes see becomes this one's. Nobody writes to it: this process is in no
  // step.
  static void take_back(Slot& slot) {
    for (at::Tensor& state : slot.states) {
      state = slot.shared ? state.clone() : state;
    }
    slot.shared = false;
  }

  // All processes are about to update: each brings its part of the state that was its own till now.
  void share_states(std::vector<Active>& active) {
    for (Active& one : active) {
      if (!one.part.divided) {
        continue;
      }
      Slot& slot = slots_[one.slot];
      const std::size_t item = item_bytes(one.range.precision);
      slot.states.resize(rule_->state_names().size());
      for (std::size_t k = 0; k < slot.states.size(); ++k) {
        at::Tensor& state = slot.states[k];
        if (!slot.shared) {
          at::Tensor shared = division_->state_of(one.param, k);
          auto* const to = static_cast<char*>(shared.data_ptr()) + one.part.begin * item;
          if (state.defined()) {
            const at::Tensor from = in_order_of(one.param, state);
            const auto* const begin = static_cast<const char*>(from.data_ptr());
            std::memcpy(to, begin + one.part.begin * item, one.range.count * item);
          } else {
            std::memset(to, 0, one.range.count * item);
          }
          state = std::move(shared);
        }
        one.range.states[k] = static_cast<char*>(state.data_ptr()) + one.part.begin * item;
      }
      slot.shared = true;
    }
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
      const auto& [name, parameter] = parameters_[i];
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
      const GroupInfo& group = groups_[slots_[i].group];
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
    if (const auto* value = std::get_if<ClipGradByValue>(&options_.grad_clip)) {
      for (Active& one : active) {
        one.update.grad_limit = value->max;
      }
      return;
    }
    const auto* global = std::get_if<ClipGradByGlobalNorm>(&options_.grad_clip);
    const auto* own = std::get_if<ClipGradByNorm>(&options_.grad_clip);
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
  CommonOptions options_;
  std::vector<GroupInfo> groups_{};
  engine::NamedTensors parameters_{};
  std::vector<Slot> slots_{};  // beside parameters_
  std::shared_ptr<StepDivision> division_{};
  std::unordered_set<std::string> names_{};
  std::unordered_set<const c10::TensorImpl*> known_{};
};

}  // namespace

std::shared_ptr<OptimizerImpl> make_flat_optimizer(std::unique_ptr<const Rule> rule,
                                                   const engine::NamedTensors& parameters,
                                                   const CommonOptions& options,
                                                   const std::vector<ParamGroup>& groups) {
  return std::make_shared<FlatOptimizer>(std::move(rule), parameters, options, groups);
}

}  // namespace argosy::optim
