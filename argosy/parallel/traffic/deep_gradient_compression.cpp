#include "argosy/parallel/traffic/deep_gradient_compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/comm/collectives.h"
#include "argosy/optim/flat_optimizer.h"
#include "argosy/parallel/traffic/leaf_average.h"
#include "argosy/parallel/traffic/rank_state.h"

namespace argosy::parallel {
namespace {

constexpr const char* kDgcPrefix = "dgc.";
constexpr const char* kDgc = "parallel.dgc";

optim::FlatSettings momentum_settings(const optim::OptimizerImpl& optimizer) {
  auto settings = optim::settings_of(optimizer).value_or(optim::FlatSettings{});
  const bool is_momentum =
      settings.rule == "Momentum" || (settings.rule == "SGD" && settings.numbers.momentum > 0);
  ARGOSY_CHECK(
      is_momentum,
      kDgc,
      "dgc has the momentum of optim::Momentum, or of optim::SGD with momentum, in what it "
      "sends: got {}. Give it one of these, or leave dgc out (power_sgd goes with any "
      "optimizer).",
      settings.rule.empty()    ? optimizer.name()
      : settings.rule == "SGD" ? "SGD without momentum"
                               : settings.rule);
  for (const auto& [name, value] : settings.formula->choices()) {
    ARGOSY_CHECK(name != "dampening" || value == "0",
                 kDgc,
                 "dgc knows no dampening: got SGD with dampening {}. Leave it out.",
                 value);
  }
  ARGOSY_CHECK(std::holds_alternative<std::monostate>(settings.grad_clip) ||
                   std::holds_alternative<optim::ClipGradByNorm>(settings.grad_clip),
               kDgc,
               "dgc clips each rank's gradients before it sends them, where nobody knows the norm "
               "of the average: expected ClipGradByNorm or none, got {}",
               std::holds_alternative<optim::ClipGradByValue>(settings.grad_clip)
                   ? "ClipGradByValue"
                   : "ClipGradByGlobalNorm");
  return settings;
}

/// Puts the largest of what a virtual rank has not sent into its message, and forgets them.
void put_largest(const at::Tensor& unsent,
                 const at::Tensor& momentum,
                 const at::Tensor& places,
                 const at::Tensor& values) {
  const at::Tensor largest = std::get<1>(
      at::topk(unsent.abs(), places.numel(), /*dim=*/0, /*largest=*/true, /*sorted=*/false));
  places.copy_(largest);
  values.copy_(unsent.index_select(0, largest));
  unsent.index_fill_(0, largest, 0);
  momentum.index_fill_(0, largest, 0);
}

/// Gradients that their parameters are without while it lives.
class HiddenGradients final {
 public:
  HiddenGradients() = default;
  ~HiddenGradients() {
    for (const auto& [parameter, gradient] : hidden_) {
      parameter.mutable_grad() = gradient;
    }
  }
  HiddenGradients(const HiddenGradients&) = delete;
  HiddenGradients& operator=(const HiddenGradients&) = delete;
  HiddenGradients(HiddenGradients&&) = delete;
  HiddenGradients& operator=(HiddenGradients&&) = delete;

