#include "argosy/parallel/ddp/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/even_part.h"
#include "argosy/base/log.h"
#include "argosy/engine/cpu.h"
#include "argosy/engine/deferred.h"
#include "argosy/engine/synced_norm.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/parallel/ddp/shared_part.h"
#include "argosy/parallel/ddp/verify.h"
#include "argosy/parallel/sharded/unit_plan.h"

namespace argosy::parallel::ddp {
namespace {

/// Parameters that another wrapper has divided get memory of their own again. Collective over its
/// ranks.
void make_whole(const torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : module.parameters()) {
    if (const auto memory = sharded::ShardedMemory::of(parameter)) {
      memory->pool().check();
      parameter.set_data(memory->gather(parameter, memory->part_of(parameter)));
    }
  }
}

/// Deferred parameters that will be divided get no memory.
void bring_what_stays_whole(const torch::nn::Module& module, bool divides) {
  for (const at::Tensor& parameter : module.parameters()) {
    if (!divides || !parameter.requires_grad()) {
      engine::bring_memory(parameter);
    }
  }
  for (const at::Tensor& buffer : module.buffers()) {
    engine::bring_memory(buffer);
  }
}

/// The module, laid out as the options say.
std::shared_ptr<torch::nn::Module> checked(std::shared_ptr<torch::nn::Module> module,
                                           const comm::Group& group,
                                           const DdpOptions& options) {
  options.validate();
  ARGOSY_CHECK(module != nullptr, "parallel.ddp", "the module is empty");
  ARGOSY_CHECK(group.valid(), "parallel.ddp", "the group is empty. Make one: comm::init().");
  ARGOSY_CHECK(group.rank() >= 0,
               "parallel.ddp",
               "this process is not a member of group \"{}\". Wrap the model on its members only.",
               group.name());
  make_whole(*module);
  bring_what_stays_whole(*module, options.shard.has_value() && group.size() > 1);
  engine::lay_out(*module, options.memory_format);
  return module;
}

/// Ranks that are threads of one process each have wrappers.
struct Living {
  std::mutex mutex{};
  std::vector<Core*> all{};
  std::set<std::string> groups{};  ///< of those that there were
};

/// It outlives the wrappers of a program's statics.
Living& living() {
  static auto* const wrappers = new Living;
  return *wrappers;
}

std::shared_ptr<const comm::LeafDeal> deal_of(const DdpOptions& options, const comm::Group& group) {
  const int64_t leaves = options.virtual_ranks == 0 ? group.size() : options.virtual_ranks;
  return std::make_shared<const comm::LeafDeal>(comm::LeafDeal::in_ranges(leaves, group.size()));
}

/// Norms over all ranks need them side by side.
void check_norms(const torch::nn::Module& module, const comm::LeafDeal& deal) {
  if (deal.leaves() == deal.ranks()) {
    return;
  }
  for (const auto& item : module.named_modules()) {
    const auto* norm = dynamic_cast<const engine::SyncedNorm*>(item.value().get());
    ARGOSY_CHECK(
        norm == nullptr || norm->peers() == nullptr,
        "parallel.ddp",
        "{} is a SyncBatchNorm, which needs as many processes as virtual ranks: here are {} "
        "processes for {}. Give virtual_ranks = {} where a training begins or goes on",
        item.key(),
        deal.ranks(),
        deal.leaves(),
        deal.ranks());
  }
}

void check_computes_in(at::ScalarType type, at::DeviceType device, const char* option) {
  ARGOSY_CHECK(engine::can_autocast(device, type),
               "parallel.ddp",
               "{} (amp_configs.dtype of a strategy): the device {} cannot compute in {}. {}.",
               option,
               c10::DeviceTypeName(device, /*lower_case=*/true),
               c10::toString(type),
               device == at::kCPU    ? "Choose BFloat16"
               : device == at::kCUDA ? "Choose Half or BFloat16"
                                     : "Leave amp off");
}

std::optional<engine::AutocastOptions> autocast_of(const DdpOptions& options,
                                                   at::DeviceType device) {
  const bool is_known = device == at::kCPU || device == at::kCUDA;
  if (options.shard.has_value() && options.shard->mixed_precision.has_value() && is_known) {
    check_computes_in(options.shard->mixed_precision->param_dtype, device, "mixed_precision");
  }
  if (!options.autocast.has_value()) {
    return std::nullopt;
  }
  check_computes_in(*options.autocast, device, "autocast");
  return engine::AutocastOptions{.device = device, .dtype = options.autocast};
}

/// libtorch's batch norms want their statistics in the type of their weights, and as 16-bit
/// averages these would stand still.
void check_has_no_statistics(const torch::nn::Module& module) {
  for (const auto& item : module.named_modules()) {
    const auto buffers = item.value()->named_buffers(/*recurse=*/false);
    ARGOSY_CHECK(
        !buffers.contains("running_mean"),
        "parallel.fully_shard",
        "mixed_precision: {} keeps running statistics, which need f32 weights. Take a norm "
        "without them (LayerNorm, GroupNorm), or autocast (amp without use_pure_bf16)",
        item.key().empty() ? "the module" : item.key());
  }
}

}  // namespace

Core::Core(std::shared_ptr<torch::nn::Module> module,
           const comm::Group& group,
           const DdpOptions& options)
    : module_(checked(std::move(module), group, options)),
      group_(group),
      options_(options),
      format_(choose_by_layers(*module_, options.memory_format)),
      table_(*module_),
      sparse_(sparse_weights(*module_), group, options.timeout),
      autocast_(autocast_of(options, table_.device().type())),
      deal_(deal_of(options, group)),
      spares_(*deal_, group, options.timeout),
      buffers_({}),
      leaf_buffers_(module_->buffers()),
      finite_of_one_(options.on_nonfinite) {
  // The ranks' shared memory is the host's; a device's buckets are on the device.
  options_.shared_memory = options_.shared_memory && table_.device().is_cpu();
  check_norms(*module_, *deal_);
  engine::setup_cpu({.local_world_size = static_cast<int>(
                         env::get_int("LOCAL_WORLD_SIZE", 1, 1 << 20).value_or(1))});
  if (group_.size() > 1 || has_virtual_ranks() || divides_parameters()) {
    prepare();
  } else {
    if (options_.shard.has_value() && options_.shard->initialize != nullptr) {
      initialize();
    }
    look_at_gradients();
  }
  engine::release_free_memory();  // what building and loading the model has left
  const std::lock_guard lock(living().mutex);
  living().all.push_back(this);
  living().groups.insert(group_.name());
}

