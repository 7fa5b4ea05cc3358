#include "argosy/data/tensor_pool.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include <torch/types.h>

#include "argosy/base/check.h"

namespace argosy::data {
namespace {

constexpr size_t kAlignment = 64;

void check_format(at::IntArrayRef sizes, at::MemoryFormat format) {
  const bool channels_last = format == at::MemoryFormat::ChannelsLast;
  ARGOSY_CHECK(channels_last || format == at::MemoryFormat::Contiguous,
               "data.TensorPool",
               "memory format must be Contiguous or ChannelsLast");
  ARGOSY_CHECK(!channels_last || sizes.size() == 4,
               "data.TensorPool",
               "expected four dimensions for ChannelsLast, got {}",
               sizes.size());
}

std::shared_ptr<void> ordinary_memory(size_t bytes) {
  void* const memory = std::aligned_alloc(kAlignment, bytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return {memory, &std::free};
}

}  // namespace

/// Shared by the pool and by every tensor that came from it.
struct TensorPool::State {
  explicit State(const Options& options)
      : keep(options.keep), allocate(options.allocate ? options.allocate : &ordinary_memory) {}

  struct Block {
    std::shared_ptr<void> memory;
    size_t capacity;
  };

  Block take(size_t bytes) {
    {
      const std::lock_guard lock(mutex);
      // The smallest that fits, unless more than half of it would lie idle.
      const auto it = unused.lower_bound(bytes);
      if (it != unused.end() && it->first / 2 <= bytes) {
        Block block{std::move(it->second), it->first};
        unused.erase(it);
        ++reused;
        return block;
      }
    }
    const size_t capacity = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    Block block{allocate(capacity), capacity};
    const std::lock_guard lock(mutex);
    ++allocated;
    held_bytes += capacity;
    return block;
  }

  void give_back(const Block& block) noexcept {
    {
      const std::lock_guard lock(mutex);
      if (unused.size() < keep) {
        try {
          unused.emplace(block.capacity, block.memory);
          return;
        } catch (const std::bad_alloc&) {  // no room for the book entry: let the block go
        }
      }
      held_bytes -= block.capacity;
    }
  }

  const size_t keep;
  const decltype(Options::allocate) allocate;
  std::mutex mutex;
  std::multimap<size_t, std::shared_ptr<void>> unused;  // by capacity
  size_t allocated = 0;
  size_t reused = 0;
  size_t held_bytes = 0;
};

TensorPool::TensorPool() : TensorPool(Options()) {}
TensorPool::TensorPool(const Options& options) : state_(std::make_shared<State>(options)) {}

at::Tensor TensorPool::empty(at::IntArrayRef sizes, at::ScalarType dtype, at::MemoryFormat format) {
  check_format(sizes, format);
  const auto options = at::TensorOptions().dtype(dtype);
  const size_t bytes = c10::multiply_integers(sizes) * c10::elementSize(dtype);
  if (bytes == 0) {
    return at::empty(sizes, options, format);
  }
  const State::Block block = state_->take(bytes);
  // The deleter belongs to the storage, which views share: it runs when the last of them is gone.
  const auto give_back = [state = state_, block](void*) { state->give_back(block); };
  if (format == at::MemoryFormat::ChannelsLast) {
    return at::from_blob(
        block.memory.get(), sizes, c10::get_channels_last_strides_2d(sizes), give_back, options);
  }
  return at::from_blob(block.memory.get(), sizes, give_back, options);
}

void TensorPool::Stats::add(const Stats& other) {
  allocated += other.allocated;
  reused += other.reused;
  unused += other.unused;
  bytes += other.bytes;
}

TensorPool::Stats TensorPool::stats() const {
  const std::lock_guard lock(state_->mutex);
  return {state_->allocated, state_->reused, state_->unused.size(), state_->held_bytes};
}

}  // namespace argosy::data
