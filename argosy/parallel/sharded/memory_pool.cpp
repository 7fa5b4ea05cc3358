#include "argosy/parallel/sharded/memory_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/comm/collectives.h"
#include "argosy/engine/memory_count.h"
#include "argosy/engine/parts.h"

namespace argosy::parallel::sharded {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

/// Nothing here is the program's: no graph, nobody who listens.
struct Apart {
  at::NoGradGuard no_grad{};
  at::DisableRecordFunctionGuard unseen{};
};

/// Memory of zeros that stays long, on the CPU in pages of its own: between activations it would
/// leave gaps when it goes that nothing fills.
at::Tensor lasting(int64_t elements, const at::TensorOptions& options) {
  constexpr size_t kWorthPages = size_t{1} << 18U;
  const size_t bytes = static_cast<size_t>(elements) * options.dtype().itemsize();
  if (options.device() != at::kCPU || bytes < kWorthPages) {
    return at::zeros({elements}, options);
  }
  void* const data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return at::zeros({elements}, options);
  }
  const auto count = std::make_shared<const engine::CountedMemory>(bytes);
  return at::from_blob(
      data, {elements}, [bytes, count](void* used) { ::munmap(used, bytes); }, options);
}

}  // namespace

// --- The pool ----------------------------------------------------------------------------------

at::Tensor MemoryPool::make(int64_t elements, const at::TensorOptions& options) {
  ARGOSY_INVARIANT(elements % group_.size() == 0, "parallel.sharded.make");
  const auto number = static_cast<uint32_t>(all_.size() + 1);
  const at::ScalarType type = c10::typeMetaToScalarType(options.dtype());
  const bool changes =
      options_.whole_type.has_value() && at::isFloatingType(type) && type != at::kDouble;
  const at::TensorOptions whole =
      options.requires_grad(false).dtype(changes ? *options_.whole_type : type);
  const auto memory = std::make_shared<ShardedMemory>(
      shared_from_this(), number, elements, whole, whole.dtype(changes ? at::kFloat : type));
  all_.push_back(memory.get());
  memory->is_stale_ = memory->shared_.defined();  // what it gets first
  stale_ = stale_ || memory->is_stale_;
  return memory->make_flat(elements, whole);
}

/// Returns zeros that all ranks see; undefined: they cannot. Collective.
at::Tensor MemoryPool::make_shared(int64_t elements, const at::TensorOptions& options) const {
  if (!options_.share || !options.device().is_cpu() || elements == 0) {
    return {};
  }
  if (group_.size() == 1) {
    return lasting(elements, options);
  }
  const size_t bytes = static_cast<size_t>(elements) * options.dtype().itemsize();
  const std::shared_ptr<comm::SharedBlock> block =
      comm::share_memory(bytes, group_, {.timeout = options_.timeout});
  if (block == nullptr) {
    return {};
  }
  const auto count = std::make_shared<const engine::CountedMemory>(
      bytes / static_cast<size_t>(group_.size()));  // what this rank adds
  return at::from_blob(
      block->bytes().data(), {elements}, [block, count](void* /*used*/) {}, options);
}

at::Tensor MemoryPool::make_part(int64_t elements,
                                 const at::TensorOptions& whole,
                                 const at::TensorOptions& part) const {
  return options_.make_part != nullptr && whole.dtype() != part.dtype()
             ? options_.make_part(elements, part)
             : lasting(elements, part);
}

at::Tensor gather_ranges(const at::Tensor& like,
                         const at::Tensor& part,
                         const std::vector<IndexRange>& ranges,
                         const comm::Group& group,
                         std::chrono::milliseconds timeout) {
  const Apart apart;
  at::Tensor whole = at::empty_strided(like.sizes(), like.strides(), part.options());
  const int64_t most = std::ranges::max(ranges, {}, &IndexRange::size).size();
  if (most == 0) {
    return whole;
  }
  const at::Tensor mine = at::zeros({most}, part.options());
  mine.narrow(0, 0, part.numel()).copy_(part);
  const std::vector<at::Tensor> all =
      at::empty({most * group.size()}, part.options()).chunk(group.size());
  comm::all_gather(all, mine, group, {.timeout = timeout});
  for (std::size_t rank = 0; rank < ranges.size(); ++rank) {
    engine::elements_of(whole, ranges[rank]).copy_(all[rank].narrow(0, 0, ranges[rank].size()));
  }
  return whole;
}

