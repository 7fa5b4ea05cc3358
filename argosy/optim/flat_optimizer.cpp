#include "argosy/optim/flat_optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/engine/layout.h"
#include "argosy/engine/parts.h"
#include "argosy/optim/flat_step.h"
#include "argosy/optim/flat_view.h"
#include "argosy/optim/load_state.h"
#include "argosy/optim/param_registry.h"

namespace argosy::optim {
namespace {

/// Bytes of parameters on a device that are updated together: an update's results take some times
/// as much.
constexpr std::size_t kMostTogether = std::size_t{256} << 20;

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

  [[nodiscard]] FlatSettings settings() const {
    std::vector<WeightDecay> decays;
    for (std::size_t i = 0; i < registry_.size(); ++i) {
      decays.push_back(registry_.decay_of(i));
    }
    return {.rule = std::string(rule_->name()),
            .numbers = rule_->numbers(),
            .grad_clip = grad_clip_,
            .apply_decay_param_fun = registry_.decay_filter(),
            .formula = rule_,
            .decays = decays};
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

  void hand_over_steps(const StepsElsewhere& to) override { elsewhere_ = to; }

  void step() override {
    if (!elsewhere_.why.empty()) {
      throw UsageError(elsewhere_.where, elsewhere_.why);
    }
    const c10::NoGradGuard no_grad;
    if (sharded_ != nullptr) {
      sharded_->begin();
    }
    std::vector<Active> active;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i].early) {
        activate(i, active);
      }
    }
    apply_clip(active);
    if (division_ != nullptr) {
      // By now all ranks have made their early updates.
      division_->begin(digest(early_, active),
                       [&] { return in_words(parameters(), early_, active); });
      share_states(*division_, rule_->state_names().size(), active, slots_);
    }
    update(active, at::get_num_threads());
    if (division_ != nullptr && !active.empty()) {
      division_->end();
    }
    if (sharded_ != nullptr) {  // also where nothing is updated: all ranks have begun
      sharded_->hand_out();
    }
    settle(early_);
    early_.clear();
    settle(active);
  }

  [[nodiscard]] bool can_step_early() const override {
    return std::holds_alternative<std::monostate>(grad_clip_) ||
           std::holds_alternative<ClipGradByValue>(grad_clip_);
  }

  void step_early(std::span<const at::Tensor> parameters) override {
    const c10::NoGradGuard no_grad;
    std::vector<Active> active;
    for (const at::Tensor& parameter : parameters) {
      if (const std::optional<std::size_t> slot = registry_.find(parameter)) {
        activate(*slot, active);
      }
    }
    apply_clip(active);
    if (division_ != nullptr) {
      share_states(*division_, rule_->state_names().size(), active, slots_);
    }
    update(active, 1);  // the intra-op threads are at backward
    for (Active& one : active) {
      one.param.unsafeGetTensorImpl()->bump_version();  // a backward that still needs it says so
      slots_[one.slot].early = true;
      early_.push_back(std::move(one));
    }
  }

  [[nodiscard]] bool stepped_early() const override { return !early_.empty(); }

  void abandon_step() noexcept override {
    try {
      const c10::NoGradGuard no_grad;
      settle(early_);
    } catch (const std::exception& error) {  // no memory: the first error is the one to tell
      log::warn("[{}] a step that was abandoned: {}", where_, error.what());
    }
    early_.clear();
    if (division_ != nullptr) {
      division_->leave();
    }
  }

  // Ranks that divide a step exchange nothing in the middle of it.
  [[nodiscard]] std::optional<std::size_t> states_per_parameter() const override {
    return rule_->needs_whole_parameter() ? std::nullopt
                                          : std::optional<std::size_t>(rule_->state_names().size());
  }

  void divide(const std::shared_ptr<StepDivision>& division) override {
    check_divisible(division == nullptr);
    const c10::NoGradGuard no_grad;
    for (Slot& slot : slots_) {
      take_back(slot);
    }
    division_ = division;
  }

  [[nodiscard]] bool can_shard() const override { return true; }
  void shard(const std::shared_ptr<ShardedStep>& step) override {
    check_complete(kChange);
    const c10::NoGradGuard no_grad;
    if (sharded_ != nullptr) {
      gather_states(*sharded_, parameters(), slots_);
    }
    sharded_ = step;
    if (sharded_ != nullptr) {
      keep_parts(*sharded_, parameters(), slots_);
    }
  }
  [[nodiscard]] const ShardedStep* sharded() const override { return sharded_.get(); }

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
      if (engine::coming_memory_of(grad) != nullptr) {  // each process has its part
        sharded_ != nullptr ? sharded_->gradient_of(parameter).zero_() : grad.zero_();
      } else if (engine::is_dense(grad) && grad.device().is_cpu()) {
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

  [[nodiscard]] std::string name() const override { return std::string(rule_->name()); }
  [[nodiscard]] Choices choices() const override {
    Choices all = rule_->choices();
    if (const auto* global = std::get_if<ClipGradByGlobalNorm>(&grad_clip_)) {
      all.emplace_back("grad_clip", fmt::format("global norm {}", global->clip_norm));
    } else if (const auto* own = std::get_if<ClipGradByNorm>(&grad_clip_)) {
      all.emplace_back("grad_clip", fmt::format("norm {}", own->clip_norm));
    } else if (const auto* value = std::get_if<ClipGradByValue>(&grad_clip_)) {
      all.emplace_back("grad_clip", fmt::format("value {}", value->max));
    }
    return all;
  }
  [[nodiscard]] OptimizerState state_dict() const override {
    check_complete("state_dict()");
    OptimizerState result{.optimizer = std::string(rule_->name()), .groups = groups()};
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const at::Tensor& parameter = parameters()[i].second;
      const bool has_master = sharded_ != nullptr && sharded_->has_master(parameter);
      if (slots_[i].step == 0 && !has_master) {
        continue;
      }
      engine::StateDict entry;
      entry.set("step", at::scalar_tensor(static_cast<double>(slots_[i].step), at::kDouble));
      for (std::size_t k = 0; k < slots_[i].states.size(); ++k) {
        const at::Tensor& state = slots_[i].states[k];
        entry.set(rule_->state_names()[k], sharded_ == nullptr ? state : divided(parameter, state));
      }
      if (has_master) {  // what a parameter of 16 bits is rounded from
        entry.set(kMaster, divided(parameter, sharded_->values_of(parameter, /*to_write=*/false)));
      }
      result.parameters.emplace_back(parameters()[i].first, std::move(entry));
    }
    return result;
  }

  void load_state_dict(const OptimizerState& state) override {
    check_complete("load_state_dict()");
    const auto has_master = [&](const at::Tensor& parameter) {
      return sharded_ != nullptr && sharded_->has_master(parameter);
    };
    check_loadable(state, *rule_, parameters(), groups(), has_master);
    const c10::NoGradGuard no_grad;
    load_masters(state);
    registry_.take_over_lr(state.groups);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].step = 0;
      slots_[i].states.clear();
      slots_[i].shared = false;  // no other process sees it before all of them make a step
      if (const engine::StateDict* entry = state.find(parameters()[i].first)) {
        slots_[i].step = static_cast<int64_t>(engine::values_of(entry->at("step")).item<double>());
        if (slots_[i].step == 0) {
          continue;  // there is a master only
        }
        for (const std::string& name : rule_->state_names()) {
          slots_[i].states.push_back(own_copy(parameters()[i].second, entry->at(name)));
        }
      }
    }
  }

 private:
  static constexpr const char* kChange = "a change of who makes the steps";

  void check_complete(const char* what) const {
    ARGOSY_CHECK(early_.empty(),
                 where_,
                 "{} between backward() and step(), where a part of the update is made already "
                 "(overlap_update). Call step() first.",
                 what);
  }

  void check_divisible(bool ends) const {
    ARGOSY_CHECK(ends || !rule_->needs_whole_parameter(),
                 where_,
                 "steps cannot be divided: this optimizer compares norms of whole parameters");
    check_complete(kChange);
  }

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
    return at::empty_strided(parameter.sizes(),
                             parameter.strides(),
                             parameter.options().dtype(state_type(parameter)))
        .zero_()
        .set_requires_grad(false);
  }

  [[nodiscard]] at::Tensor divided(const at::Tensor& parameter, const at::Tensor& part) const {
    return engine::divided_tensor(
        parameter, {sharded_->part_of(parameter), part}, [step = sharded_, parameter, part] {
          return step->gather(parameter, part);
        });
  }

  // Of a state that is shaped like the parameter: all of it, or this process's part.
  [[nodiscard]] at::Tensor own_copy(const at::Tensor& parameter, const at::Tensor& state) const {
    if (sharded_ != nullptr) {
      const at::Tensor part = engine::elements_like(parameter, state, sharded_->part_of(parameter))
                                  .to(parameter.device(), state_type(parameter));
      return sharded_->make_state(part).copy_(part);
    }
    at::Tensor own = new_state(parameter);
    engine::copy_values(own, state);
    return own;
  }

  // Into all that this process keeps of the values, more than it updates where others keep it, too:
  // nobody hands it out, so that whoever cannot read them keeps nobody waiting.
  void load_masters(const OptimizerState& state) {
    for (const auto& [name, parameter] : parameters()) {
      const engine::StateDict* entry = state.find(name);
      const at::Tensor* master = entry == nullptr ? nullptr : entry->find(kMaster);
      if (master != nullptr) {
        (void)sharded_->values_of(parameter, /*to_write=*/true);  // a whole that is held goes
        engine::copy_values(parameter, *master);
      }
    }
  }

  void update(std::vector<Active>& active, int threads) const {
    std::vector<std::size_t> lengths;
    lengths.reserve(active.size());
    for (const Active& one : active) {
      lengths.push_back(one.range.count);
    }
    const std::vector<kernels::Piece> pieces = kernels::cut(lengths);
    std::vector<Alike> on_devices = updated_alike(active);
    if (rule_->needs_whole_parameter()) {
      prepare(pieces, on_devices, active, threads);
    }
    kernels::for_each_piece(pieces, threads, [&](std::size_t i) {
      const auto [array, begin, count] = pieces[i];
      const Active& one = active[array];
      const MemoryRange part = one.range.sub(begin, count);
      rule_->update(part, one.update);
      if (one.part.divided) {
        division_->hand_out(part.param, count * item_bytes(part.precision));
      }
    });
    for (Alike& group : on_devices) {
      for (const std::size_t place : group.places) {
        group.ranges.sums.push_back(active[place].update.sums);
      }
      rule_->update_tensors(group.ranges, active[group.places.front()].update);
    }
  }

  // Parameters on a device that are updated alike are updated together: each operator once for all
  // of them, or for as many as the memory allows that its results take.
  struct Alike {
    std::vector<std::size_t> places{};  // among the active
    TensorRanges ranges{};
  };
  [[nodiscard]] std::vector<Alike> updated_alike(const std::vector<Active>& active) const {
    std::vector<Alike> alike;
    for (std::size_t place = 0; place < active.size(); ++place) {
      const Active& one = active[place];
      if (one.param.is_cpu() || one.param.numel() == 0) {
        continue;
      }
      auto found = std::ranges::find_if(alike, [&](const Alike& known) {
        return are_updated_alike(active[known.places.front()], one) &&
               known.ranges.bytes + bytes_of(one) <= kMostTogether;
      });
      if (found == alike.end()) {
        const std::size_t states = slots_[one.slot].states.size();
        alike.push_back({.ranges = {.states = std::vector<TensorList>(states)}});
        found = std::prev(alike.end());
      }
      found->places.push_back(place);
      TensorRanges& ranges = found->ranges;
      ranges.bytes += bytes_of(one);
      ranges.params.push_back(one.param);
      ranges.grads.push_back(one.grad);
      for (std::size_t k = 0; k < ranges.states.size(); ++k) {
        ranges.states[k].push_back(slots_[one.slot].states[k]);
      }
    }
    return alike;
  }

  static std::size_t bytes_of(const Active& one) { return one.param.nbytes(); }

  static bool are_updated_alike(const Active& a, const Active& b) {
    const auto terms = [](const Active& one) {
      return std::tuple(one.param.device(),
                        one.range.precision,
                        one.update.lr,
                        one.update.step,
                        one.update.decay.kind,
                        one.update.decay.coeff,
                        one.update.grad_scale,
                        one.update.grad_limit);
    };
    return terms(a) == terms(b);
  }

  // The rule's first pass: what it needs to know of whole parameters.
  void prepare(const std::vector<kernels::Piece>& pieces,
               const std::vector<Alike>& on_devices,
               std::vector<Active>& active,
               int threads) const {
    std::vector<kernels::ExactSums> parts(pieces.size());
    kernels::for_each_piece(pieces, threads, [&](std::size_t i) {
      const auto [array, begin, count] = pieces[i];
      parts[i] = rule_->prepare(active[array].range.sub(begin, count), active[array].update);
    });
    std::vector<ExactSum> sums(2 * active.size());
    const auto add = [&](std::size_t place, const kernels::ExactSums& part) {
      sums[2 * place].add(part.param);
      sums[2 * place + 1].add(part.update);
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      add(pieces[i].array, parts[i]);
    }
    for (const Alike& group : on_devices) {
      const Update& update = active[group.places.front()].update;
      const std::vector<kernels::ExactSums> theirs = rule_->prepare_tensors(group.ranges, update);
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        add(group.places[i], theirs[i]);
      }
    }
    if (sharded_ != nullptr) {
      sharded_->sum(sums);
    }
    for (std::size_t place = 0; place < active.size(); ++place) {
      active[place].update.sums = {sums[2 * place].value(), sums[2 * place + 1].value()};
    }
  }

  // Adds a parameter that has a gradient to what is updated. Nothing has changed when it throws.
  void activate(std::size_t slot, std::vector<Active>& active) {
    const auto& [name, parameter] = parameters()[slot];
    const at::Tensor& grad = parameter.grad();
    if (!grad.defined() || !parameter.requires_grad()) {
      return;
    }
    ARGOSY_CHECK(sharded_ != nullptr || engine::coming_memory_of(parameter) == nullptr,
                 where_,
                 "{}: its values are divided among processes, and this optimizer's steps are not. "
                 "Use fleet::distributed_optimizer(), or model.divide_step(optimizer).",
                 name);
    Active one{.slot = slot};
    const bool rounded = sharded_ != nullptr && sharded_->has_master(parameter);
    if (!rounded) {
      one.range.precision = checked_precision(where_, name, parameter);
      (void)checked_precision(where_, name + ".grad", grad);
    }
    ARGOSY_CHECK(grad.sizes() == parameter.sizes() &&
                     (rounded || grad.scalar_type() == parameter.scalar_type()),
                 where_,
                 "{}: expected a gradient of the parameter's shape and dtype, got {}",
                 name,
                 text::shape_and_type(grad));
    ARGOSY_CHECK(grad.device() == parameter.device(),
                 where_,
                 "{}: it is on {}, its gradient on {}. Move the model before backward().",
                 name,
                 parameter.device().str(),
                 grad.device().str());
    if (sharded_ != nullptr) {
      place_part(parameter, one);
    } else {
      parameter.is_cpu() ? place_in_memory(parameter, grad, one)
                         : place_on_device(parameter, grad, one);
    }
    const GroupInfo& group = registry_.group_of(slot);
    one.update.lr = group.lr;
    one.update.decay = registry_.decay_of(slot);
    one.update.step = slots_[slot].step + 1;
    active.push_back(std::move(one));
  }

  void place_in_memory(const at::Tensor& parameter, const at::Tensor& grad, Active& one) {
    one.param = engine::is_dense(parameter) ? parameter : parameter.detach().contiguous();
    one.grad = engine::in_order_of(one.param, grad);
    point_to(one);
    if (division_ != nullptr) {
      one.part = division_->part_of(one.param);
    }
    if (one.part.divided) {
      one.range = one.range.sub(one.part.begin, one.part.end - one.part.begin);
    } else {
      take_back(slots_[one.slot]);
      fill_states(slots_[one.slot], one);
    }
  }

  void place_part(const at::Tensor& parameter, Active& one) {
    one.param = sharded_->values_of(parameter, /*to_write=*/true);
    one.grad = sharded_->gradient_of(parameter);
    one.range.precision = checked_precision(where_, parameters()[one.slot].first, one.param);
    if (one.param.is_cpu()) {
      point_to(one);
    }
    fill_states(slots_[one.slot], one);
  }

  static void point_to(Active& one) {
    one.range.param = one.param.data_ptr();
    one.range.grad = one.grad.data_ptr();
    one.range.count = static_cast<std::size_t>(one.param.numel());
  }

  // No range: the kernels pass it by.
  void place_on_device(const at::Tensor& parameter, const at::Tensor& grad, Active& one) {
    one.param = parameter.detach();
    one.grad = engine::in_order_of(one.param, grad.detach());
    fill_states(slots_[one.slot], one);
  }

  // Autograd learns of what was updated.
  void settle(const std::vector<Active>& updated) {
    for (const Active& one : updated) {
      const at::Tensor& parameter = parameters()[one.slot].second;
      slots_[one.slot].step = one.update.step;
      slots_[one.slot].early = false;
      if (sharded_ != nullptr || one.param.is_alias_of(parameter)) {
        parameter.unsafeGetTensorImpl()->bump_version();
      } else {
        parameter.copy_(one.param);
      }
    }
  }

  void fill_states(Slot& slot, Active& one) const {
    if (slot.states.empty()) {
      for (std::size_t k = 0; k < rule_->state_names().size(); ++k) {
        slot.states.push_back(sharded_ != nullptr ? sharded_->make_state(one.param)
                                                  : new_state(one.param));
      }
    }
    for (std::size_t k = 0; k < slot.states.size(); ++k) {
      slot.states[k] =
          engine::in_order_of(one.param, slot.states[k]);  // to_channels_last() came later
      one.range.states[k] = one.param.is_cpu() ? slot.states[k].data_ptr() : nullptr;
    }
  }

  void apply_clip(std::vector<Active>& active) const {
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
    std::vector<at::Tensor> grads;
    for (const Active& one : active) {
      grads.push_back(one.grad);
    }
    std::vector<ExactSum> sums = sums_of_squares(grads);
    if (global != nullptr) {
      ExactSum total;
      for (const ExactSum& sum : sums) {
        total.add(sum);
      }
      sums.assign(1, total);
    }
    if (sharded_ != nullptr) {
      sharded_->sum(sums);
    }
    for (std::size_t i = 0; i < active.size(); ++i) {
      const double limit = global != nullptr ? global->clip_norm : own->clip_norm;
      const double norm = std::sqrt(sums[global != nullptr ? 0 : i].value());
      // Written so that a norm of NaN reaches the update instead of passing for a small one.
      active[i].update.grad_scale = norm <= limit ? 1.0 : limit / norm;
    }
  }

  std::shared_ptr<const Rule> rule_;
  std::string where_;
  GradClip grad_clip_;
  ParamRegistry registry_;
  std::vector<Slot> slots_;  // beside the registry's parameters
  std::shared_ptr<StepDivision> division_{};
  std::shared_ptr<ShardedStep> sharded_{};
  StepsElsewhere elsewhere_{};
  std::vector<Active> early_{};  // updated since the last step()
};

}  // namespace

std::shared_ptr<OptimizerImpl> make_flat_optimizer(std::unique_ptr<const Rule> rule,
                                                   const engine::NamedTensors& parameters,
                                                   const CommonOptions& options,
                                                   const std::vector<ParamGroup>& groups) {
  return std::make_shared<FlatOptimizer>(std::move(rule), parameters, options, groups);
}

std::optional<FlatSettings> settings_of(const OptimizerImpl& optimizer) {
  const auto* flat = dynamic_cast<const FlatOptimizer*>(&optimizer);
  return flat == nullptr ? std::nullopt : std::optional(flat->settings());
}

}  // namespace argosy::optim
