#include "argosy/parallel/ddp/reducer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/graph.h"

namespace argosy::parallel::ddp {
Reducer::Reducer(const ParameterTable& table, const comm::Group& group, const DdpOptions& options)
    : table_(table), group_(group), options_(options), ready_(table.size()) {
  std::vector<size_t> order(table.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});  // backward meets the last layers first
  use_buckets(
      plan_buckets(table.tensors(),
                   order,
                   {.first_bytes = options.first_bucket_bytes, .bytes = options.bucket_cap_bytes}));
  if (options.find_unused_parameters) {
    used_.resize(table.size());
    unused_.reserve(table.size());
    used_map_ = at::zeros({static_cast<int64_t>(table.size())}, at::kByte);
  } else {
    arrival_.reserve(table.size());
  }
}

Reducer::~Reducer() = default;

std::shared_ptr<Reducer> Reducer::create(const ParameterTable& table,
                                         const comm::Group& group,
                                         const DdpOptions& options) {
  std::shared_ptr<Reducer> reducer(new Reducer(table, group, options));
  reducer->install_hooks();
  return reducer;
}

void Reducer::install_hooks() {
  hooks_.reserve(table_.size());
  for (size_t i = 0; i < table_.size(); ++i) {
    hooks_.push_back(engine::after_grad(table_.tensors()[i], [this, i] { on_gradient(i); }));
  }
}

void Reducer::use_buckets(const BucketPlan& plan) {
  const std::shared_ptr<SharedPart> part =
      options_.shared_memory
          ? SharedPart::create(aligned_bytes(table_.tensors()), group_, options_.timeout)
          : nullptr;
  buckets_ =
      make_buckets(plan, table_.tensors(), part != nullptr ? part->allocate() : ordinary_memory());
  plan_ = plan;
  places_.assign(table_.size(), {});
  stats_.buckets.clear();
  for (size_t b = 0; b < buckets_.size(); ++b) {
    DdpBucketStats bucket_stats{.bytes = static_cast<int64_t>(buckets_[b].flat.nbytes())};
    for (size_t slot = 0; slot < buckets_[b].parameters.size(); ++slot) {
      places_[buckets_[b].parameters[slot]] = {b, slot};
      bucket_stats.parameters.push_back(table_.name(buckets_[b].parameters[slot]));
    }
    stats_.buckets.push_back(std::move(bucket_stats));
  }
  sent_.resize(buckets_.size());
  missing_.resize(buckets_.size());
  reset_pass();
}

at::Tensor& Reducer::view_of(size_t index) {
  return buckets_[places_[index].bucket].views[places_[index].slot];
}

void Reducer::check_ready_for_forward() const {
  ARGOSY_CHECK(
      !failure_.has_value(),
      kWhere,
      "cannot go on after a backward pass that failed, for gradients may differ between "
      "ranks. The cause was: {}. Let this wrapper go and wrap the module again, on all ranks.",
      *failure_);
  ARGOSY_CHECK(!started_,
               kWhere,
               "forward was called while a backward pass of the same wrapper is under way. Call "
               "the inner module (module()) for a nested forward.");
}

void Reducer::after_forward(std::span<const at::Tensor> outputs, bool sync) {
  sync_ = sync;
  const auto trains = [](const at::Tensor& parameter) { return parameter.requires_grad(); };
  if (std::ranges::none_of(table_.tensors(), trains)) {
    return;  // all are frozen: a discriminator while its generator learns
  }
  if (options_.find_unused_parameters) {
    reachable_.resize(table_.size());
    mark_reachable(outputs, table_.tensors(), reachable_);
    open_forwards_ += sync ? 1 : 0;  // what was gathered under no_sync goes with the next pass
  }
  if (!sync) {
    return;
  }
  for (const at::Tensor& output : outputs) {
    // The first node of a backward() tells us that it runs, and belongs to the outermost one where
    // backward passes are nested (activation checkpointing). A leaf would keep the hook for ever.
    if (output.requires_grad() && !output.is_leaf()) {
      output.register_hook([weak = weak_from_this()](const at::Tensor&) {
        if (auto reducer = weak.lock()) {
          reducer->open_pass();
        }
      });
    }
  }
}