  void add(const at::Tensor& parameter) {
    hidden_.emplace_back(parameter, parameter.grad());
    parameter.mutable_grad() = at::Tensor();
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> hidden_{};
};

}  // namespace

/// What a bucket brings: a message of places and values for each virtual rank, and the small
/// parameters.
struct DeepGradientCompression::Pass {
  struct Part {
    Kept* kept = nullptr;
    at::Tensor gradient{};  // the bucket's view, where the average goes
    int64_t offset = 0;     // in a message, or in `dense`
    int64_t sent = 0;       // elements; 0: all of them, in `dense`
  };
  std::vector<Part> parts{};
  int64_t dense_elements = 0;
  at::Tensor messages{};               // i32 [most of a process, …]: places, then values as bits
  std::vector<at::Tensor> received{};  // of each process
  traffic::LeafAverage dense{};
};

void DeepGradientCompression::check_optimizer(const optim::OptimizerImpl& optimizer) {
  (void)momentum_settings(optimizer);
}

DeepGradientCompression::DeepGradientCompression(const optim::OptimizerImpl& optimizer,
                                                 const comm::Group& group,
                                                 const DgcOptions& options)
    : options_(options),
      group_(group),
      deal_(traffic::one_each(group)),
      first_(optimizer.parameters().front().first) {
  options_.validate();
  const optim::FlatSettings settings = momentum_settings(optimizer);
  momentum_ = settings.numbers.momentum;
  nesterov_ = settings.numbers.variant;
  if (const auto* clip = std::get_if<optim::ClipGradByNorm>(&settings.grad_clip)) {
    clip_norm_ = clip->clip_norm;
  }
  for (size_t i = 0; i < optimizer.parameters().size(); ++i) {
    const auto& [name, parameter] = optimizer.parameters()[i];
    if (parameter.numel() >= options_.min_elements && parameter.scalar_type() == at::kFloat) {
      places_.emplace(parameter.unsafeGetTensorImpl(), kept_.size());
      kept_.push_back({.name = name, .parameter = parameter, .decay = settings.decays[i]});
    }
  }
  if (kept_.empty()) {
    log::warn(
        "[parallel.dgc] dgc sends all gradients of this model whole: none of its parameters has "
        "min_elements, {}, in f32. Set it lower, or train without dgc",
        options_.min_elements);
  } else if (group_.rank() == 0) {
    const auto stages = std::ssize(options_.sparsity);
    const int64_t ramp = (options_.rampup_step * (stages - 1) + stages - 1) / stages;
    log::info(
        "[parallel.dgc] {} of {} gradients send their largest elements from update {} on, a share "
        "of {:.4g}{}",
        kept_.size(),
        optimizer.parameters().size(),
        options_.rampup_begin_step + 1,
        1 - options_.sparsity.front(),
        stages == 1 ? ""
                    : fmt::format(", and of {:.4g} from update {} on",
                                  1 - options_.sparsity.back(),
                                  options_.rampup_begin_step + ramp + 1));
  }
}

DeepGradientCompression::Kept* DeepGradientCompression::find(const at::Tensor& parameter) {
  const auto found = places_.find(parameter.unsafeGetTensorImpl());
  return found == places_.end() ? nullptr : &kept_[found->second];
}

double DeepGradientCompression::sparsity_now() const {
  const auto stages = std::ssize(options_.sparsity);
  const int64_t done = std::max<int64_t>(steps_ - options_.rampup_begin_step, 0);
  const int64_t stage = std::min<int64_t>(done * stages / options_.rampup_step, stages - 1);
  return options_.sparsity[static_cast<size_t>(stage)];
}

int64_t DeepGradientCompression::sent_of(const Kept& kept) const {
  const auto elements = static_cast<double>(kept.parameter.numel());
  return std::max<int64_t>(std::llround(elements * (1 - sparsity_now())), 1);
}

void DeepGradientCompression::deal_to(const std::shared_ptr<const comm::LeafDeal>& deal) {
  const auto remembers = [](const Kept& kept) { return kept.unsent.defined(); };
  traffic::check_can_deal("dgc", *deal_, *deal, std::ranges::any_of(kept_, remembers));
  deal_ = deal;
}

/// Of this process.
int64_t DeepGradientCompression::leaves() const {
  return traffic::leaves_of(*deal_, group_.rank()).size();
}

BucketWork DeepGradientCompression::reduce(GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  if (steps_ < options_.rampup_begin_step || deal_->leaves() == 1) {
    return traffic::average_bucket(bucket, deal_);
  }
  const std::shared_ptr<Pass> pass = begin(bucket);
  std::vector<at::Tensor> dense;
  for (int64_t leaf = 0; leaf < leaves(); ++leaf) {
    dense.push_back(fill_leaf(*pass, bucket, leaf));
  }
  pass->dense =
      traffic::average_leaves(std::move(dense),
                              at::empty({pass->dense_elements}, bucket.buffer().options()),
                              deal_,
                              group_,
                              {.timeout = bucket.timeout(), .place = bucket.place()});
  if (pass->messages.size(1) == 0) {
    return {pass->dense.work, [this, pass] { finish(*pass); }};
  }
  for (int rank = 0; rank < group_.size(); ++rank) {
    pass->received.push_back(at::empty_like(pass->messages));
  }
  return {comm::all_gather_async(pass->received,
                                 pass->messages,
                                 group_,
                                 {.timeout = bucket.timeout(), .place = bucket.place()}),
          [this, pass] { finish(*pass); }};
}

/// Where each gradient lies. Processes with fewer virtual ranks than others send as many messages.
std::shared_ptr<DeepGradientCompression::Pass> DeepGradientCompression::begin(
    const GradBucket& bucket) {
  auto pass = std::make_shared<Pass>();
  const std::vector<at::Tensor> parameters = bucket.parameters();
  int64_t sent = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Kept* const kept = find(parameters[i]);
    const at::Tensor& gradient = bucket.gradients()[i];
    int64_t& end = kept == nullptr ? pass->dense_elements : sent;
    const int64_t size = kept == nullptr ? 0 : sent_of(*kept);
    pass->parts.push_back({.kept = kept, .gradient = gradient, .offset = end, .sent = size});
    end += kept == nullptr ? gradient.numel() : 2 * size;
    if (kept != nullptr) {
      begin_update(*kept);
    }
  }
  const int64_t most = traffic::leaves_of(*deal_, 0).size();
  pass->messages = at::zeros({most, sent}, bucket.buffer().options().dtype(at::kInt));
  return pass;
}

void DeepGradientCompression::begin_update(Kept& kept) const {
  ARGOSY_CHECK(!kept.is_reduced,
               kDgc,
               "the gradient of parameter {} was averaged a second time before optimizer.step(): "
               "dgc would add it to the momentum twice. Put no_sync() around all backward passes "
               "of an update but the last, and step with the optimizer that has dgc.",
               kept.name);
  kept.is_reduced = true;
  if (!kept.momentum.defined()) {
    const at::TensorOptions type = kept.parameter.options().requires_grad(false);
    kept.momentum = at::zeros({leaves(), kept.parameter.numel()}, type);
    kept.unsent = at::zeros_like(kept.momentum);
  }
}

/// Fills the message of a virtual rank, and returns its small gradients, flat.
at::Tensor DeepGradientCompression::fill_leaf(const Pass& pass,
                                              const GradBucket& bucket,
                                              int64_t leaf) {
  at::Tensor dense = at::empty({pass.dense_elements}, bucket.buffer().options());
  const std::vector<at::Tensor> gradients = bucket.gradients_of(static_cast<size_t>(leaf));
  const at::Tensor message = pass.messages.select(0, leaf);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Pass::Part& part = pass.parts[i];
    if (part.kept == nullptr) {
      dense.narrow(0, part.offset, gradients[i].numel())
          .view(gradients[i].sizes())
          .copy_(gradients[i]);
      continue;
    }
    gather_up(*part.kept, own_gradient(*part.kept, gradients[i]), leaf);
    put_largest(part.kept->unsent.select(0, leaf),
                part.kept->momentum.select(0, leaf),
                message.narrow(0, part.offset, part.sent),
                message.narrow(0, part.offset + part.sent, part.sent).view(at::kFloat));
  }
  return dense;
}