/// What the reducer does where there is one.
void Core::look_at_gradients() {
  if (!finite_of_one_.looks()) {
    return;
  }
  for (size_t i = 0; i < table_.size(); ++i) {
    finite_hooks_.push_back(engine::after_grad(table_.tensors()[i], [this, i] {
      if (finite_of_one_.looks() && no_sync_depth_ == 0) {
        finite_of_one_.look(table_.name(i), table_.tensors()[i].grad(), {});
        finite_of_one_.tell(false);
      }
    }));
  }
}

/// Rows are exchanged by processes, and lie in no bucket.
void Core::check_sparse() const {
  ARGOSY_CHECK(sparse_.empty() || !divides_parameters(),
               "parallel.fully_shard",
               "the embedding of a parameter has sparse gradients, and ranks divide dense ones "
               "only. Build it with .sparse(false)");
  ARGOSY_CHECK(
      sparse_.empty() || !has_virtual_ranks(),
      "parallel.ddp",
      "sparse gradients need as many processes as virtual ranks: here are {} processes for "
      "{}. Build the embedding with .sparse(false), or leave virtual_ranks out",
      group_.size(),
      deal_->leaves());
}

void Core::prepare() {
  check_sparse();
  finite_hooks_.clear();
  Subject subject;
  if (std::ranges::any_of(table_.tensors(), engine::is_deferred)) {
    subject.advice +=
        " Initial values follow from seed_everything(): call it with the same seed "
        "before the model is made.";
  }
  verify_equal(describe(*module_, options_), group_, options_.timeout, subject);
  agree_on_open_format();
  initialize();
  divisions_ = std::make_unique<Divisions>(
      options_.shared_memory && !divides_parameters()
          ? move_into_shared_memory(table_.tensors(), group_, options_.timeout)
          : nullptr,
      group_,
      options_.timeout);
  buffers_ = CoalescedBroadcast(module_->buffers());
  if (divides_parameters()) {
    shard_parameters();
  } else {
    reducer_ = Reducer::create(table_, sparse_, group_, options_, deal_);
  }
  listen_for_spares();
}

/// Without their own values, so in row-major order.
void Core::check_initializable() const {
  for (size_t i = 0; i < table_.size(); ++i) {
    ARGOSY_CHECK(table_.tensors()[i].is_contiguous(),
                 "parallel.fully_shard",
                 "initialize: parameter {} is not contiguous. Make it so, or give its values",
                 table_.name(i));
  }
}

bool Core::divides_parameters() const {
  return options_.shard.has_value() &&
         (group_.size() > 1 || options_.shard->mixed_precision.has_value());
}

/// Of parameters that are rounded from masters.
std::optional<at::ScalarType> Core::short_type() const {
  return options_.shard.has_value() && options_.shard->mixed_precision.has_value()
             ? std::optional(options_.shard->mixed_precision->param_dtype)
             : std::nullopt;
}

std::optional<OutputsIn> Core::output_cast() const {
  if (autocast_.has_value()) {
    return OutputsIn{.from = *autocast_->dtype};
  }
  if (!short_type().has_value() || !options_.shard->mixed_precision->output_dtype.has_value()) {
    return std::nullopt;
  }
  return OutputsIn{.from = *short_type(), .to = *options_.shard->mixed_precision->output_dtype};
}

/// Those that no rank updates.
void Core::cast_frozen_parameters() const {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : module_->parameters()) {
    if (parameter.scalar_type() == at::kFloat && sharded::ShardedMemory::of(parameter) == nullptr) {
      parameter.set_data(parameter.detach().to(*short_type()));
    }
  }
}

namespace {

/// Which part of the parameters a rank has, and of which of their replicas.
struct ShardPlace {
  int part = 0;
  int replica = 0;
};

std::vector<ShardPlace> places_of(const ShardOptions& shard, int ranks) {
  const int degree = shard.degree_of(ranks);
  std::vector<ShardPlace> places;
  std::vector<int> met(static_cast<size_t>(degree));  // ranks that have each part
  for (int rank = 0; rank < ranks; ++rank) {
    const int part = shard.mesh.valid() ? static_cast<int>(shard.mesh.coordinate("sharding", rank))
                                        : rank % degree;
    places.push_back({.part = part, .replica = met[static_cast<size_t>(part)]++});
  }
  return places;
}

}  // namespace

