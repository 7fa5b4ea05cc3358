#include "argosy/parallel/ddp/reducer.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"
#include "argosy/base/even_part.h"
#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/pass_token.h"

namespace argosy::parallel::ddp {
namespace {

constexpr const char* kWhere = "parallel.ddp";

}  // namespace

Reducer::Reducer(const ParameterTable& table,
                 const SparseGradients& sparse,
                 const comm::Group& group,
                 const DdpOptions& options,
                 const std::shared_ptr<const comm::LeafDeal>& deal,
                 BucketSet buckets)
    : table_(table),
      sparse_(sparse),
      group_(group),
      buckets_(std::move(buckets)),
      leaves_(deal, group),
      reduction_(table, buckets_, leaves_, group, options.timeout, options.virtual_ranks != 0),
      unused_(table, buckets_, options.find_unused_parameters),
      pass_(buckets_.members()),
      checks_(table, group, options) {}

Reducer::~Reducer() = default;

std::shared_ptr<Reducer> Reducer::create(const ParameterTable& table,
                                         const SparseGradients& sparse,
                                         const comm::Group& group,
                                         const DdpOptions& options,
                                         const std::shared_ptr<const comm::LeafDeal>& deal,
                                         const std::optional<BucketPlan>& plan,
                                         const std::shared_ptr<sharded::MemoryPool>& pool) {
  std::shared_ptr<Reducer> reducer(new Reducer(table,
                                               sparse,
                                               group,
                                               options,
                                               deal,
                                               plan.has_value()
                                                   ? BucketSet(table, group, options, *plan, pool)
                                                   : BucketSet(table, group, options)));
  reducer->install_hooks();
  return reducer;
}

void Reducer::install_hooks() {
  hooks_.reserve(table_.size());
  for (size_t i = 0; i < table_.size(); ++i) {
    hooks_.push_back(engine::after_grad(table_.tensors()[i], [this, i] { on_gradient(i); }));
  }
  for (size_t i = 0; i < sparse_.size(); ++i) {
    hooks_.push_back(engine::after_grad(sparse_.weight(i), [this] { on_sparse_gradient(); }));
  }
}

// --- Between passes ----------------------------------------------------------------------------

void Reducer::check_ready_for_forward() const {
  ARGOSY_CHECK(
      !failure_.has_value(),
      kWhere,
      "cannot go on after a backward pass that failed, for gradients may differ between "
      "ranks. The cause was: {}. Let this wrapper go and wrap the module again, on all ranks.",
      *failure_);
  ARGOSY_CHECK(stage_ != Stage::kStarted,
               kWhere,
               "forward was called while a backward pass of the same wrapper is under way. Call "
               "the inner module (module()) for a nested forward.");
  ARGOSY_CHECK(!in_update_ || !early_.under_way(),
               kWhere,
               "forward was called after the last backward of the update and before "
               "optimizer.step(). With overlap_update that backward has changed the weights "
               "already, and for how many virtual ranks depends on the processes: leave "
               "overlap_update out.");
}

bool Reducer::rebuild_due() const {
  // Not with find_unused_parameters: which gradients arrive, and when, changes from step to step.
  return !buckets_.rebuilt() && !unused_.searches() && reduction_.times().pass > 0;
}

bool Reducer::rebuild(int root) {
  if (!buckets_.rebuild(root)) {
    return false;
  }
  pass_ = BackwardPass(buckets_.members());
  leaves_.follow_buckets();
  return true;
}

void Reducer::scatter(const std::shared_ptr<sharded::MemoryPool>& pool) {
  ARGOSY_CHECK(stage_ == Stage::kIdle, kWhere, "divide_step() was called during a backward pass");
  if ((pool != nullptr) != scatters()) {
    buckets_.cut(pool);
    leaves_.follow_buckets();
  }
}

void Reducer::follow_layout() {
  buckets_.follow_layout();
  if (sample_.has_value()) {  // of other elements now
    sample_ = PassCounter::sample_of(table_);
  }
}

void Reducer::deal(const std::shared_ptr<const comm::LeafDeal>& deal) {
  ARGOSY_CHECK(stage_ == Stage::kIdle, kWhere, "leaves cannot be dealt during a backward pass");
  leaves_ = LeafSums(deal, group_);
  micro_batch_ = {};
  reduction_.follow_leaves();
}

/// What belongs to one leaf must neither be taken for another's nor get lost.
void Reducer::begin(const MicroBatch& micro_batch) {
  ARGOSY_CHECK(stage_ == Stage::kIdle, kWhere, "a micro-batch began during a backward pass");
  if (micro_batch.begins_update()) {
    abandon_update();
    if (micro_batch.leaves > 1 || micro_batch.micros > 1 || micro_batch.strict) {
      sample_ = PassCounter::sample_of(table_);
    }
  } else {
    check_unchanged_in_update();
  }
  ARGOSY_CHECK(micro_batch.leaf == 0 || !micro_batch.begins_leaf() || !has_gradients(),
               kWhere,
               "the virtual rank before this one left gradients that were not averaged: its last "
               "pass was under no_sync()");
  in_update_ = true;
  micro_batch_ = micro_batch;
  passes_ = 0;
}

/// A step between two virtual ranks would let the later ones compute on other weights.
void Reducer::check_unchanged_in_update() const {
  ARGOSY_CHECK(
      !sample_.has_value() || !early_.empty() || PassCounter::sample_of(table_) == *sample_,
      kWhere,
      "the parameters have changed amid the micro-batches of an update. "
      "Call optimizer.step() after the loop over them.");
}

bool Reducer::end_update() {
  check_unchanged_in_update();
  const bool averaged = passes_ > 0 && !keeps();
  const size_t passes = passes_;
  const bool left = !aside_.empty();
  if (!left) {
    leaves_.check_all_taken(passes);
  }
  abandon_update();
  ARGOSY_CHECK(!left,
               kWhere,
               "the update had an averaged pass and then one under no_sync(), whose gradients were "
               "not averaged. Let the last pass of an update be outside of no_sync().");
  return averaged;
}

void Reducer::abandon_update() noexcept {
  in_update_ = false;
  micro_batch_ = {};
  passes_ = 0;
  sample_.reset();
  leaves_.restart();
  aside_.drop();
}

/// True while a virtual rank computes that is not this process's last one.
bool Reducer::keeps() const {
  return !micro_batch_.is_of_last_leaf();
}

/// Of parameters that learn.
bool Reducer::has_gradients() const {
  return std::ranges::any_of(table_.tensors(), [](const at::Tensor& parameter) {
    return parameter.requires_grad() && parameter.grad().defined();
  });
}

/// nullopt: nobody has to know.
std::optional<PassNews::What> Reducer::how_cleared() const {
  if (tell_ == nullptr) {
    return std::nullopt;
  }
  if (!has_gradients()) {
    return PassNews::What::kCleared;
  }
  bool zeros = true;
  for (size_t i = 0; zeros && i < table_.size(); ++i) {
    const at::Tensor& grad = table_.tensors()[i].grad();
    if (table_.tensors()[i].requires_grad() && grad.defined()) {
      zeros = is_known_to_be_zero(same_memory(grad, buckets_.view_of(i)) ? buckets_.kept_part(i)
                                                                         : grad);
    }
  }
  return zeros ? PassNews::What::kZeroed : PassNews::What::kKept;
}

void Reducer::tell_if_cleared() const {
  if (const auto cleared = uneven_ == nullptr ? std::nullopt : how_cleared()) {
    tell(*cleared);
  }
}

/// Gradients that an earlier pass has averaged, in this update or in one before it.
void Reducer::take_aside() {
  const at::NoGradGuard no_grad;
  aside_.take(table_, buckets_, leaves_.one_each());
  holds_averages_ = false;
}

void Reducer::give_back() {
  aside_.give_back(table_, buckets_);
  holds_averages_ = true;
}

void Reducer::after_forward(std::span<const at::Tensor> outputs, bool sync) {
  sync_ = sync;
  const auto trains = [](const at::Tensor& parameter) { return parameter.requires_grad(); };
  if (std::ranges::none_of(table_.tensors(), trains)) {
    return;  // all are frozen: a discriminator while its generator learns
  }
  unused_.add_forward(outputs, sync);
  for (const at::Tensor& output : outputs) {
    if (!sync && !in_update_ && !scatters()) {
      return;
    }
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

void Reducer::check_can_hook() const {
  ARGOSY_CHECK(
      stage_ != Stage::kStarted, kWhere, "register_comm_hook was called during a backward pass");
  ARGOSY_CHECK(early_.empty(),
               kWhere,
               "register_comm_hook cannot be used with overlap_update, whose updates follow the "
               "reduction itself");
}

void Reducer::set_comm_hook(CommHook hook, std::string name) {
  check_can_hook();
  reduction_.set_hook(std::move(hook), std::move(name));
}

void Reducer::set_compressor(CommHook hook, std::string name) {
  check_can_hook();
  reduction_.set_hook_of_leaves(std::move(hook), std::move(name));
}

void Reducer::set_uneven_inputs(UnevenInputs* uneven) {
  uneven_ = uneven;
  checks_.restart();
}

void Reducer::update_early(const std::shared_ptr<optim::OptimizerImpl>& optimizer) {
  ARGOSY_CHECK(optimizer->can_step_early(),
               kWhere,
               "overlap_update cannot be used with this optimizer: clipping by norms needs all "
               "gradients before the first update. Leave out grad_clip or overlap_update.");
  ARGOSY_CHECK(!checks_.stops_at_nonfinite(),
               kWhere,
               "overlap_update and on_nonfinite = stop exclude each other: a bucket may be updated "
               "before a gradient of another one is found that is not finite");
  ARGOSY_CHECK(table_.device().is_cpu(),
               kWhere,
               "overlap_update is for parameters on the CPU, these are on {}. Leave it out.",
               table_.device().str());
  ARGOSY_CHECK(
      !unused_.searches(),
      kWhere,
      "overlap_update and find_unused_parameters exclude each other: which gradients count "
      "is known at the end of backward only");
  ARGOSY_CHECK(!reduction_.has_hook(),
               kWhere,
               "overlap_update cannot be used with the communication hook \"{}\", which may finish "
               "a bucket after its reduction",
               reduction_.hook_name());
  early_.add(optimizer);
}

void Reducer::fill(DdpStats& stats) const {
  buckets_.fill(stats);
  const CommunicationTimes& times = reduction_.times();
  stats.comm_hook = reduction_.hook_name();
  stats.unused = unused_.names();
  stats.reduced_passes = times.pass;
  stats.backward = backward_;
  stats.communication = times.ended - times.begun;
  stats.exposed = times.ended - times.waited;
}

// --- A pass ------------------------------------------------------------------------------------

void Reducer::open_pass() {
  if (stage_ != Stage::kIdle || failure_.has_value()) {
    return;
  }
  // Not in a loop that does not say where an update begins.
  if (in_update_ && holds_averages_) {
    cleared_ = how_cleared();
    take_aside();
  }
  tell_if_cleared();
  if (scatters()) {
    buckets_.hold_gradients();
  }
  if (!sync_) {
    return;
  }
  auto token = std::make_shared<PassToken>(weak_from_this());
  engine::at_end_of_backward([token] { token->end(); });
  stage_ = Stage::kOpen;
  began_ = std::chrono::steady_clock::now();
}

void Reducer::start_pass() {
  early_.check_steps_complete();
  stage_ = Stage::kStarted;
  if (const auto cleared = std::exchange(cleared_, std::nullopt)) {
    tell(*cleared);
  }
  // While ranks have uneven inputs they count differently.
  if (uneven_ == nullptr && !keeps()) {
    checks_.begin(reduction_, micro_batch_);
  } else {
    reduction_.restart();
  }
  if (uneven_ != nullptr) {
    uneven_->announce_backward();
  }
  // Known now, so that no bucket has to wait for it. A spare waits for each.
  for (size_t i = 0; i < table_.size() && !leaves_.is_spare(); ++i) {
    if (unused_.is_frozen(i)) {
      unused_.contribute_frozen(i);
      mark_ready(i);
    } else if (!unused_.is_reachable(i)) {
      contribute_unused(i);
      mark_ready(i);
    }
  }
}

void Reducer::on_gradient(size_t index) {
  if (!sync_ && stage_ == Stage::kIdle) {
    unused_.mark_used(index);
    return;
  }
  try {
    on_gradient_of_pass(index);
  } catch (const std::exception& error) {
    fail(error.what());
    throw;
  }
}

/// It waits for the end of the pass, which begins here if this is its first gradient.
void Reducer::on_sparse_gradient() {
  if (sync_ && !failure_.has_value()) {
    open_pass();
    if (stage_ != Stage::kStarted) {
      start_pass();
    }
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
  if (stage_ != Stage::kStarted) {
    start_pass();
  }
  if (pass_.is_ready(index)) {
    accept_late(index);
    return;
  }
  if (buckets_.bring_in(index)) {
    unused_.mark_used(index);
    look(index);
  } else {
    contribute_unused(index);
  }
  mark_ready(index);
}

/// What was gathered under no_sync() is looked at here.
void Reducer::contribute_unused(size_t index) {
  if (unused_.contribute_unused(index)) {
    look(index);
  }
}

void Reducer::look(size_t index) {
  const IndexRange leaves = even_part(leaves_.leaves_of_all(), group_.size(), group_.rank());
  checks_.look(index,
               buckets_.view_of(index),
               {.update = checks_.update() + (keeps() ? 1 : 0),
                .leaf = leaves.begin + micro_batch_.leaf,
                .rank = group_.rank()});
}

void Reducer::accept_late(size_t index) {
  const bool was_unused = unused_.withdraw(index);
  ARGOSY_CHECK(!pass_.is_taken(buckets_.bucket_of(index)),
               kWhere,
               "parameter {} got {} after its bucket was sent. {}",
               table_.name(index),
               was_unused ? "a gradient" : "a second gradient in the same backward pass",
               was_unused ? "It was held to be unused, for the outputs of the last forward do not "
                            "reach it. Run the backward of each forward before the next forward."
                          : "Nested backward passes (activation checkpointing) must not share "
                            "parameters.");
  if (buckets_.bring_in(index)) {
    unused_.mark_used(index);
    look(index);
  }
}

void Reducer::mark_ready(size_t index) {
  pass_.mark_ready(index, buckets_.bucket_of(index));
  if (reduction_.times().pass == 0 && !unused_.searches() && !keeps()) {
    buckets_.note_arrival(index);
  }
  while (const std::optional<size_t> bucket = pass_.take_complete()) {
    send(*bucket);
  }
}

void Reducer::send(size_t bucket) {
  buckets_.open(buckets_[bucket].parameters.front());
  if (compares() && !leaves_.is_spare()) {
    checks_.look(buckets_.whole(bucket));
  }
  if (keeps()) {
    leaves_.keep(passes_, micro_batch_.leaf, bucket, buckets_[bucket].flat);
    if (const auto& whole = buckets_[bucket].memory; whole != nullptr) {
      whole->drop();
    }
    return;
  }
  tell(PassNews::What::kBucket);
  checks_.start(reduction_);
  reduction_.send(bucket, passes_, pass_.ready_count());
  if (early_.empty()) {
    return;
  }
  std::vector<at::Tensor> parameters;
  for (const size_t parameter : buckets_[bucket].parameters) {
    if (!unused_.is_frozen(parameter)) {
      parameters.push_back(table_.tensors()[parameter]);
    }
  }
  reduction_.add(early_.start(std::move(parameters), group_));
}

// --- The end of a pass -------------------------------------------------------------------------

void Reducer::end_pass() {
  at::NoGradGuard no_grad;
  if (stage_ != Stage::kStarted) {  // autograd::grad(), or a loss that depends on no parameter
    stage_ = Stage::kIdle;
    if (!aside_.empty()) {
      give_back();
      cleared_.reset();
    }
    return;
  }
  try {
    finish_pass();
    leave_pass();
  } catch (const std::exception& error) {
    fail(error.what());
    leave_pass();
    throw;
  }
}

void Reducer::abort_pass() noexcept {
  if (stage_ == Stage::kStarted) {
    fail("backward() ended by an exception before all gradients were averaged");
    leave_pass();
  }
  stage_ = Stage::kIdle;
}

void Reducer::finish_pass() {
  if (values_ != nullptr) {
    values_->check();
  }
  const std::vector<size_t> missing = pass_.not_ready();
  ARGOSY_CHECK(
      missing.empty() || unused_.searches(),
      kWhere,
      "{} of {} parameters got no gradient in this backward pass: {}. Gradients cannot be "
      "averaged without them. Let every parameter contribute to the loss, freeze it "
      "(requires_grad_(false)) before wrapping, or pass {{.find_unused_parameters = true}} to "
      "fleet::init() or DistributedDataParallel.",
      missing.size(),
      table_.size(),
      table_.names(missing));
  for (size_t index : missing) {
    contribute_unused(index);
    mark_ready(index);
  }
  if (keeps()) {
    finish_leaf();
    return;
  }
  tell(PassNews::What::kEndOfPass);
  reduce_used_map();
  if (compares()) {
    if (!leaves_.is_spare()) {
      checks_.end_leaf();
    }
    checks_.compare_samples(reduction_);
  }
  backward_ = std::chrono::steady_clock::now() - began_;
  wait_for_buckets();
  sparse_.average();
  checks_.finish();
  unused_.settle();
  give_back();
}

/// The gradients are among the leaves now.
void Reducer::finish_leaf() {
  for (size_t i = 0; i < table_.size(); ++i) {
    if (!unused_.is_frozen(i)) {
      table_.tensors()[i].mutable_grad() = at::Tensor();
    }
  }
  unused_.end_pass_of_leaf();
  if (compares()) {
    checks_.end_leaf();
  }
}

/// Nothing without find_unused_parameters.
void Reducer::reduce_used_map() {
  if (unused_.searches()) {
    reduction_.add(comm::all_reduce_async(
        unused_.used_map(), group_, reduction_.options(comm::ReduceOp::kMax)));
  }
}

void Reducer::wait_for_buckets() {
  reduction_.wait(uneven_ != nullptr ? uneven_->divisor() : group_.size());
}

void Reducer::shadow_backward() {
  at::NoGradGuard no_grad;
  try {
    stage_ = Stage::kStarted;
    for (size_t b = 0; b < buckets_.size(); ++b) {
      buckets_[b].flat.zero_();
      send(b);
    }
    unused_.mark_none_used();
    reduce_used_map();
    wait_for_buckets();
    leave_pass();
  } catch (const std::exception& error) {
    fail(error.what());
    leave_pass();
    throw;
  }
}

void Reducer::begin_shadow() {
  stage_ = Stage::kStarted;
  shadowed_ = 0;
  unused_.mark_none_used();
}

void Reducer::shadow_bucket() {
  follow([this] {
    for (const size_t index : buckets_[shadowed_].parameters) {
      unused_.contribute_zeros(index, unused_.is_frozen(index));
    }
    send(shadowed_++);
  });
}

void Reducer::end_shadow() {
  follow([this] {
    reduce_used_map();
    wait_for_buckets();
    unused_.settle();
    leave_pass();
  });
}

void Reducer::tell(PassNews::What what) const {
  if (tell_ != nullptr) {
    tell_(what);
  }
}

void Reducer::follow(const std::function<void()>& what) {
  const at::NoGradGuard no_grad;
  try {
    what();
  } catch (const std::exception& error) {
    fail(error.what());
    leave_pass();
    throw;
  }
}

void Reducer::follow_cleared_gradients(bool to_zeros) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < table_.size(); ++i) {
    const at::Tensor& parameter = table_.tensors()[i];
    at::Tensor& grad = parameter.mutable_grad();
    if (!parameter.requires_grad() || !grad.defined()) {
      continue;
    }
    if (to_zeros) {
      (same_memory(grad, buckets_.view_of(i)) ? buckets_.kept_part(i) : grad).zero_();
    } else {
      grad = at::Tensor();
    }
  }
}

void Reducer::follow_bucket() {
  follow([this] {
    if (stage_ != Stage::kStarted) {
      if (holds_averages_) {
        take_aside();
      }
      began_ = std::chrono::steady_clock::now();
      start_pass();
    }
    for (const size_t index : std::vector<size_t>(buckets_[pass_.next()].parameters)) {
      if (unused_.is_frozen(index)) {
        unused_.contribute_frozen(index);
      } else if (unused_.searches()) {
        contribute_unused(index);
      } else {
        table_.tensors()[index].mutable_grad() = buckets_.view_of(index);
      }
      mark_ready(index);  // the last one sends the bucket
    }
  });
}

void Reducer::follow_end_of_pass() {
  follow([this] {
    finish_pass();
    leave_pass();
  });
}

void Reducer::leave_pass() noexcept {
  stage_ = Stage::kIdle;
  ++passes_;
  pass_.restart();
  reduction_.restart();
  unused_.restart();
}

void Reducer::fail(const std::string& why) noexcept {
  early_.abandon();
  aside_.drop();
  leaves_.restart();
  if (!failure_.has_value()) {
    failure_ = why;
  }
}

}  // namespace argosy::parallel::ddp