/// Clipped, and with weight decay.
at::Tensor DeepGradientCompression::own_gradient(const Kept& kept,
                                                 const at::Tensor& gradient) const {
  at::Tensor own = gradient.reshape({-1}).clone();
  if (clip_norm_ > 0) {
    const double limit = clip_norm_ / std::sqrt(static_cast<double>(deal_->leaves()));
    const double norm = own.norm().item<double>();
    own.mul_(limit / std::max(norm, limit));
  }
  if (kept.decay.coeff != 0) {
    const at::Tensor weights = kept.parameter.detach().reshape({-1});
    own.add_(kept.decay.kind == optim::WeightDecay::Kind::kL1 ? weights.sign() : weights,
             kept.decay.coeff);
  }
  return own;
}

/// The gradient of a virtual rank goes into its momentum, and that into what is to be sent.
void DeepGradientCompression::gather_up(const Kept& kept,
                                        const at::Tensor& gradient,
                                        int64_t leaf) const {
  const at::Tensor momentum = kept.momentum.select(0, leaf);
  const at::Tensor unsent = kept.unsent.select(0, leaf);
  if (nesterov_) {
    momentum.add_(gradient).mul_(momentum_);
    unsent.add_(momentum).add_(gradient);
  } else {
    momentum.mul_(momentum_).add_(gradient);
    unsent.add_(momentum);
  }
}