void Core::shard_parameters() {
  const ShardOptions& shard = *options_.shard;
  const std::vector<ShardPlace> places = places_of(shard, group_.size());
  const ShardPlace mine = places[static_cast<size_t>(group_.rank())];
  ShardedBuckets::Homes homes{.initialize = shard.initialize};
  if (shard.offload.has_value()) {
    ARGOSY_CHECK(
        table_.device().is_cpu(),
        "parallel.fully_shard",
        "offload: the parameters are on {}, and only state of parameters on the CPU can lie "
        "in files. Leave it out",
        table_.device().str());
    homes.files = std::make_shared<const sharded::StateFiles>(shard.offload->folder);
  }
  std::vector<int> together, alike;  // who divides the values with this rank, who has the same
  const int replicas = group_.size() / shard.degree_of(group_.size());
  for (int rank = 0; rank < group_.size(); ++rank) {
    const ShardPlace& place = places[static_cast<size_t>(rank)];
    homes.pieces.push_back(place.part * replicas + place.replica);
    if (place.replica == mine.replica) {
      together.push_back(rank);
    }
    if (place.part == mine.part) {
      alike.push_back(rank);
    }
  }
  std::function<at::Tensor(int64_t, const at::TensorOptions&)> make_part;
  if (homes.files != nullptr) {
    make_part = [files = homes.files](int64_t elements, const at::TensorOptions& given) {
      return files->zeros(elements, given);
    };
  }
  // Gathers have an order of their own, beside the reductions.
  const comm::Group sharding =
      group_.new_group(together, {.members_only = true, .label = "sharding"});
  homes.replicas = group_.new_group(alike, {.members_only = true, .label = "dp"});
  values_ = homes.pool = std::make_shared<sharded::MemoryPool>(
      sharding,
      sharded::PoolOptions{.kept = shard.reshard_after_forward ? static_cast<size_t>(shard.kept)
                                                               : std::numeric_limits<size_t>::max(),
                           .timeout = options_.timeout,
                           .whole_type = short_type(),
                           .make_part = make_part,
                           .has_masters = short_type().has_value(),
                           .share = options_.shared_memory});
  const BucketPlan plan = sharded::plan_units(*module_, table_, shard);
  const std::vector<int> pieces = homes.pieces;
  shards_ = std::make_shared<ShardedBuckets>(
      parameters(), plan, group_, options_.timeout, std::move(homes));
  if (short_type().has_value()) {
    check_has_no_statistics(*module_);
    cast_frozen_parameters();
    table_ = ParameterTable(*module_);
  }
  // What listens to gradients comes after the parameters have got their type.
  reducer_ =
      Reducer::create(table_, sparse_, group_, options_, deal_, plan, pool_of_gradients(pieces));
  reducer_->ask(values_);
  values_->end_writes();
}

std::shared_ptr<sharded::MemoryPool> Core::pool_of_gradients(const std::vector<int>& pieces) const {
  return std::make_shared<sharded::MemoryPool>(
      group_,
      sharded::PoolOptions{
          .ahead = false,
          .timeout = options_.timeout,
          .keeps_written = true,
          .whole_type = short_type().has_value()
                            ? std::optional(options_.shard->mixed_precision->reduces_in())
                            : std::nullopt,
          .parts = pieces});
}

engine::NamedTensors Core::parameters() const {
  engine::NamedTensors parameters;
  for (size_t i = 0; i < table_.size(); ++i) {
    parameters.emplace_back(table_.name(i), table_.tensors()[i]);
  }
  return parameters;
}

void Core::hold_parameters(bool whole) {
  if (shards_ != nullptr) {
    shards_->hold(whole);
  }
}

void Core::listen_for_spares() {
  const bool tells = spares_.any() && !spares_.is_one();
  reducer_->tell_spares_by(tells ? [this](PassNews::What what) { tell_spares(what); }
                                 : std::function<void(PassNews::What)>());
  if (values_ != nullptr) {
    values_->tell_by(spares_.has_more() ? [this](uint32_t unit) { tell_of_gather(unit); }
                                        : std::function<void(uint32_t)>());
  }
}

Core::~Core() {
  if (values_ != nullptr) {  // which the module may outlive this with
    values_->tell_by({});
  }
  if (shards_ != nullptr) {  // nobody reduces gradients from now on
    shards_->leave();
  }
  const std::lock_guard lock(living().mutex);
  std::erase(living().all, this);
}

bool Core::any_made(const comm::Group& group) {
  const std::lock_guard lock(living().mutex);
  return living().groups.contains(group.name());
}

void Core::for_each(const comm::Group& group, const std::function<void(Core&)>& each) {
  std::vector<Core*> own;  // the caller's, so that nobody else destroys them
  {
    const std::lock_guard lock(living().mutex);
    std::ranges::copy_if(living().all, std::back_inserter(own), [&](const Core* core) {
      return core->group_.name() == group.name() && core->group_.size() == group.size() &&
             core->group_.rank() == group.rank();
    });
  }
  for (Core* const core : own) {
    each(*core);
  }
}

// --- Spares ------------------------------------------------------------------------------------

Core::AmongWrappers Core::among_wrappers() const {
  AmongWrappers place;
  bool found = false;
  for_each(group_, [&](const Core& core) {
    found = found || &core == this;
    place.number += found ? 0 : 1;
    ++place.all;
  });
  return place;
}

void Core::tell_spares(PassNews::What what) {
  if (spares_.any() && !spares_.is_one()) {
    const MicroBatch now = micro_batch_.value_or(MicroBatch());
    spares_.tell(
        {.what = what, .model = among_wrappers().number, .epoch = now.epoch, .update = now.update});
  }
}

/// In passes that a process makes which has more virtual ranks than others.
void Core::tell_of_gather(uint32_t unit) {
  if (micro_batch_.has_value() && micro_batch_->leaf == 0) {
    spares_.tell({.what = PassNews::What::kGather,
                  .model = among_wrappers().number,
                  .unit = static_cast<int64_t>(unit)});
  }
}

/// What the others do in their passes, until they end this wrapper's.
void Core::follow_until(PassNews::What end) {
  for (PassNews news = spares_.next(); news.what != end; news = spares_.next()) {
    int64_t number = 0;
    for_each(group_, [&](Core& core) {
      if (number++ == news.model) {
        core.follow(news);
      }
    });
    ARGOSY_INVARIANT(news.model < number, "parallel.ddp.spares");
  }
}

/// Of the first virtual rank, where parameters are divided and others have one less. They take part
/// in its gathers before they make passes themselves, spares at the end of the update.
void Core::begin_extra_passes() {
  if (values_ == nullptr || !(spares_.has_more() || spares_.has_fewer())) {
    return;
  }
  values_->set_apart(true);
  if (spares_.has_fewer() && !spares_.is_one()) {
    follow_until(PassNews::What::kEndOfExtra);
    values_->set_apart(false);
  }
}