std::vector<at::Tensor> MemoryPool::parts_by_rank(const at::Tensor& flat) const {
  const std::vector<at::Tensor> parts = flat.chunk(group_.size());
  std::vector<at::Tensor> ordered;
  for (const int part : options_.parts) {
    ordered.push_back(parts[static_cast<std::size_t>(part)]);
  }
  return ordered.empty() ? parts : ordered;
}

int MemoryPool::own_part() const {
  return options_.parts.empty() ? group_.rank()
                                : options_.parts[static_cast<std::size_t>(group_.rank())];
}

void MemoryPool::begin_sequence() {
  const Lock lock(mutex_);
  if (!history_.now.empty()) {
    history_.last = std::exchange(history_.now, {});
  }
  history_.place = 0;
}

void MemoryPool::free_spare() {
  const Lock lock(mutex_);
  spare_.clear();
}

void MemoryPool::begin_writes() {
  const Lock lock(mutex_);
  for (const ShardedMemory* const memory : all_) {
    ARGOSY_CHECK(memory == nullptr || memory->holds_ == 0,
                 "parallel.fully_shard",
                 "optimizer.step() was called while whole_parameters() holds the values that it "
                 "is about to change. Let the guard go first");
  }
  for (ShardedMemory* const memory : std::vector<ShardedMemory*>(whole_)) {
    memory->keep();
  }
  if (!shared().empty()) {
    meet("nobody reads the values that an update is about to change");
    hand_out();
    in_step_ = true;
  }
}

void MemoryPool::end_writes() {
  const Lock lock(mutex_);
  if (!in_step_) {
    return stale_ ? publish() : void();
  }
  hand_out();
  meet("all have written the values that they have updated");
  in_step_ = false;  // not if that fails: a rank may have written a part, and nobody is to read it
  ++publications_;
}

std::vector<ShardedMemory*> MemoryPool::shared() const {
  std::vector<ShardedMemory*> found;
  std::ranges::copy_if(all_, std::back_inserter(found), [](const ShardedMemory* memory) {
    return memory != nullptr && memory->shared_.defined();
  });
  return found;
}

/// Where ranks have written parts outside of a step: all see them from then on.
void MemoryPool::publish() {
  for (ShardedMemory* const memory : shared()) {
    memory->take_over();
  }
  meet("nobody reads the values that were written outside of a step");
  hand_out();
  stale_ = true;  // if the next one fails: nobody is to read what a rank may have written in part
  meet("all have written them");
  stale_ = false;
  ++publications_;
}

void MemoryPool::hand_out() {
  const Apart apart;
  for (ShardedMemory* const memory : shared()) {
    memory->hand_out();
  }
  stale_ = false;
}

void MemoryPool::meet(const char* until) {
  const auto words = [until](const CommError& error) {
    return fmt::format("ranks that share parameters wait until {}: {}", until, error.what());
  };
  try {
    comm::barrier(group_, {.timeout = options_.timeout});
  } catch (const TimeoutError& error) {
    throw TimeoutError("parallel.fully_shard", words(error), error.context());
  } catch (const CommError& error) {
    throw CommError("parallel.fully_shard", words(error), error.context());
  }
}

/// Before shared values are read.
void MemoryPool::see_all_parts() {
  if (in_step_) {
    end_writes();
  } else if (stale_) {
    if (tell_ != nullptr) {
      tell_(kPublication | publications_);
    }
    publish();
  }
}

void MemoryPool::tell_by(std::function<void(uint32_t told)> tell) {
  const Lock lock(mutex_);
  tell_ = std::move(tell);
}

/// Whether it is whole here, too, does not matter.
void MemoryPool::follow(uint32_t told) {
  const Apart apart;
  const Lock lock(mutex_);
  if (is_publication(told)) {  // which may have happened before it was told
    return told == (kPublication | publications_) ? publish() : void();
  }
  ARGOSY_INVARIANT(told - 1 < all_.size() && all_[told - 1] != nullptr, "parallel.sharded.follow");
  ShardedMemory& memory = *all_[told - 1];
  memory.take_over();
  at::Tensor whole = take(memory.elements(), memory.options_);
  gather(memory, whole).wait();
  give(std::move(whole));
}

