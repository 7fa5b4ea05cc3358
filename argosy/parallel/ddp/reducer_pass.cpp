// One backward pass, from its first sign to the averaged gradients. The states and who moves them
// are drawn in docs/design/ddp.md.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/hash.h>
#include <torch/csrc/autograd/autograd.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/pass_token.h"
#include "argosy/parallel/ddp/reducer.h"

namespace argosy::parallel::ddp {
namespace {

/// Other than before if the parameter has changed: a digest of some of its elements, for
/// torch::optim leaves its version alone. Of a device, which would have to be waited for, the
/// version.
uint64_t sample_of(const at::Tensor& parameter) {
  constexpr int64_t kElements = 4;
  if (!parameter.device().is_cpu() || !parameter.is_non_overlapping_and_dense()) {
    return static_cast<uint64_t>(parameter._version());
  }
  if (parameter.numel() == 0) {
    return 0;
  }
  const auto* bytes = static_cast<const std::byte*>(parameter.data_ptr());
  const auto size = std::min(sizeof(uint64_t), static_cast<size_t>(parameter.element_size()));
  uint64_t digest = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    uint64_t element = 0;
    const int64_t at = parameter.numel() * i / kElements;  // dense, in whatever order
    std::memcpy(&element, bytes + at * static_cast<int64_t>(parameter.element_size()), size);
    digest = c10::hash_combine(digest, element);
  }
  return digest;
}

}  // namespace

void Reducer::open_pass() {
  if (open_ || !sync_ || failure_.has_value()) {
    return;
  }
  auto token = std::make_shared<PassToken>(weak_from_this());
  engine::at_end_of_backward([token] { token->end(); });
  open_ = true;
  pass_began_ = Clock::now();
}

void Reducer::start_pass() {
  check_steps_complete();
  started_ = true;
  count_pass();
  if (uneven_ != nullptr) {
    uneven_->announce_backward();
  }
  for (size_t i = 0; i < table_.size(); ++i) {  // known now, so that no bucket has to wait for it
    if (frozen(i)) {
      contribute_frozen(i);
      mark_ready(i);
    } else if (!reachable_.empty() && reachable_[i] == 0) {
      contribute_unused(i);
      mark_ready(i);
    }
  }
}

/// What changes parameters between two passes is an update, whoever's optimizer makes it.
void Reducer::count_pass() {
  uint64_t now = 0, which_frozen = 0;
  for (size_t i = 0; i < table_.size(); ++i) {
    now = c10::hash_combine(now, sample_of(table_.tensors()[i]));
    which_frozen = frozen(i) ? c10::hash_combine(which_frozen, i + 1) : which_frozen;
  }
  if (place_.update == 0 || now != sample_at_pass_) {
    place_ = {.update = place_.update + 1};
  }
  ++place_.pass;
  place_.frozen = static_cast<uint32_t>(which_frozen ^ which_frozen >> 32U);
  sample_at_pass_ = now;
}

/// While ranks have uneven inputs they count differently.
comm::ReduceOptions Reducer::reduction(comm::ReduceOp op) const {
  return {.op = op,
          .timeout = options_.timeout,
          .place = uneven_ == nullptr ? place_ : transport::TrainingPlace{}};
}

/// All ranks do this at the same place, and count from there.
void Reducer::set_uneven_inputs(UnevenInputs* uneven) {
  uneven_ = uneven;
  place_ = {};
}

void Reducer::on_gradient(size_t index) {
  if (!sync_ && !open_) {
    if (options_.find_unused_parameters) {
      used_[index] = 1;
    }
    return;
  }
  try {
    on_gradient_of_pass(index);
  } catch (const std::exception& error) {
    fail(error.what());
    throw;
  }
}

void Reducer::on_gradient_of_pass(size_t index) {
  ARGOSY_CHECK(!at::GradMode::is_enabled(),
               kWhere,
               "backward(create_graph = true) reached parameter {}: averaging is not "
               "differentiable. Take higher derivatives with torch::autograd::grad, which leaves "
               "parameters alone, or inside no_sync().",
               table_.name(index));
  ARGOSY_CHECK(
      !failure_.has_value(),
      kWhere,
      "backward was called again after one that failed: {}. Let this wrapper go and wrap the "
      "module again, on all ranks.",
      *failure_);
  open_pass();
  if (!started_) {
    start_pass();
  }
  if (ready_[index] != 0) {
    accept_late(index);
    return;
  }
  if (bring_into_bucket(index)) {
    if (options_.find_unused_parameters) {
      used_[index] = 1;
    }
  } else {
    contribute_unused(index);
  }
  mark_ready(index);
}

void Reducer::accept_late(size_t index) {
  const bool was_unused = std::any_of(
      unused_.begin(), unused_.end(), [&](const Unused& each) { return each.index == index; });
  ARGOSY_CHECK(places_[index].bucket >= next_,
               kWhere,
               "parameter {} got {} after its bucket was sent. {}",
               table_.name(index),
               was_unused ? "a gradient" : "a second gradient in the same backward pass",
               was_unused ? "It was held to be unused, for the outputs of the last forward do not "
                            "reach it. Run the backward of each forward before the next forward."
                          : "Nested backward passes (activation checkpointing) must not share "
                            "parameters.");
  std::erase_if(unused_, [&](const Unused& each) { return each.index == index; });
  if (bring_into_bucket(index) && options_.find_unused_parameters) {
    used_[index] = 1;
  }
}