void Core::end_extra_passes() {
  if (values_ != nullptr && spares_.has_more() && !spares_.any()) {
    values_->set_apart(false);
    spares_.tell({.what = PassNews::What::kEndOfExtra, .model = among_wrappers().number});
  }
}

void Core::follow(const PassNews& news) {
  if (news.what == PassNews::What::kGather) {
    return values_->follow(static_cast<uint32_t>(news.unit));
  }
  if (!micro_batch_.has_value()) {
    begin({.epoch = news.epoch, .update = news.update});
  }
  switch (news.what) {
    case PassNews::What::kFormat:
      return decide_format([] { return std::string(); });
    case PassNews::What::kRebuild:
      return rebuild(0);
    case PassNews::What::kCleared:
      return reducer_->follow_cleared_gradients(/*to_zeros=*/false);
    case PassNews::What::kZeroed:
      return reducer_->follow_cleared_gradients(/*to_zeros=*/true);
    case PassNews::What::kBucket:
      return reducer_->follow_bucket();
    case PassNews::What::kEndOfPass:
      return reducer_->follow_end_of_pass();
    case PassNews::What::kKept:
    case PassNews::What::kGather:
    case PassNews::What::kEndOfExtra:
    case PassNews::What::kEnd:
      return;
  }
}

// --- Memory format -----------------------------------------------------------------------------

/// What one rank cannot try none tries: who holds a weight's memory differs from rank to rank.
void Core::agree_on_open_format() {
  if (options_.memory_format != engine::MemoryFormat::kAuto) {
    return;
  }
  const std::string mine = format_.open ? "" : format_.reason;
  const auto all = comm::all_gather_object(mine, group_, {.timeout = options_.timeout});
  for (size_t rank = 0; rank < all.size() && format_.open; ++rank) {
    if (!all[rank].empty()) {
      format_ = {format_.format, false, fmt::format("on rank {} {}", rank, all[rank])};
    }
  }
}

void Core::broadcast_model(int root) const {
  std::vector<at::Tensor> tensors = module_->parameters();
  std::erase_if(tensors, engine::is_deferred);  // each rank draws its part
  const std::vector<at::Tensor> buffers = module_->buffers();
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  CoalescedBroadcast(tensors).run(group_, root, options_.timeout);
}

/// Rank 0's values, or those of ShardOptions::initialize, which each rank draws itself.
void Core::initialize() {
  const bool draws = options_.shard.has_value() && options_.shard->initialize != nullptr;
  if (!draws) {
    return broadcast_model(0);
  }
  check_initializable();
  CoalescedBroadcast(module_->buffers()).run(group_, 0, options_.timeout);
  if (divides_parameters()) {
    return;  // then and there
  }
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < table_.size(); ++i) {
    const at::Tensor& parameter = table_.tensors()[i];
    options_.shard->initialize(table_.name(i), parameter.detach().view(-1), {0, parameter.numel()});
  }
}

void Core::settle_format(const Forward& forward) {
  if (!format_.open || no_sync_depth_ > 0 || !at::GradMode::is_enabled() ||
      !module_->is_training()) {
    return;
  }
  if (*passed_in_eval_) {  // sums of earlier virtual ranks would be in the old order
    use_format(engine::MemoryFormat::kAsIs,
               "there was a backward in evaluation mode before the first forward in training mode");
    return;
  }
  tell_spares(PassNews::What::kFormat);
  decide_format([&] { return objection_to_channels_last(*module_, forward); });
}

/// Whether all processes make this wrapper's first pass at the same point. With several wrappers,
/// one that has fewer virtual ranks sends gradients of the first wrapper while others are still
/// before the first pass of the second. There each decides by itself; that all came to the same is
/// compared with the next gradients (TrainingPlace::layout).
bool Core::first_passes_are_aligned() const {
  return deal_->leaves() % group_.size() == 0 || deal_->leaves() < group_.size() ||
         among_wrappers().all == 1;
}

void Core::decide_format(const std::function<std::string()>& objection_of_rank) {
  if (!shares_later_) {
    unshare_parameters();
  }
  std::string objection = objection_of_rank();
  if (!alone() && first_passes_are_aligned()) {
    const auto all = comm::all_gather_object(objection, group_, {.timeout = options_.timeout});
    for (size_t rank = 0; rank < all.size() && objection.empty(); ++rank) {
      objection = all[rank].empty() ? "" : fmt::format("on rank {} {}", rank, all[rank]);
    }
  }
  if (objection.empty()) {
    use_format(engine::MemoryFormat::kChannelsLast, format_.reason);
  } else {
    use_format(engine::MemoryFormat::kAsIs, "the model was tried in channels_last: " + objection);
  }
  if (!shares_later_) {
    share_parameters();
  }
}

void Core::settle_format(engine::MemoryFormat format, std::string reason) {
  if (!format_.open) {
    return;
  }
  unshare_parameters();
  use_format(format, std::move(reason));
  share_parameters();
}

void Core::use_format(engine::MemoryFormat format, std::string reason) {
  format_ = {format, false, std::move(reason)};
  log::info("[parallel.ddp] memory format: {} ({})", engine::to_string(format), format_.reason);
  if (format == engine::MemoryFormat::kAsIs) {
    return;
  }
  engine::lay_out(*module_, format);
  for (const at::Tensor& parameter : table_.tensors()) {
    at::Tensor& grad = parameter.mutable_grad();
    if (grad.defined() && engine::has_own_memory(grad)) {  // the reducer sees to those in buckets
      grad = engine::in_format(grad.detach(), format);
    }
  }
  table_.accept_layout();
  if (alone()) {
    return;
  }
  reducer_->follow_layout();
  buffers_ = CoalescedBroadcast(module_->buffers());
  divisions_->follow_layout();
}

