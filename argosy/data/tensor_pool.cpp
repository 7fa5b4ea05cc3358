#include "argosy/data/tensor_pool.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include <torch/types.h>

namespace argosy::data {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

/// Shared by the pool and by every tensor that came from it.
struct TensorPool::State {
  explicit State(const Options& options) : keep(options.keep) {}
  ~State() {
    for (const auto& [capacity, memory] : unused) {
      std::free(memory);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  struct Block {
    void* memory;
    size_t capacity;
  };

  Block take(size_t bytes) {
    {
      const std::lock_guard lock(mutex);
      // The smallest that fits, unless more than half of it would lie idle.
      const auto it = unused.lower_bound(bytes);
      if (it != unused.end() && it->first / 2 <= bytes) {
        const Block block{it->second, it->first};
        unused.erase(it);
        ++reused;
        return block;
      }
      ++allocated;
    }
    const size_t capacity = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, capacity);
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    return {memory, capacity};
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
    }
    std::free(block.memory);
  }

  const size_t keep;
  std::mutex mutex;
  std::multimap<size_t, void*> unused;  // by capacity
  size_t allocated = 0;
  size_t reused = 0;
};

TensorPool::TensorPool() : TensorPool(Options()) {}
TensorPool::TensorPool(const Options& options) : state_(std::make_shared<State>(options)) {}

at::Tensor TensorPool::empty(at::IntArrayRef sizes, at::ScalarType dtype) {
  const auto options = at::TensorOptions().dtype(dtype);
  const size_t bytes = c10::multiply_integers(sizes) * c10::elementSize(dtype);
  if (bytes == 0) {
    return at::empty(sizes, options);
  }
  const State::Block block = state_->take(bytes);
  // The deleter belongs to the storage, which views share: it runs when the last of them is gone.
  return at::from_blob(
      block.memory, sizes, [state = state_, block](void*) { state->give_back(block); }, options);
}

TensorPool::Stats TensorPool::stats() const {
  const std::lock_guard lock(state_->mutex);
  return {state_->allocated, state_->reused, state_->unused.size()};
}

}  // namespace argosy::data