/// False when autograd left no gradient.
bool Reducer::bring_into_bucket(size_t index) {
  at::Tensor& grad = table_.tensors()[index].mutable_grad();
  const at::Tensor& view = view_of(index);
  if (!grad.defined()) {
    return false;
  }
  if (same_memory(grad, view)) {
    return true;
  }
  ARGOSY_CHECK(grad.layout() == at::kStrided,
               kWhere,
               "parameter {} has a sparse gradient, which cannot be averaged. Build the embedding "
               "with .sparse(false).",
               table_.name(index));
  ARGOSY_CHECK(grad.sizes() == view.sizes(),
               kWhere,
               "the gradient of parameter {} was replaced by one of another shape: expected {}, "
               "got {}",
               table_.name(index),
               text::shape(view.sizes()),
               text::shape(grad.sizes()));
  view.copy_(grad);
  grad = view;
  ++stats_.copied_gradients;
  return true;
}

/// A parameter that this pass did not reach takes part with what its gradient held before; where no
/// rank reached it, settle_unused() puts that back.
void Reducer::contribute_unused(size_t index) {
  if (options_.find_unused_parameters && used_[index] != 0 && bring_into_bucket(index)) {
    return;  // gathered under no_sync
  }
  const at::Tensor& grad = table_.tensors()[index].grad();
  const at::Tensor& view = view_of(index);
  if (!grad.defined()) {
    view.zero_();
    unused_.push_back({.index = index});
  } else if (same_memory(grad, view)) {
    unused_.push_back({.index = index, .kept = view.clone()});
  } else {
    view.copy_(grad);
    unused_.push_back({.index = index});
  }
}

bool Reducer::frozen(size_t index) const {
  return !table_.tensors()[index].requires_grad();
}

/// Frozen after the model was wrapped, for this pass at least: its gradient stays as it is.
void Reducer::contribute_frozen(size_t index) {
  const at::Tensor& grad = table_.tensors()[index].grad();
  const at::Tensor& view = view_of(index);
  Unused kept{.index = index, .frozen = true};
  if (grad.defined() && same_memory(grad, view)) {
    kept.kept = view.clone();
  }
  unused_.push_back(std::move(kept));
  view.zero_();
}

void Reducer::mark_ready(size_t index) {
  ready_[index] = 1;
  ++ready_count_;
  if (stats_.reduced_passes == 0 && !options_.find_unused_parameters) {
    arrival_.push_back(static_cast<int64_t>(index));
  }
  --missing_[places_[index].bucket];
  while (next_ < buckets_.size() && missing_[next_] == 0) {
    const size_t bucket = next_++;
    send(bucket);
  }
}

void Reducer::send(size_t index) {
  stats_.buckets[index].ready_at_start = ready_count_;
  if (index == 0) {
    first_sent_ = Clock::now();
  }
  GradBucket bucket(
      buckets_[index], index, buckets_.size(), table_.tensors(), group_, options_.timeout);
  if (hook_ != nullptr) {
    sent_[index] = hook_(bucket);
    return;
  }
  sent_[index] =
      comm::all_reduce_async(buckets_[index].flat, group_, reduction(comm::ReduceOp::kAvg));
  update(index);
}

/// In the group's thread, when the reductions so far are done.
void Reducer::update(size_t index) {
  if (early_.empty()) {
    return;
  }
  std::vector<at::Tensor> parameters;
  for (const size_t parameter : buckets_[index].parameters) {
    if (!frozen(parameter)) {
      parameters.push_back(table_.tensors()[parameter]);
    }
  }
  updates_.push_back(comm::run_in_order(
      // Keeps no optimizer: with the last one the group might go, in its own thread.
      [optimizers = early_, parameters = std::move(parameters), gate = updates_allowed_] {
        const std::lock_guard lock(gate->mutex);
        for (const std::weak_ptr<optim::OptimizerImpl>& each : optimizers) {
          const std::shared_ptr<optim::OptimizerImpl> optimizer = each.lock();
          if (gate->open && optimizer != nullptr) {
            optimizer->step_early(parameters);
          }
        }
      },
      group_));
}

void Reducer::check_steps_complete() const {
  for (const std::weak_ptr<optim::OptimizerImpl>& each : early_) {
    const std::shared_ptr<optim::OptimizerImpl> optimizer = each.lock();
    ARGOSY_CHECK(optimizer == nullptr || !optimizer->stepped_early(),
                 kWhere,
                 "backward() again before optimizer.step(): with overlap_update each averaged "
                 "backward is followed by a step. Gather gradients of several passes under "
                 "no_sync().");
  }
}