void Core::check_turn() const {
  if (alone() || !at::GradMode::is_enabled() || !module_->is_training()) {
    return;
  }
  ARGOSY_CHECK(!spares_.is_one(),
               "parallel.ddp",
               "rank {} of {} is a spare, which makes no passes: here are {} virtual ranks. Loop "
               "over fleet::updates(loader), or leave the passes out where turns().spare is true",
               group_.rank(),
               group_.size(),
               deal_->leaves());
  ARGOSY_CHECK(!has_virtual_ranks() || micro_batch_.has_value(),
               "parallel.ddp",
               "{} processes compute {} virtual ranks, and this forward belongs to none of them. "
               "Loop over fleet::updates(loader), or call begin() before each micro-batch.",
               group_.size(),
               deal_->leaves());
}

void Core::before_forward() {
  forward_began_ = std::chrono::steady_clock::now();
  if (values_ != nullptr) {
    values_->check();
    values_->begin_sequence();
  }
  if (alone() || !at::GradMode::is_enabled()) {
    return;
  }
  reducer_->check_ready_for_forward();
  table_.check_unchanged(*module_);
  if (!averages()) {
    return;
  }
  const ForwardWork work{
      .rebuild = !micro_batch_.has_value() && !has_virtual_ranks() && reducer_->rebuild_due(),
      .buffers = options_.broadcast_buffers && !buffers_.empty() && module_->is_training() &&
                 !micro_batch_.has_value()};
  if (!work.rebuild && !work.buffers) {
    return;
  }
  reducer_->tell_if_cleared();
  const int root = join_ != nullptr ? join_->announce_forward(work) : 0;
  if (work.rebuild) {
    rebuild(root);
  }
  if (work.buffers) {
    buffers_.run(group_, root, options_.timeout);
  }
}

void Core::rebuild(int root) {
  const bool announces = join_ != nullptr && divides_anything();
  if (announces) {
    announce_all(nullptr);  // here all gather, also those who have finished
  }
  if (reducer_->rebuild(root)) {
    divisions_->follow_buckets(reducer_->plan());
  }
  if (announces) {
    announce_all(join_.get());
  }
}

void Core::check_memory() const {
  if (values_ != nullptr) {
    values_->check();
  }
}

void Core::after_forward(std::span<const at::Tensor> outputs) {
  forward_time_ = std::chrono::steady_clock::now() - forward_began_;
  check_memory();
  if (format_.open && !module_->is_training()) {
    for (const at::Tensor& output : outputs) {
      if (output.requires_grad() && !output.is_leaf()) {
        output.register_hook([passed = passed_in_eval_](const at::Tensor&) { *passed = true; });
      }
    }
  }
  if (!alone() && at::GradMode::is_enabled()) {
    reducer_->after_forward(outputs, averages());
  }
}

bool Core::averages() const {
  return no_sync_depth_ == 0 && apart_ == 0 &&
         (!micro_batch_.has_value() || micro_batch_->ends_leaf());
}

void Core::deal_to(int64_t virtual_ranks) {
  ARGOSY_CHECK(join_ == nullptr, "parallel.ddp", "leaves cannot be dealt inside a join()");
  DdpOptions options = options_;
  options.virtual_ranks = virtual_ranks;
  const auto deal = deal_of(options, group_);
  if (deal->leaves() == deal_->leaves()) {
    return;
  }
  ARGOSY_CHECK(alone() || shards_ != nullptr || !reducer_->scatters(),
               "parallel.ddp",
               "the number of virtual ranks cannot change once gradients are scattered. Set it "
               "before distributed_optimizer(), or leave scatter_gradients out.");
  check_norms(*module_, *deal);
  ARGOSY_CHECK(
      sparse_.empty() || deal->leaves() == group_.size(),
      "parallel.ddp",
      "sparse gradients need as many processes as virtual ranks: here are {} processes for "
      "{}. Build the embedding with .sparse(false)",
      group_.size(),
      deal->leaves());
  check_one_follower(followers_.size(), *deal);
  if (compressor_.has_value()) {
    compressor_->deal(deal);
  }
  for (LeafFollower* const follower : followers_) {
    check_can_be_apart(*deal);
    follower->deal_to(deal);
  }
  options_ = options;
  deal_ = deal;
  spares_ = Spares(*deal_, group_, options_.timeout);
  micro_batch_.reset();
  if (!alone()) {
    reducer_->deal(deal_);
    listen_for_spares();
    return;
  }
  prepare();
  use_hook_of_one();
}

void Core::begin(const MicroBatch& micro_batch) {
  ARGOSY_CHECK(join_ == nullptr, "parallel.ddp", "begin() was called inside a join()");
  const int64_t mine = std::max<int64_t>(  // a spare begins as if it had one
      even_part(deal_->leaves(), group_.size(), group_.rank()).size(),
      1);
  ARGOSY_CHECK(micro_batch.leaves == mine && micro_batch.leaf >= 0 && micro_batch.leaf < mine &&
                   micro_batch.micro >= 0 && micro_batch.micro < micro_batch.micros,
               "parallel.ddp",
               "begin(): expected a micro-batch of {} virtual ranks, which this process has, got "
               "micro-batch {} of {} of virtual rank {} of {}. A wrapper made by hand takes "
               ".virtual_ranks, one by fleet::distributed_model() has the job's.",
               mine,
               micro_batch.micro,
               micro_batch.micros,
               micro_batch.leaf,
               micro_batch.leaves);
  if (alone()) {
    return;
  }
  if (micro_batch.begins_leaf()) {
    check_one_follower(followers_.size(), *deal_);
    for (LeafFollower* const follower : followers_) {
      follower->begin_leaf(micro_batch.leaf);
    }
  }
  if (apart_ > 0) {
    micro_batch_ = micro_batch;
    return;
  }
  if (micro_batch.begins_update() && micro_batch_.has_value()) {
    ARGOSY_CHECK(
        !reducer_->update_is_whole(),
        "parallel.ddp",
        "begin(): the update before has not been ended. Call end_update() after its passes "
        "and before optimizer.step().");
    abandon_update();
  }
  reducer_->begin(micro_batch);
  if (micro_batch.begins_update() && std::exchange(buffers_differ_, false) &&
      options_.broadcast_buffers) {
    sync_buffers();
  }
  leaf_buffers_.begin(micro_batch);
  micro_batch_ = micro_batch;
  if (micro_batch.begins_update()) {
    begin_extra_passes();
  } else if (micro_batch.leaf == 1 && micro_batch.begins_leaf()) {
    end_extra_passes();
  }
  // Here all processes are at the same point of all wrappers. In its first forward a wrapper's
  // passes may have begun on one process that are on another those of a later virtual rank.
  if (micro_batch.begins_update() && !spares_.is_one() && reducer_->rebuild_due()) {
    tell_spares(PassNews::What::kRebuild);
    rebuild(0);
  }
  // Nor may it change there the weights that others still read.
  if (micro_batch.begins_update() && format_.open && !first_passes_are_aligned() &&
      !std::exchange(shares_later_, true)) {
    unshare_parameters();
  }
}