void MemoryPool::set_apart(bool apart) {
  const Lock lock(mutex_);
  for (ShardedMemory* const memory : std::vector<ShardedMemory*>(whole_)) {
    if (memory->holds_ == 0) {
      memory->keep();
    }
  }
  if (std::exchange(apart_, apart) != apart) {
    std::swap(history_, other_history_);
  }
}

void MemoryPool::forget_uses() {
  const Lock lock(mutex_);
  history_ = {};
}

void MemoryPool::hold(const std::vector<std::shared_ptr<ShardedMemory>>& memories) {
  const Apart apart;
  const Lock lock(mutex_);
  try {
    for (const auto& memory : memories) {
      if (!memory->is_whole()) {
        memory->start();
      }
    }
    for (const auto& memory : memories) {
      memory->finish();
    }
  } catch (...) {
    for (const auto& memory : memories) {
      memory->let_go();
    }
    throw;
  }
  for (const auto& memory : memories) {
    ++memory->holds_;
  }
}

void MemoryPool::release(const std::vector<std::shared_ptr<ShardedMemory>>& memories) {
  const Lock lock(mutex_);
  for (const auto& memory : memories) {
    memory->holds_ = std::max(0, memory->holds_ - 1);
    if (memory->holds_ == 0) {
      memory->keep();
    }
  }
}