void Reducer::set_comm_hook(CommHook hook, std::string name) {
  ARGOSY_CHECK(hook != nullptr, kWhere, "register_comm_hook: the hook is empty");
  ARGOSY_CHECK(hook_ == nullptr,
               kWhere,
               "register_comm_hook can be called once only; \"{}\" is registered",
               hook_name_);
  ARGOSY_CHECK(!started_, kWhere, "register_comm_hook was called during a backward pass");
  ARGOSY_CHECK(early_.empty(),
               kWhere,
               "register_comm_hook cannot be used with overlap_update, whose updates follow the "
               "reduction itself");
  hook_ = std::move(hook);
  hook_name_ = std::move(name);
}

void Reducer::update_early(const std::shared_ptr<optim::OptimizerImpl>& optimizer) {
  ARGOSY_CHECK(optimizer->can_step_early(),
               kWhere,
               "overlap_update cannot be used with this optimizer: clipping by norms needs all "
               "gradients before the first update. Leave out grad_clip or overlap_update.");
  ARGOSY_CHECK(table_.device().is_cpu(),
               kWhere,
               "overlap_update is for parameters on the CPU, these are on {}. Leave it out.",
               table_.device().str());
  ARGOSY_CHECK(
      !options_.find_unused_parameters,
      kWhere,
      "overlap_update and find_unused_parameters exclude each other: which gradients count "
      "is known at the end of backward only");
  ARGOSY_CHECK(hook_ == nullptr,
               kWhere,
               "overlap_update cannot be used with the communication hook \"{}\", which may finish "
               "a bucket after its reduction",
               hook_name_);
  early_.push_back(optimizer);
}

void Reducer::update_late(const optim::OptimizerImpl& optimizer) {
  std::erase_if(early_, [&](const std::weak_ptr<optim::OptimizerImpl>& each) {
    const std::shared_ptr<optim::OptimizerImpl> known = each.lock();
    return known == nullptr || optim::have_parameters_in_common(*known, optimizer);
  });
}

void Reducer::fill(DdpStats& stats) const {
  const auto forward = stats.forward;
  stats = stats_;
  stats.forward = forward;
  stats.comm_hook = hook_name_;
  stats.rebuilt = rebuilt_;
  for (int64_t index : arrival_) {
    stats.arrival_order.push_back(table_.name(static_cast<size_t>(index)));
  }
}

void Reducer::follow_layout() {
  const at::NoGradGuard no_grad;
  std::vector<uint8_t> gathered(table_.size());  // under no_sync, before the first averaged pass
  for (size_t i = 0; i < table_.size(); ++i) {
    const at::Tensor& grad = table_.tensors()[i].grad();
    gathered[i] = grad.defined() && same_memory(grad, view_of(i)) ? 1 : 0;
  }
  for (Bucket& bucket : buckets_) {
    ddp::follow_layout(bucket, table_.tensors());
  }
  for (size_t i = 0; i < table_.size(); ++i) {
    if (gathered[i] != 0) {
      table_.tensors()[i].mutable_grad() = view_of(i);
    }
  }
}

bool Reducer::rebuild_due() const {
  // Not with find_unused_parameters: which gradients arrive, and when, changes from step to step.
  return !rebuilt_ && !options_.find_unused_parameters && stats_.reduced_passes > 0;
}

void Reducer::rebuild(int root) {
  at::NoGradGuard no_grad;
  const at::Tensor order = at::empty({static_cast<int64_t>(table_.size())}, at::kLong);
  if (group_.rank() == root) {
    std::vector<int64_t> mine(arrival_.begin(), arrival_.end());
    if (mine.size() != table_.size()) {  // it only shadowed the others' passes so far, in a join
      mine.clear();
      for (const std::vector<size_t>& bucket : plan_) {
        mine.insert(mine.end(), bucket.begin(), bucket.end());
      }
    }
    ARGOSY_INVARIANT(mine.size() == table_.size(), "parallel.ddp.rebuild");
    std::copy(mine.begin(), mine.end(), order.data_ptr<int64_t>());
  }
  comm::broadcast(order, group_, {.root = root, .timeout = options_.timeout});
  const int64_t* indices = order.data_ptr<int64_t>();
  const std::vector<size_t> sequence(indices, indices + order.numel());
  rebuilt_ = true;
  const BucketPlan plan = plan_buckets(
      table_.tensors(),
      sequence,
      {.first_bytes = options_.first_bucket_bytes, .bytes = options_.bucket_cap_bytes});
  // Gradients that lie in an old bucket keep its memory until their next arrival copies them over.
  if (plan != plan_) {
    use_buckets(plan);
  }
}

}  // namespace argosy::parallel::ddp