void Core::end_update() {
  if (spares_.is_one()) {
    follow_until(PassNews::What::kEnd);
  } else {
    tell_spares(PassNews::What::kEnd);
  }
  if (values_ != nullptr && spares_.any()) {
    values_->set_apart(false);
  }
  for (LeafFollower* const follower : followers_) {
    follower->end_passes();
  }
  if (alone() || !micro_batch_.has_value()) {
    return;
  }
  micro_batch_.reset();
  leaf_buffers_.end_update();
  if (reducer_->end_update() && options_.broadcast_buffers) {
    sync_buffers();
  }
  if (std::exchange(shares_later_, false)) {
    share_parameters();
  }
}

void Core::abandon_update() noexcept {
  for (LeafFollower* const follower : followers_) {
    follower->end_passes();
  }
  if (!alone() && micro_batch_.has_value()) {
    micro_batch_.reset();
    if (values_ != nullptr) {
      values_->set_apart(false);
    }
    reducer_->abandon_update();
    leaf_buffers_.end_update();
    buffers_differ_ = true;
  }
}

bool Core::divide_step(const optim::Optimizer& optimizer, const DivideOptions& options) {
  const std::shared_ptr<optim::OptimizerImpl>& impl = optimizer.impl();
  impl->shard(nullptr);
  if (shards_ != nullptr) {
    return divide_sharded(optimizer, options);
  }
  if (!alone()) {
    divisions_->end(*impl);
    reducer_->update_late(*impl);
    reducer_->scatter(nullptr);
  }
  impl->divide(nullptr);  // by an earlier wrapper
  if (alone() || join_ != nullptr) {
    return false;
  }
  watch(optimizer);
  divisions_->agree(*impl, options);  // by now all ranks have ended theirs
  if (options.scatter_gradients || options.divide_state) {
    check_can_scatter(*impl, options);
  }
  if (options.overlap_update) {
    reducer_->update_early(impl);
  }
  if (divisions_->add(impl, options)) {
    return true;
  }
  const bool shards = options.scatter_gradients || options.divide_state;
  if (!shards || group_.size() == 1 || !impl->can_shard()) {
    return false;
  }
  if (options.scatter_gradients) {
    reducer_->scatter(pool_of_gradients());
  }
  divisions_->add_sharded(impl, parameters(), reducer_->plan(), !options.scatter_gradients);
  return true;
}

/// Each rank has its part of everything already.
bool Core::divide_sharded(const optim::Optimizer& optimizer, const DivideOptions& options) {
  constexpr const char* kWhere = "parallel.fully_shard";
  const std::shared_ptr<optim::OptimizerImpl>& impl = optimizer.impl();
  ARGOSY_CHECK(!options.share_parameters && !options.overlap_update,
               kWhere,
               "share_parameters and overlap_update are for ranks that have all parameters. Leave "
               "them out.");
  ARGOSY_CHECK(impl->can_shard(), kWhere, "the steps of this optimizer cannot be divided");
  impl->divide(nullptr);  // by an earlier wrapper
  watch(optimizer);
  divisions_->agree(*impl, options);
  impl->shard(shards_);
  steppers_.push_back(impl);
  return true;
}

void Core::check_can_scatter(const optim::OptimizerImpl& optimizer,
                             const DivideOptions& options) const {
  constexpr const char* kWhere = "parallel.ddp";
  ARGOSY_CHECK(
      !options.share_parameters && !options.overlap_update,
      kWhere,
      "{} excludes share_parameters and overlap_update, which are for ranks that share memory. "
      "Leave one of them out.",
      options.scatter_gradients ? "scatter_gradients" : "divide_state");
  if (!options.scatter_gradients) {
    return;
  }
  ARGOSY_CHECK(
      !compressor_.has_value(),
      kWhere,
      "scatter_gradients gives each rank a part of the gradients, and {} sends whole ones. "
      "Leave one of them out.",
      compressor_->name);
  check_has_all_parameters(optimizer, "scatter_gradients");
}

void Core::watch(const optim::Optimizer& optimizer) {
  if (!alone()) {
    reducer_->watch(optimizer.impl());
  }
}

void Core::unshare_parameters() {
  if (!alone()) {
    divisions_->unshare_parameters();
  }
}

void Core::share_parameters() {
  if (!alone()) {
    divisions_->share_parameters();
  }
}

void Core::follow_leaves(LeafFollower& follower) {
  follower.deal_to(deal_);
  followers_.push_back(&follower);
}

void Core::unfollow_leaves(const LeafFollower& follower) noexcept {
  std::erase(followers_, &follower);
}

/// Each would put the weights of another virtual rank into the model.
void Core::check_one_follower(size_t followers, const comm::LeafDeal& deal) const {
  ARGOSY_CHECK(followers <= 1 || deal.leaves() == group_.size(),
               "parallel.ddp",
               "two optimizers train the virtual ranks of one model apart (localsgd, diloco). Let "
               "go of one before you train with the other");
}

