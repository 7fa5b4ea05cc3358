#include "argosy/parallel/traffic/diloco.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/comm/collectives.h"
#include "argosy/parallel/traffic/delta_code.h"
#include "argosy/parallel/traffic/flat_values.h"
#include "argosy/parallel/traffic/leaf_average.h"
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
  if (group().rank() == 0) {
    log::info(
        "[parallel.diloco] ranks train apart from update 1 on: every {} updates they sum the ways "
        "of all weights, as numbers of {} bits, in {} fragment(s) with a delay of {}",
        options_.sync_every,
        options_.bits,
        options_.fragments,
        options_.fragment_sync_delay);
  }
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
      last_fragment_ = f;
    }
  }
}

/// Weights may be loaded after the optimizer was made.
void Diloco::before_step() {
  for (Fragment& fragment : fragments_) {
    if (!fragment.global.defined() && !fragment.weights.empty()) {
      fragment.global = traffic::flat_copy(fragment.weights);
    }
  }
}

/// The ways from the old weights end; the outer momentum stays, as the inner optimizer's does.
void Diloco::forget_weights() {
  for (Fragment& fragment : fragments_) {
    fragment.global = at::Tensor();
  }
  for (std::optional<Sum>& sum : under_way_) {
    sum.reset();
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
  std::vector<at::Tensor> deltas;
  for (int64_t leaf = 0; leaf < leaves(); ++leaf) {
    deltas.push_back(fragment.global - traffic::flat_copy(weights_of(fragment, leaf)));
  }
  if (options_.bits == 32) {
    traffic::LeafAverage all =
        traffic::average_leaves(std::move(deltas), fragment.global, deal(), sums_);
    sum.mean = std::move(all.result);
    sum.work = std::move(all.work);
  } else {
    start_in_few_bits(deltas, sum);
  }
  under_way_[place] = std::move(sum);
}

std::vector<at::Tensor> Diloco::weights_of(const Fragment& fragment, int64_t leaf) const {
  std::vector<at::Tensor> own;
  for (const size_t place : fragment.places) {
    own.push_back(weights(leaf)[place]);
  }
  return own;
}

/// Processes with fewer virtual ranks than others send as many codes.
void Diloco::start_in_few_bits(const std::vector<at::Tensor>& deltas, Sum& sum) const {
  const auto bits = static_cast<int>(options_.bits);
  const int64_t most = traffic::leaves_of(*deal(), 0).size();
  sum.codes = at::zeros({most, traffic::code_bytes(deltas.front().numel(), bits)}, at::kByte);
  for (size_t leaf = 0; leaf < deltas.size(); ++leaf) {
    sum.codes.select(0, static_cast<int64_t>(leaf))
        .copy_(traffic::encode_delta(deltas[leaf].to(at::kFloat), bits));
  }
  for (int rank = 0; rank < sums_.size(); ++rank) {
    sum.received.push_back(at::empty_like(sum.codes));
  }
  sum.work = comm::all_gather_async(sum.received, sum.codes, sums_);
}

/// Codes are added in the order of the virtual ranks: the same bits on all of them.
const at::Tensor& Diloco::mean_of(size_t place) const {
  Sum& sum = *under_way_[place];
  if (sum.is_done) {
    return sum.mean;
  }
  sum.work.wait();
  if (options_.bits != 32) {
    const at::Tensor& global = fragments_[place].global;
    const at::Tensor mean = at::zeros({global.numel()}, at::kFloat);
    for (int rank = 0; rank < sums_.size(); ++rank) {
      for (int64_t leaf = 0; leaf < traffic::leaves_of(*deal(), rank).size(); ++leaf) {
        traffic::add_decoded(sum.received[static_cast<size_t>(rank)].select(0, leaf),
                             static_cast<int>(options_.bits),
                             mean);
      }
    }
    sum.mean = mean.div_(deal()->leaves()).to(global.options());
  }
  sum.is_done = true;
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
  for (int64_t leaf = 0; leaf < leaves(); ++leaf) {
    const std::vector<at::Tensor> own = weights_of(fragment, leaf);
    traffic::copy_back(alpha == 0
                           ? fragment.global
                           : traffic::flat_copy(own).mul_(alpha).add_(fragment.global, 1 - alpha),
                       own);
  }
  under_way_[place].reset();
  if (place == last_fragment_) {
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
    if (fragment.global.defined()) {
      add("global", fragment.global);
    }
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

std::function<void()> Diloco::read_shared_state(optim::OptimizerState& state) {
  const Saved saved = traffic::taken_out(state, prefix());
  check_fragments(saved);
  std::vector<Fragment> fragments = fragments_;
  std::vector<std::optional<Sum>> sums;
  for (Fragment& fragment : fragments) {
    fragment.global = flat_in(saved, fragment, "global");
    fragment.momentum = flat_in(saved, fragment, "momentum");
    sums.push_back(sum_in(saved, fragment));
  }
  return [this, fragments, sums] {
    fragments_ = fragments;
    under_way_ = sums;
    set_apart(true);
  };
}

void Diloco::check_fragments(const Saved& saved) const {
  std::vector<size_t> all(parameters().size());
  std::iota(all.begin(), all.end(), 0);
  static_cast<void>(entries_in(saved, all, "global"));
  const auto first = saved.find(parameters().front().first);
  if (first == saved.end() || !first->second.contains("fragments")) {
    return;
  }
  const int64_t fragments = traffic::count_in(first->second, "fragments");
  if (fragments != options_.fragments) {
    throw CheckpointError(
        "parallel.diloco",
        fmt::format("fragments: expected {}, the checkpoint has {}. Resume with as many "
                    "fragments as it was saved with, or begin a new training with its weights",
                    options_.fragments,
                    fragments),
        {.key = prefix() + "fragments"});
  }
}

/// The entries of these parameters; none if no parameter has one, which is no error.
std::vector<const at::Tensor*> Diloco::entries_in(const Saved& saved,
                                                  const std::vector<size_t>& places,
                                                  const std::string& name) const {
  std::vector<const at::Tensor*> entries;
  for (const size_t place : places) {
    const auto found = saved.find(parameters()[place].first);
    entries.push_back(found == saved.end() ? nullptr : found->second.find(name));
  }
  const auto is_missing = [](const at::Tensor* entry) { return entry == nullptr; };
  const auto missing = std::ranges::find_if(entries, is_missing);
  if (missing == entries.end()) {
    return entries;
  }
  if (std::ranges::all_of(entries, is_missing)) {
    return {};
  }
  const size_t place = places[static_cast<size_t>(missing - entries.begin())];
  const std::string what = parameters()[place].first + "/" + prefix() + name;
  throw CheckpointError(
      "parallel.diloco",
      fmt::format("{}: expected an entry, as other parameters have one, the checkpoint has none. "
                  "It is of another model: resume one of this model, or begin a new training",
                  what),
      {.key = what});
}

/// Undefined where nothing was saved.
at::Tensor Diloco::flat_in(const Saved& saved,
                           const Fragment& fragment,
                           const std::string& name) const {
  const std::vector<const at::Tensor*> entries = entries_in(saved, fragment.places, name);
  if (entries.empty()) {
    return {};
  }
  at::Tensor flat = traffic::flat_copy(fragment.weights);
  const std::vector<at::Tensor> parts = traffic::parts_like(flat, fragment.weights);
  for (size_t i = 0; i < parts.size(); ++i) {
    traffic::take_whole(
        parts[i], *entries[i], parameters()[fragment.places[i]].first + "/" + prefix() + name);
  }
  return flat;
}

std::optional<Diloco::Sum> Diloco::sum_in(const Saved& saved, const Fragment& fragment) const {
  const at::Tensor delta = flat_in(saved, fragment, "delta");
  if (!delta.defined()) {
    return std::nullopt;
  }
  const std::string& first = parameters()[fragment.places.front()].first;
  const at::Tensor* const due = saved.at(first).find("due");
  if (due == nullptr || !fragment.global.defined()) {
    throw CheckpointError("parallel.diloco",
                          fmt::format("{}/{}delta: expected a sum under way with its step and the "
                                      "global weights, the checkpoint lacks one of them. It is no "
                                      "state of diloco: begin a new training with its weights",
                                      first,
                                      prefix()),
                          {.key = first + "/" + prefix() + "delta"});
  }
  return Sum{.mean = delta, .is_done = true, .due = due->item<int64_t>()};
}

}  // namespace argosy::parallel