void MemoryPool::check() {
  const Lock lock(mutex_);
  if (error_ != nullptr) {
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void MemoryPool::use(ShardedMemory& memory, bool writes) noexcept {
  const Lock lock(mutex_);
  ++memory.uses_;
  try {
    const Apart apart;
    if (memory.shared_.defined() && !memory.memory_.defined()) {
      memory.start();
      if (!writes) {
        return;
      }
      memory.copy_shared();
    }
    bring(memory);
    memory.dirty_ = memory.dirty_ || writes;
  } catch (...) {
    error_ = error_ == nullptr ? std::current_exception() : error_;
    const Apart apart;
    memory.let_go();  // it is not whole: the next use tries again
    memory.shared_is_lent_ = false;
    memory.lend_nothing();
    memory.has_nothing_ = true;
  }
}

void MemoryPool::bring(ShardedMemory& memory) {
  if (!whole_.empty() && whole_.back() == &memory && !memory.is_coming_) {
    return;
  }
  if (!memory.memory_.defined()) {
    memory.start();
  }
  go_ahead(memory);
  memory.finish();
  std::erase(whole_, &memory);
  whole_.push_back(&memory);
  shrink(memory);
}

/// Begins to gather what came after this one the last time.
void MemoryPool::go_ahead(ShardedMemory& memory) {
  if (!options_.ahead || memory.holds_ > 0 ||
      memory.shared_.defined()) {  // ranks may do different things then
    return;
  }
  auto& [now, last, place] = history_;
  now.push_back(&memory);
  const auto from = last.begin() + static_cast<std::ptrdiff_t>(std::min(place, last.size()));
  const auto found = std::find(from, last.end(), &memory);
  if (found == last.end()) {
    return;
  }
  place = static_cast<std::size_t>(found - last.begin()) + 1;
  if (place < last.size() && !last[place]->memory_.defined()) {
    last[place]->start();
  }
}

comm::Work MemoryPool::gather(const ShardedMemory& memory, const at::Tensor& whole) {
  return comm::all_gather_async(
      parts_by_rank(whole),
      memory.part_.to(whole.scalar_type()),
      group_,
      {.timeout = options_.timeout, .place = {.update = 1, .pass = 1, .unit = memory.number_}});
}

void MemoryPool::shrink(const ShardedMemory& current) {
  const auto may_go = [&](const ShardedMemory* each) {
    return each != &current && !each->is_coming_ && !each->is_room_ && each->holds_ == 0 &&
           each->uses_ == 0 && !(options_.keeps_written && each->dirty_);
  };
  auto others = static_cast<std::size_t>(std::ranges::count_if(whole_, may_go));
  for (ShardedMemory* const each : std::vector<ShardedMemory*>(whole_)) {
    if (others > options_.kept && may_go(each)) {
      each->keep();
      --others;
    }
  }
}

at::Tensor MemoryPool::take(int64_t elements, const at::TensorOptions& options) {
  const auto fits = [&](const at::Tensor& each) {
    return each.dtype() == options.dtype() && each.numel() >= elements &&
           each.numel() <= elements + elements / 2;
  };
  const auto found = std::ranges::find_if(spare_, fits);
  if (found == spare_.end()) {
    return options.device().is_cpu() ? lasting(elements, options) : at::empty({elements}, options);
  }
  const at::Tensor taken = *found;
  spare_.erase(found);
  const at::AutoDispatchBelowADInplaceOrView plain;  // a view would keep what it is a view of
  return taken.narrow(0, 0, elements);
}

void MemoryPool::give(at::Tensor memory) {
  const std::size_t most = options_.kept > 8 ? 0 : options_.kept + 2;
  if (!memory.defined() || !memory.is_cpu() || memory.storage().use_count() > 1 || most == 0) {
    return;  // others allocate by stream; or somebody still has it
  }
  const auto all = static_cast<int64_t>(memory.storage().nbytes() / memory.element_size());
  const at::AutoDispatchBelowADInplaceOrView plain;
  spare_.push_back(memory.as_strided({all}, {1}, 0));
  if (spare_.size() > most) {
    spare_.erase(spare_.begin());
  }
}

void MemoryPool::forget(ShardedMemory& memory) {
  const Lock lock(mutex_);
  for (auto* list :
       {&whole_, &history_.now, &history_.last, &other_history_.now, &other_history_.last}) {
    std::erase(*list, &memory);
  }
  std::ranges::replace(all_, &memory, nullptr);
  history_.place = other_history_.place = 0;
}

// --- One memory --------------------------------------------------------------------------------

ShardedMemory::ShardedMemory(std::shared_ptr<MemoryPool> pool,
                             uint32_t number,
                             int64_t elements,
                             const at::TensorOptions& whole,
                             const at::TensorOptions& part)
    : pool_(std::move(pool)),
      number_(number),
      options_(whole),
      shared_(pool_->make_shared(elements, whole)),
      part_(shared_.defined() && whole.dtype() == part.dtype()
                ? shared_.chunk(pool_->group().size())[static_cast<size_t>(pool_->own_part())]
                : pool_->make_part(elements / pool_->group().size(), whole, part)) {}

ShardedMemory::~ShardedMemory() {
  pool_->forget(*this);
}

std::shared_ptr<ShardedMemory> ShardedMemory::of(const at::Tensor& tensor) {
  return std::dynamic_pointer_cast<ShardedMemory>(engine::coming_memory_of(tensor));
}

at::Tensor ShardedMemory::part() {
  const Lock lock(pool_->mutex_);
  take_over();
  return part_;
}

at::ScalarType ShardedMemory::part_type() const {
  const Lock lock(pool_->mutex_);
  return part_.scalar_type();
}

IndexRange ShardedMemory::range_of_part(const at::Tensor& view, int number) const {
  const auto within = [&](int64_t part) {
    return std::clamp<int64_t>(part * part_elements() - view.storage_offset(), 0, view.numel());
  };
  return {within(number), within(number + 1)};
}

at::Tensor ShardedMemory::gather(const at::Tensor& view, const at::Tensor& part) {
  const std::vector<int>& parts = pool_->options_.parts;
  std::vector<IndexRange> ranges;
  for (int rank = 0; rank < pool_->group().size(); ++rank) {
    ranges.push_back(
        range_of_part(view, parts.empty() ? rank : parts[static_cast<std::size_t>(rank)]));
  }
  return gather_ranges(view, part, ranges, pool_->group(), pool_->options_.timeout);
}

at::Tensor ShardedMemory::part_of(const at::Tensor& view) {
  const IndexRange range = range_of(view);
  const int64_t first =
      range.size() == 0 ? 0
                        : view.storage_offset() + range.begin - pool_->own_part() * part_elements();
  return part().narrow(0, first, range.size());
}

at::Tensor ShardedMemory::part_to_write(const at::Tensor& view) {
  const Lock lock(pool_->mutex_);
  keep();
  make_writable();
  return part_of(view);
}

std::optional<engine::TensorPart> ShardedMemory::own_part(const at::Tensor& view, bool to_write) {
  const Lock lock(pool_->mutex_);
  if (to_write && holds_ > 0) {
    return std::nullopt;
  }
  return engine::TensorPart{range_of(view),
                            to_write ? part_to_write(view) : part_of(view).to(view.scalar_type())};
}

bool ShardedMemory::make_room() {
  const Apart apart;
  const Lock lock(pool_->mutex_);
  is_room_ = true;
  if (memory_.defined()) {
    finish();
    return false;
  }
  memory_ = pool_->take(elements(), options_);
  lend(memory_);
  pool_->whole_.push_back(this);
  return true;
}

void ShardedMemory::note_write() {
  const Lock lock(pool_->mutex_);
  dirty_ = memory_.defined();
}

bool ShardedMemory::is_whole() const {
  const Lock lock(pool_->mutex_);
  return memory_.defined();
}

at::Tensor ShardedMemory::whole() const {
  const Lock lock(pool_->mutex_);
  return is_coming_ ? at::Tensor() : memory_.defined() ? memory_ : shared_;
}

void ShardedMemory::drop() {
  const Lock lock(pool_->mutex_);
  let_go();
  holds_ = 0;
}

/// What stopped its gather is told by the next check().
void ShardedMemory::let_go() noexcept {
  try {
    if (std::exchange(is_coming_, false)) {
      std::exchange(coming_, comm::Work()).wait();
    }
  } catch (...) {
    pool_->error_ = pool_->error_ == nullptr ? std::current_exception() : pool_->error_;
  }
  dirty_ = is_room_ = false;
  if (memory_.defined()) {
    take_back();
    shared_is_lent_ = false;
  }
  pool_->give(std::exchange(memory_, at::Tensor()));
  std::erase(pool_->whole_, this);
}

void ShardedMemory::keep() {
  const Lock lock(pool_->mutex_);
  take_over();
  drop();
}

void ShardedMemory::after_use() noexcept {
  const Lock lock(pool_->mutex_);
  if (--uses_ == 0 && std::exchange(has_nothing_, false) && !memory_.defined() &&
      !shared_is_lent_) {
    take_back();
  }
}

at::Tensor ShardedMemory::own_range(const at::Tensor& whole) const {
  return whole.narrow(0, pool_->own_part() * part_elements(), part_elements());
}

/// The others go on reading shared values outside of a step.
void ShardedMemory::make_writable() {
  if (!shared_.defined()) {
    return;
  }
  is_stale_ = pool_->stale_ = true;
  if (!pool_->in_step_ && part_.data_ptr() == own_range(shared_).data_ptr()) {
    const Apart apart;
    part_ = lasting(part_.numel(), part_.options()).copy_(part_);
  }
}

/// Puts the part where all ranks read it.
void ShardedMemory::hand_out() {
  if (!std::exchange(is_stale_, false)) {
    return;
  }
  const at::Tensor own = own_range(shared_);
  if (own.data_ptr() != part_.data_ptr()) {
    own.copy_(part_);
    part_ = own.dtype() == part_.dtype() ? own : part_;
  }
}

/// What is written into the copy is this rank's own until it is taken over.
void ShardedMemory::copy_shared() {
  memory_ = pool_->take(elements(), options_);
  lend(memory_.copy_(shared_));
}

void ShardedMemory::start() {
  if (shared_.defined()) {
    pool_->see_all_parts();
    if (!std::exchange(shared_is_lent_, true)) {
      lend(shared_);
    }
    return;
  }
  memory_ = pool_->take(elements(), options_);
  try {
    if (pool_->tell_ != nullptr) {
      pool_->tell_(number_);
    }
    coming_ = pool_->gather(*this, memory_);
  } catch (...) {
    memory_ = at::Tensor();
    throw;
  }
  is_coming_ = true;
  pool_->whole_.push_back(this);
}

void ShardedMemory::finish() {
  if (!std::exchange(is_coming_, false)) {
    return;
  }
  try {
    std::exchange(coming_, comm::Work()).wait();  // which would keep the memory
  } catch (...) {
    let_go();
    throw;
  }
  lend(memory_);
}

/// What was written into the whole.
void ShardedMemory::take_over() {
  if (!dirty_) {
    return;
  }
  dirty_ = uses_ > 0;  // an operator may be about to write
  const Apart apart;
  make_writable();
  const at::Tensor written = own_range(memory_);
  if (!pool_->options_.has_masters || written.scalar_type() == part_.scalar_type()) {
    part_.copy_(written);
    return;
  }
  const at::Tensor same = written.eq(part_.to(written.scalar_type()));
  part_.copy_(at::where(same, part_, written.to(part_.scalar_type())));
}

}  // namespace argosy::parallel::sharded