std::vector<at::Tensor> Core::buffers() const {
  return module_->buffers();
}

void Core::check_can_be_apart() const {
  check_can_be_apart(*deal_);
}

void Core::check_can_be_apart(const comm::LeafDeal& deal) const {
  ARGOSY_CHECK(join_ == nullptr, "parallel.ddp", "ranks cannot train apart inside of a join()");
  ARGOSY_CHECK(deal.leaves() >= group_.size(),
               "parallel.ddp",
               "between two sums each virtual rank trains weights of its own (localsgd, diloco), "
               "and a process without one has none: here are {} processes for {}. Start at most {}",
               group_.size(),
               deal.leaves(),
               deal.leaves());
  ARGOSY_CHECK(values_ == nullptr,
               "parallel.ddp",
               "ranks divide the parameters (sharding), and cannot have weights of their own "
               "(localsgd, diloco). Leave one of them out");
}

void Core::check_has_all_parameters(const optim::OptimizerImpl& optimizer,
                                    const std::string& way) const {
  for (size_t i = 0; i < table_.size(); ++i) {
    const at::Tensor& tensor = table_.tensors()[i];
    const auto is_it = [&](const auto& each) { return each.second.is_same(tensor); };
    ARGOSY_CHECK(std::ranges::any_of(optimizer.parameters(), is_it),
                 "parallel.ddp",
                 "{}: the optimizer lacks parameter {} of the model, whose gradients or weights "
                 "ranks would never bring together. Give one optimizer all parameters.",
                 way,
                 table_.name(i));
  }
}

void Core::set_apart(bool apart) {
  check_can_be_apart();
  if (apart && apart_ == 0 && !alone()) {
    divisions_->end_all();
    reducer_->update_late();
  }
  apart_ += apart ? 1 : -1;
}

void Core::begin_join(const JoinOptions& options) {
  ARGOSY_CHECK(join_ == nullptr, "parallel.join", "a join of this model is under way already");
  ARGOSY_CHECK(!compressor_.has_value(),
               "parallel.join",
               "{} remembers what it has not sent from update to update, and ranks that have "
               "finished make none. Leave it out, or give ranks equally many batches",
               compressor_->name);
  ARGOSY_CHECK(sparse_.empty(),
               "parallel.join",
               "ranks that have finished take no part in the exchange of sparse gradients. Build "
               "the embedding with .sparse(false), or give ranks equally many batches");
  ARGOSY_CHECK(apart_ == 0,
               "parallel.join",
               "join() is for gradients that ranks average, and here each rank trains weights of "
               "its own between two sums (localsgd, diloco)");
  ARGOSY_CHECK(!has_virtual_ranks(),
               "parallel.join",
               "join() needs as many processes as virtual ranks, here are {} processes for {}",
               group_.size(),
               deal_->leaves());
  if (divides_anything()) {
    (void)only_optimizer();
  }
  if (format_.open) {  // a rank without input cannot try, and the others must not wait for it
    use_format(engine::MemoryFormat::kAsIs, "a join began before the first forward");
  }
  if (alone()) {
    return;
  }
  join_ = std::make_unique<JoinSession>(group_, options, options_.timeout);
  reducer_->set_uneven_inputs(join_.get());
  if (divides_anything()) {
    announce_all(join_.get());
  } else {
    divisions_->end_all();
    reducer_->update_late();
  }
}

bool Core::divides_anything() const {
  return !alone() && (values_ != nullptr || reducer_->scatters() || divisions_->shards());
}

/// Those that are there, with steps that the ranks divide.
std::vector<std::shared_ptr<optim::OptimizerImpl>> Core::sharded_optimizers() const {
  if (values_ == nullptr) {
    return divisions_->sharded_optimizers();
  }
  std::vector<std::shared_ptr<optim::OptimizerImpl>> all;
  for (const auto& each : steppers_) {
    auto optimizer = each.lock();
    if (optimizer != nullptr && optimizer->sharded() == shards_.get() &&
        std::ranges::find(all, optimizer) == all.end()) {
      all.push_back(std::move(optimizer));
    }
  }
  return all;
}

/// Whose steps ranks that have finished make, too.
std::shared_ptr<optim::OptimizerImpl> Core::only_optimizer() const {
  const auto all = sharded_optimizers();
  ARGOSY_CHECK(all.size() == 1,
               "parallel.join",
               "ranks that have finished make the steps of the others for their parts, of one "
               "optimizer that was given to divide_step(): expected one, got {}",
               all.size());
  return all.front();
}

/// Whatever needs ranks that have finished; nullptr: nobody is told any longer.
void Core::announce_all(JoinSession* session) {
  const auto gathers = [session](AnnounceFlags what) -> std::function<void(uint32_t)> {
    return session == nullptr ? std::function<void(uint32_t)>() : [session, what](uint32_t unit) {
      session->tell({.flags = what, .detail = unit});
    };
  };
  std::function<void()> steps;
  std::function<void(PassNews::What)> passes;
  if (session != nullptr) {
    steps = [this, session] {
      session->announce_step(*only_optimizer(), reducer_->has_gradients());
    };
    passes = [this](PassNews::What what) { tell_in_join(what); };
  }
  reducer_->tell_spares_by(std::move(passes));
  if (reducer_->pool() != nullptr) {
    reducer_->pool()->tell_by(gathers(kGatherGradient));
  }
  if (values_ != nullptr) {
    values_->tell_by(gathers(kGather));
    shards_->tell_by(std::move(steps));
  } else {
    divisions_->tell_steps_by(steps);
  }
}