/// The average, added up in the order of the virtual ranks: the same bits on all of them.
void DeepGradientCompression::finish(const Pass& pass) const {
  const at::NoGradGuard no_grad;
  pass.dense.work.wait();
  for (const Pass::Part& part : pass.parts) {
    const at::Tensor& gradient = part.gradient;
    if (part.kept == nullptr) {
      gradient.copy_(
          pass.dense.result.narrow(0, part.offset, gradient.numel()).view(gradient.sizes()));
      continue;
    }
    const at::Tensor sum = at::zeros({gradient.numel()}, gradient.options());
    for (int rank = 0; rank < group_.size(); ++rank) {
      for (int64_t leaf = 0; leaf < traffic::leaves_of(*deal_, rank).size(); ++leaf) {
        const at::Tensor message = pass.received[static_cast<size_t>(rank)].select(0, leaf);
        const at::Tensor places = message.narrow(0, part.offset, part.sent).to(at::kLong);
        sum.index_add_(
            0, places, message.narrow(0, part.offset + part.sent, part.sent).view(at::kFloat));
      }
    }
    gradient.copy_(sum.div_(deal_->leaves()).view(gradient.sizes()));
  }
}

/// Of what dgc has averaged, whose momentum is in it already, the step is plain SGD.
void DeepGradientCompression::step(optim::OptimizerImpl& inner) {
  const at::NoGradGuard no_grad;
  {
    HiddenGradients hidden;  // the inner optimizer passes them by
    for (const Kept& kept : kept_) {
      if (kept.is_reduced) {
        hidden.add(kept.parameter);
      }
    }
    inner.step();
  }
  std::unordered_map<std::string, double> rates;
  for (const optim::GroupInfo& group : inner.groups()) {
    for (const std::string& name : group.names) {
      rates.emplace(name, group.lr);
    }
  }
  for (const Kept& kept : kept_) {
    const at::Tensor& gradient = kept.parameter.grad();
    if (kept.is_reduced && gradient.defined()) {
      kept.parameter.detach().sub_(gradient, rates.at(kept.name));
    }
  }
  drop_update();
  ++steps_;
}

void DeepGradientCompression::drop_update() {
  for (Kept& kept : kept_) {
    kept.is_reduced = false;
  }
}

void DeepGradientCompression::add_state(optim::OptimizerState& state) const {
  const auto named = [](const char* name) { return std::string(kDgcPrefix) + name; };
  traffic::entries_of(state, first_).set(named("steps"), traffic::count_tensor(steps_));
  for (const Kept& kept : kept_) {
    if (kept.unsent.defined()) {
      engine::StateDict& entries = traffic::entries_of(state, kept.name);
      entries.set(named("u"), traffic::rows_of_ranks(kept.momentum, deal_, group_));
      entries.set(named("v"), traffic::rows_of_ranks(kept.unsent, deal_, group_));
    }
  }
}

void DeepGradientCompression::take_state(optim::OptimizerState& state) {
  const auto taken = traffic::taken_out(state, kDgcPrefix);
  steps_ = 0;
  if (const auto found = taken.find(first_); found != taken.end()) {
    steps_ = traffic::count_in(found->second, "steps");
  }
  for (Kept& kept : kept_) {
    kept.momentum = kept.unsent = at::Tensor();
    kept.is_reduced = false;
    const auto found = taken.find(kept.name);
    if (found == taken.end() || !found->second.contains("v")) {
      continue;
    }
    const at::TensorOptions type = kept.parameter.options().requires_grad(false);
    const auto take = [&](const char* name) {
      at::Tensor rows = at::empty({leaves(), kept.parameter.numel()}, type);
      const std::string what = kept.name + "/" + kDgcPrefix + name;
      traffic::take_rows(rows, found->second.at(name), deal_, group_, what);
      return rows;
    };
    kept.momentum = take("u");
    kept.unsent = take("v");
  }
}

}  // namespace argosy::parallel
