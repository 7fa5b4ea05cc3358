#include "argosy/parallel/traffic/diloco.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"
#include "argosy/parallel/traffic/delta_code.h"
#include "argosy/parallel/traffic/flat_values.h"
#include "argosy/parallel/traffic/rank_state.h"

namespace argosy::parallel {
namespace {

const std::shared_ptr<optim::OptimizerImpl>& checked_steps(
    const std::shared_ptr<optim::OptimizerImpl>& inner) {
  ARGOSY_CHECK(
      inner->sharded() == nullptr && !inner->gathers_gradients(),
      "parallel.diloco",
      "diloco trains each rank by whole steps of its own: got an optimizer whose {}. Leave "
      "that out, or diloco.",
      inner->gathers_gradients() ? "gradients are gathered over several passes"
                                 : "state ranks divide");
  return inner;
}

comm::Group group_of_sums(const comm::Group& group) {
  std::vector<int> ranks(static_cast<size_t>(group.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return group.new_group(ranks, {.label = "diloco"});
}

}  // namespace

Diloco::Diloco(const std::shared_ptr<ddp::Core>& model,
               const std::shared_ptr<optim::OptimizerImpl>& inner,
               const DilocoOptions& options)
    : LocalSteps(model, checked_steps(inner), "diloco"), options_(options) {
  options_.validate();
  deal_fragments();
  set_apart(true);
  sums_ = group_of_sums(group());
}

/// Parts of neighbouring weights. A fragment may stay empty where there are few.
void Diloco::deal_fragments() {
  const auto count = static_cast<size_t>(options_.fragments);
  fragments_.resize(count);
  under_way_.resize(count);
  int64_t all = 0, before = 0;
  for (const at::Tensor& weight : weights()) {
    all += weight.numel();
  }
  for (size_t i = 0; i < weights().size(); ++i) {
    const int64_t middle = before + weights()[i].numel() / 2;
    const auto place = std::min<int64_t>(middle * options_.fragments / std::max<int64_t>(all, 1),
                                         options_.fragments - 1);
    fragments_[static_cast<size_t>(place)].places.push_back(i);
    before += weights()[i].numel();
  }
  for (size_t f = 0; f < count; ++f) {
    Fragment& fragment = fragments_[f];
    fragment.turn = static_cast<int64_t>(f + 1) * options_.sync_every / options_.fragments %
                    options_.sync_every;
    for (const size_t place : fragment.places) {
      fragment.weights.push_back(weights()[place]);
    }
    if (!fragment.weights.empty()) {
      fragment.global = traffic::flat_copy(fragment.weights);
    }
  }
}

void Diloco::after_step() {
  for (size_t f = 0; f < fragments_.size(); ++f) {
    if (under_way_[f].has_value() && under_way_[f]->due <= steps()) {
      finish(f);
    }
  }
  for (size_t f = 0; f < fragments_.size(); ++f) {
    if (steps() % options_.sync_every == fragments_[f].turn && !fragments_[f].weights.empty()) {
      start(f);
      if (options_.fragment_sync_delay == 0) {
        finish(f);
      }
    }
  }
}

void Diloco::start(size_t place) {
  const Fragment& fragment = fragments_[place];
  Sum sum{.due = steps() + options_.fragment_sync_delay};
  const at::Tensor delta = fragment.global - traffic::flat_copy(fragment.weights);
  if (options_.bits == 32) {
    sum.mean = delta;
    sum.work = comm::all_reduce_async(delta, sums_, {.op = comm::ReduceOp::kAvg});
  } else {
    sum.code = traffic::encode_delta(delta.to(at::kFloat), static_cast<int>(options_.bits));
    for (int rank = 0; rank < sums_.size(); ++rank) {
      sum.received.push_back(at::empty_like(sum.code));
    }
    sum.work = comm::all_gather_async(sum.received, sum.code, sums_);
  }
  under_way_[place] = std::move(sum);
}

/// Codes are added in the order of the ranks: the same bits on all of them.
const at::Tensor& Diloco::mean_of(size_t place) const {
  Sum& sum = *under_way_[place];
  if (std::exchange(sum.is_done, true)) {
    return sum.mean;
  }
  sum.work.wait();
  if (options_.bits == 32) {
    return sum.mean;
  }
  const at::Tensor& global = fragments_[place].global;
  const at::Tensor mean = at::zeros({global.numel()}, at::kFloat);
  for (const at::Tensor& code : sum.received) {
    traffic::add_decoded(code, static_cast<int>(options_.bits), mean);
  }
  sum.mean = mean.div_(sums_.size()).to(global.options());
  return sum.mean;
}

void Diloco::finish(size_t place) {
  const at::NoGradGuard no_grad;
  Fragment& fragment = fragments_[place];
  at::Tensor delta = mean_of(place);
  if (options_.outer_momentum > 0) {
    if (!fragment.momentum.defined()) {
      fragment.momentum = at::zeros_like(delta);
    }
    fragment.momentum.mul_(options_.outer_momentum).add_(delta);
    delta = options_.outer_nesterov ? delta + fragment.momentum * options_.outer_momentum
                                    : fragment.momentum;
  }
  fragment.global.sub_(delta, options_.outer_lr);
  const double alpha = options_.fragment_update_alpha;
  traffic::copy_back(
      alpha == 0
          ? fragment.global
          : traffic::flat_copy(fragment.weights).mul_(alpha).add_(fragment.global, 1 - alpha),
      fragment.weights);
  under_way_[place].reset();
  if (place + 1 == fragments_.size()) {
    sync_buffers();
  }
}

void Diloco::add_shared_state(optim::OptimizerState& state) const {
  for (size_t f = 0; f < fragments_.size(); ++f) {
    const Fragment& fragment = fragments_[f];
    if (fragment.weights.empty()) {
      continue;
    }
    const auto add = [&](const char* name, const at::Tensor& flat) {
      const std::vector<at::Tensor> parts = traffic::parts_like(flat, fragment.weights);
      for (size_t i = 0; i < parts.size(); ++i) {
        traffic::entries_of(state, parameters()[fragment.places[i]].first)
            .set(prefix() + name, parts[i]);
      }
    };
    add("global", fragment.global);
    if (fragment.momentum.defined()) {
      add("momentum", fragment.momentum);
    }
    if (under_way_[f].has_value()) {
      add("delta", mean_of(f));
      traffic::entries_of(state, parameters()[fragment.places.front()].first)
          .set(prefix() + "due", traffic::count_tensor(under_way_[f]->due));
    }
  }
  traffic::entries_of(state, parameters().front().first)
      .set(prefix() + "fragments", traffic::count_tensor(options_.fragments));
}

void Diloco::take_shared_state(optim::OptimizerState& state) {
  const auto taken = traffic::taken_out(state, prefix());
  if (const auto first = taken.find(parameters().front().first); first != taken.end()) {
    const int64_t saved = traffic::count_in(first->second, "fragments");
    if (saved != options_.fragments) {
      throw CheckpointError(
          "parallel.diloco",
          fmt::format("fragments: expected {}, the checkpoint has {}. Resume with as many "
                      "fragments as it was saved with, or begin a new training with its weights",
                      options_.fragments,
                      saved),
          {.key = prefix() + "fragments"});
    }
  }
  for (size_t f = 0; f < fragments_.size(); ++f) {
    std::vector<const engine::StateDict*> entries;
    for (const size_t place : fragments_[f].places) {
      const auto found = taken.find(parameters()[place].first);
      entries.push_back(found == taken.end() ? nullptr : &found->second);
    }
    load_fragment(f, entries);
  }
  set_apart(true);
}

/// Without a state it begins at the weights that there are.
void Diloco::load_fragment(size_t place, const std::vector<const engine::StateDict*>& saved) {
  Fragment& fragment = fragments_[place];
  under_way_[place].reset();
  fragment.momentum = at::Tensor();
  if (fragment.weights.empty()) {
    return;
  }
  fragment.global = traffic::flat_copy(fragment.weights);
  const auto take = [&](const char* name) -> at::Tensor {
    if (saved.front() == nullptr || !saved.front()->contains(name)) {
      return {};
    }
    const at::Tensor flat = at::empty_like(fragment.global);
    const std::vector<at::Tensor> parts = traffic::parts_like(flat, fragment.weights);
    for (size_t i = 0; i < parts.size(); ++i) {
      traffic::take_whole(parts[i],
                          saved[i]->at(name),
                          parameters()[fragment.places[i]].first + "/" + prefix() + name);
    }
    return flat;
  };
  if (const at::Tensor global = take("global"); global.defined()) {
    fragment.global = global;
  }
  fragment.momentum = take("momentum");
  if (const at::Tensor delta = take("delta"); delta.defined()) {
    under_way_[place] =
        Sum{.mean = delta, .is_done = true, .due = traffic::count_in(*saved.front(), "due")};
  }
}

}  // namespace argosy::parallel