void Reducer::send_used_map() {
  std::copy(used_.begin(), used_.end(), used_map_.data_ptr<uint8_t>());
  used_map_work_ = comm::all_reduce_async(used_map_, group_, reduction(comm::ReduceOp::kMax));
}

// --- The end -----------------------------------------------------------------------------------

void Reducer::end_pass() {
  open_ = false;
  if (!started_) {
    return;  // autograd::grad(), or a loss that depends on no parameter
  }
  at::NoGradGuard no_grad;
  try {
    finish_pass();
  } catch (const std::exception& error) {
    fail(error.what());
    reset_pass();
    throw;
  }
}

void Reducer::abort_pass() noexcept {
  open_ = false;
  if (started_) {
    fail("backward() ended by an exception before all gradients were averaged");
    reset_pass();
  }
}

void Reducer::finish_pass() {
  const std::vector<size_t> missing = not_ready();
  ARGOSY_CHECK(
      missing.empty() || options_.find_unused_parameters,
      kWhere,
      "{} of {} parameters got no gradient in this backward pass: {}. Gradients cannot be "
      "averaged without them. Let every parameter contribute to the loss, freeze it "
      "(requires_grad_(false)) before wrapping, or pass {{.find_unused_parameters = true}}.",
      missing.size(),
      table_.size(),
      table_.names(missing));
  for (size_t index : missing) {
    contribute_unused(index);
    mark_ready(index);
  }
  if (options_.find_unused_parameters) {
    send_used_map();
  }
  stats_.backward = Clock::now() - pass_began_;
  wait_for_buckets();
  settle_unused();
  ++stats_.reduced_passes;
  std::fill(used_.begin(), used_.end(), uint8_t{0});
  open_forwards_ = std::max<int64_t>(0, open_forwards_ - 1);
  if (open_forwards_ == 0) {
    reachable_.clear();
  }
  reset_pass();
}

std::vector<size_t> Reducer::not_ready() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < ready_.size() && ready_count_ < ready_.size(); ++i) {
    if (ready_[i] == 0) {
      out.push_back(i);
    }
  }
  return out;
}

void Reducer::wait_for_buckets() {
  wait_began_ = Clock::now();
  const int divisor = uneven_ != nullptr ? uneven_->divisor() : group_.size();
  for (size_t b = 0; b < buckets_.size(); ++b) {
    sent_[b].work.wait();
    if (sent_[b].finish) {
      sent_[b].finish();
    }
    if (divisor != group_.size()) {
      // From an average, not from the sum: that may exceed the range of a 16-bit float.
      buckets_[b].flat.mul_(static_cast<double>(group_.size()) / divisor);
    }
  }
  for (const comm::Work& each : updates_) {
    each.wait();
  }
  if (options_.find_unused_parameters) {
    used_map_work_.wait();
  }
  wait_ended_ = Clock::now();
  stats_.communication = wait_ended_ - first_sent_;
  stats_.exposed = wait_ended_ - wait_began_;
}

void Reducer::settle_unused() {
  stats_.unused.clear();
  for (Unused& each : unused_) {
    const bool used_somewhere =
        !options_.find_unused_parameters ||
        used_map_.data_ptr<uint8_t>()[static_cast<ptrdiff_t>(each.index)] != 0;
    if (!each.frozen) {
      stats_.unused.push_back(table_.name(each.index));
    }
    if (used_somewhere && !each.frozen) {
      table_.tensors()[each.index].mutable_grad() = view_of(each.index);
    } else if (each.kept.defined()) {
      view_of(each.index).copy_(each.kept);
    }
  }
}

void Reducer::shadow_backward() {
  at::NoGradGuard no_grad;
  try {
    started_ = true;
    for (size_t b = 0; b < buckets_.size(); ++b) {
      buckets_[b].flat.zero_();
      send(b);
    }
    if (options_.find_unused_parameters) {
      std::fill(used_.begin(), used_.end(), uint8_t{0});
      send_used_map();
    }
    wait_for_buckets();
    ++stats_.reduced_passes;
    reset_pass();
  } catch (const std::exception& error) {
    fail(error.what());
    reset_pass();
    throw;
  }
}

void Reducer::reset_pass() noexcept {
  started_ = false;
  std::fill(ready_.begin(), ready_.end(), uint8_t{0});
  for (size_t b = 0; b < buckets_.size(); ++b) {
    missing_[b] = buckets_[b].parameters.size();
    sent_[b] = {};
  }
  ready_count_ = 0;
  next_ = 0;
  unused_.clear();
  updates_.clear();
}

void Reducer::fail(const std::string& why) noexcept {
  {
    const std::lock_guard lock(updates_allowed_->mutex);  // one that runs comes to its end
    updates_allowed_->open = false;
  }
  for (const std::weak_ptr<optim::OptimizerImpl>& each : early_) {
    if (const std::shared_ptr<optim::OptimizerImpl> optimizer = each.lock()) {
      optimizer->abandon_step();  // other ranks' updates may still be under way
    }
  }
  if (!failure_.has_value()) {
    failure_ = why;
  }
}

}  // namespace argosy::parallel::ddp