void Core::tell_in_join(PassNews::What what) {
  ARGOSY_CHECK(!optim::loss_scale_of_thread().has_value(),
               "parallel.join",
               "a GradScaler asks all ranks whether to step, and in a join() of divided "
               "parameters, gradients or state some have finished. Train in BFloat16, which needs "
               "none, or with equal numbers of batches");
  const auto announced = [&]() -> Announcement {
    switch (what) {
      case PassNews::What::kCleared:
        return {.flags = kCleared};
      case PassNews::What::kZeroed:
      case PassNews::What::kKept:
        return {.flags = kFound, .detail = what == PassNews::What::kZeroed ? 1U : 0U};
      case PassNews::What::kBucket:
        return {.flags = kBucket};
      default:
        return {.flags = kEndOfPass};
    }
  };
  join_->tell(announced());
}

/// What a rank without input does where ranks divide something.
void Core::follow_in_join(JoinSession& session, const Announcement& what) {
  switch (what.flags) {
    case kCleared:
      return reducer_->follow_cleared_gradients(/*to_zeros=*/false);
    case kFound:
      return what.detail == 1 ? reducer_->follow_cleared_gradients(/*to_zeros=*/true) : void();
    case kBackward:
      return reducer_->begin_shadow();
    case kBucket:
      return reducer_->shadow_bucket();
    case kEndOfPass:
      return reducer_->end_shadow();
    case kGather:
      return values_->follow(what.detail);
    case kGatherGradient:
      return reducer_->pool()->follow(what.detail);
    case kStep: {
      const std::shared_ptr<optim::OptimizerImpl> optimizer = only_optimizer();
      session.follow_rates(*optimizer);
      if (what.detail == 0) {
        optimizer->zero_grad({});
      }
      return optimizer->step();
    }
    default:
      return;  // what all wrappers have
  }
}

/// All ranks have finished, and are alike again.
void Core::end_join(JoinSession& session) {
  if (session.last_joiner() < 0) {
    return;
  }
  if (!divides_anything()) {
    return broadcast_model(session.last_joiner());
  }
  if (!buffers_.empty()) {
    buffers_.run(group_, session.last_joiner(), options_.timeout);
  }
  if (values_ != nullptr) {
    values_->set_apart(false);
    values_->forget_uses();
  }
}

void Core::finish_join() {
  if (alone()) {
    return;
  }
  const std::unique_ptr<JoinSession> session = std::move(join_);
  struct Detach {
    Core& core;
    explicit Detach(Core& attached) : core(attached) {}
    ~Detach() {
      core.announce_all(nullptr);  // whose session ends here
      core.reducer_->set_uneven_inputs(nullptr);
    }
    Detach(const Detach&) = delete;
    Detach& operator=(const Detach&) = delete;
  } const detach(*this);
  reducer_->check_ready_for_forward();
  const bool divides = divides_anything();
  if (divides) {
    announce_all(nullptr);
  }
  for (Announcement what = session->next(); what.flags != 0; what = session->next()) {
    if ((what.flags & kRebuild) != 0) {
      rebuild(session->lowest_active());
    }
    if ((what.flags & kBuffers) != 0) {
      buffers_.run(group_, session->lowest_active(), options_.timeout);
    }
    if (divides) {
      follow_in_join(*session, what);
    } else if ((what.flags & kBackward) != 0) {
      reducer_->shadow_backward();
    }
  }
  end_join(*session);
}

void Core::abandon_join() noexcept {
  if (!alone()) {
    announce_all(nullptr);
    reducer_->set_uneven_inputs(nullptr);
    join_.reset();
  }
}

void Core::register_compressor(const Compressor& compressor) {
  ARGOSY_CHECK(alone() || !reducer_->scatters(),
               "parallel.ddp",
               "{} sends whole gradients, and here each rank keeps a part of them "
               "(scatter_gradients). Leave one of them out.",
               compressor.name);
  ARGOSY_CHECK(!compressor_.has_value(),
               "parallel.ddp",
               "a gradient can be compressed once only; \"{}\" is registered",
               compressor_->name);
  compressor.deal(deal_);
  if (alone()) {
    register_comm_hook(compressor.hook, compressor.name);
  } else {
    reducer_->set_compressor(compressor.hook, compressor.name);
  }
  compressor_ = compressor;
}

/// Where there were no buckets before.
void Core::use_hook_of_one() {
  if (compressor_.has_value()) {
    reducer_->set_compressor(compressor_->hook, compressor_->name);
  } else if (hook_of_one_.has_value()) {
    reducer_->set_comm_hook(hook_of_one_->first, hook_of_one_->second);
  }
  hook_of_one_.reset();
}

void Core::register_comm_hook(CommHook hook, std::string name) {
  ARGOSY_CHECK(hook != nullptr, "parallel.ddp", "register_comm_hook: the hook is empty");
  if (!alone()) {
    reducer_->set_comm_hook(std::move(hook), std::move(name));
    return;
  }
  ARGOSY_CHECK(!hook_of_one_.has_value(),
               "parallel.ddp",
               "register_comm_hook can be called once only; \"{}\" is registered",
               hook_of_one_->second);
  hook_of_one_.emplace(std::move(hook), std::move(name));
}

void Core::sync_buffers() {
  if (apart_ == 0) {
    broadcast_buffers();
  }
}

void Core::broadcast_buffers() {
  if (!alone() && !buffers_.empty()) {
    buffers_.run(group_, 0, options_.timeout);
  }
}

CommunicationTimes Core::communication_times() const {
  return alone() ? CommunicationTimes() : reducer_->communication_times();
}

DdpStats Core::stats() const {
  DdpStats out;
  if (!alone()) {
    reducer_->fill(out);
  } else if (hook_of_one_.has_value()) {
    out.comm_hook = hook_of_one_->second;
  }
  out.memory_format = format_.open ? "auto" : engine::to_string(format_.format);
  out.memory_format_reason = format_.reason;
  out.rank = group_.rank();
  out.world_size = group_.size();
  out.parameters = table_.size();
  for (const at::Tensor& tensor : table_.tensors()) {
    out.parameter_bytes += static_cast<int64_t>(tensor.nbytes());
  }
  out.forward = forward_time_;
  return out;
}

}  // namespace argosy::parallel::ddp
