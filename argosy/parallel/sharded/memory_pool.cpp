#include "argosy/parallel/sharded/memory_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"
#include "argosy/engine/memory_count.h"

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
  const auto memory =
      std::make_shared<ShardedMemory>(shared_from_this(), ++made_, elements, options);
  return memory->make_flat(elements, options.requires_grad(false));
}

std::vector<at::Tensor> parts_of(const at::Tensor& flat, int count, const std::vector<int>& order) {
  const std::vector<at::Tensor> parts = flat.chunk(count);
  std::vector<at::Tensor> ordered;
  for (const int part : order) {
    ordered.push_back(parts[static_cast<std::size_t>(part)]);
  }
  return order.empty() ? parts : ordered;
}

std::vector<at::Tensor> MemoryPool::parts_by_rank(const at::Tensor& flat) const {
  return parts_of(flat, group_.size(), options_.parts);
}

int MemoryPool::own_part() const {
  return options_.parts.empty() ? group_.rank()
                                : options_.parts[static_cast<std::size_t>(group_.rank())];
}

void MemoryPool::begin_sequence() {
  const Lock lock(mutex_);
  if (!sequence_.empty()) {
    last_sequence_ = std::exchange(sequence_, {});
  }
  place_ = 0;
}

void MemoryPool::free_spare() {
  const Lock lock(mutex_);
  spare_.clear();
}

void MemoryPool::drop_all() {
  const Lock lock(mutex_);
  for (ShardedMemory* const memory : std::vector<ShardedMemory*>(whole_)) {
    ARGOSY_CHECK(memory->holds_ == 0,
                 "parallel.fully_shard",
                 "optimizer.step() was called while whole_parameters() holds the values that it "
                 "is about to change. Let the guard go first");
    memory->keep();
  }
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
    bring(memory);
    memory.dirty_ = memory.dirty_ || writes;
  } catch (...) {
    error_ = error_ == nullptr ? std::current_exception() : error_;
    const Apart apart;
    memory.is_coming_ = false;
    memory.memory_ = at::full({memory.share() * group_.size()},
                              std::numeric_limits<double>::quiet_NaN(),
                              memory.part_.options());
    memory.lend(memory.memory_);
  }
}

void MemoryPool::bring(ShardedMemory& memory) {
  if (!whole_.empty() && whole_.back() == &memory && !memory.is_coming_) {
    return;
  }
  if (!memory.memory_.defined()) {
    memory.start();
  }
  follow(memory);
  memory.finish();
  std::erase(whole_, &memory);
  whole_.push_back(&memory);
  shrink(memory);
}

/// Begins to gather what came after this one the last time.
void MemoryPool::follow(ShardedMemory& memory) {
  if (!options_.ahead || memory.holds_ > 0) {  // ranks may do different things then
    return;
  }
  sequence_.push_back(&memory);
  const auto from =
      last_sequence_.begin() + static_cast<std::ptrdiff_t>(std::min(place_, last_sequence_.size()));
  const auto found = std::find(from, last_sequence_.end(), &memory);
  if (found == last_sequence_.end()) {
    return;
  }
  place_ = static_cast<std::size_t>(found - last_sequence_.begin()) + 1;
  if (place_ < last_sequence_.size() && !last_sequence_[place_]->memory_.defined()) {
    last_sequence_[place_]->start();
  }
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
    return lasting(elements, options);
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

void MemoryPool::forget(const ShardedMemory& memory) {
  const Lock lock(mutex_);
  for (auto* list : {&whole_, &sequence_, &last_sequence_}) {
    std::erase(*list, &memory);
  }
  place_ = 0;
}

// --- One memory --------------------------------------------------------------------------------

ShardedMemory::ShardedMemory(std::shared_ptr<MemoryPool> pool,
                             uint32_t number,
                             int64_t elements,
                             const at::TensorOptions& options)
    : pool_(std::move(pool)),
      number_(number),
      part_(lasting(elements / pool_->group().size(), options.requires_grad(false))) {}

ShardedMemory::~ShardedMemory() {
  pool_->forget(*this);
}

std::shared_ptr<ShardedMemory> ShardedMemory::of(const at::Tensor& tensor) {
  return std::dynamic_pointer_cast<ShardedMemory>(engine::coming_memory_of(tensor));
}

const at::Tensor& ShardedMemory::part() {
  const Lock lock(pool_->mutex_);
  take_over();
  return part_;
}

IndexRange ShardedMemory::range_of(const at::Tensor& view) const {
  const auto within = [&](int64_t rank) {
    return std::clamp<int64_t>(rank * share() - view.storage_offset(), 0, view.numel());
  };
  return {within(pool_->own_part()), within(pool_->own_part() + 1)};
}

at::Tensor ShardedMemory::part_of(const at::Tensor& view) {
  const IndexRange range = range_of(view);
  const int64_t first =
      range.size() == 0 ? 0 : view.storage_offset() + range.begin - pool_->own_part() * share();
  return part().narrow(0, first, range.size());
}

at::Tensor ShardedMemory::part_to_write(const at::Tensor& view) {
  const Lock lock(pool_->mutex_);
  keep();
  return part_of(view);
}

bool ShardedMemory::make_room() {
  const Apart apart;
  const Lock lock(pool_->mutex_);
  is_room_ = true;
  if (memory_.defined()) {
    finish();
    return false;
  }
  memory_ = pool_->take(share() * pool_->group().size(), part_.options());
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
  return is_coming_ ? at::Tensor() : memory_;
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
  take_back();
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
  --uses_;
}

void ShardedMemory::start() {
  memory_ = pool_->take(share() * pool_->group().size(), part_.options());
  try {
    coming_ = comm::all_gather_async(
        pool_->parts_by_rank(memory_),
        part_,
        pool_->group(),
        {.timeout = pool_->options_.timeout, .place = {.update = 1, .pass = 1, .unit = number_}});
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
  if (std::exchange(dirty_, false)) {
    const Apart apart;
    part_.copy_(memory_.narrow(0, pool_->own_part() * share(), share()));
  }
}

}  // namespace argosy::parallel::sharded
