#include "argosy/engine/memory_count.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "argosy/engine/version.h"

namespace argosy::engine {
namespace {

std::atomic<int64_t> held = 0;
std::atomic<int64_t> most_held = 0;

void add_to_count(int64_t bytes) {
  const int64_t now = held.fetch_add(bytes) + bytes;
  int64_t most = most_held.load();
  while (now > most && !most_held.compare_exchange_weak(most, now)) {
  }
}

/// libtorch's allocator, of whose blocks we know the sizes.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator& base) : base_(base) {}

#if ARGOSY_TORCH_AT_LEAST(2, 3)
  c10::DataPtr allocate(size_t bytes) override {
    return counted(bytes);
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
#else
  c10::DataPtr allocate(size_t bytes) const override {
    return counted(bytes);
  }
#endif
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_counted;
  }

  static CountingAllocator& installed() {
    // For ever: blocks may be freed while the process ends.
    static auto* const allocator = new CountingAllocator(*c10::GetCPUAllocator());
    return *allocator;
  }

 private:
  c10::DataPtr counted(size_t bytes) const {
    void* const data = base_.raw_allocate(bytes);
    if (data != nullptr) {
      const std::lock_guard lock(mutex_);
      sizes_[data] = bytes;
      add_to_count(static_cast<int64_t>(bytes));
    }
    return {data, data, &free_counted, c10::Device(c10::DeviceType::CPU)};
  }
  static void free_counted(void* data) {
    if (data != nullptr) {
      installed().free(data);
    }
  }
  void free(void* data) const {
    {
      const std::lock_guard lock(mutex_);
      const auto found = sizes_.find(data);
      add_to_count(-static_cast<int64_t>(found->second));
      sizes_.erase(found);
    }
    base_.raw_deallocate(data);
  }

  c10::Allocator& base_;
  mutable std::mutex mutex_{};
  mutable std::unordered_map<void*, size_t> sizes_{};
};

}  // namespace

void count_memory() {
  c10::SetCPUAllocator(&CountingAllocator::installed());
}

MemoryCount memory_count() {
  return {.now = held.load(), .most = most_held.load()};
}

void reset_memory_count() {
  most_held = held.load();
}

CountedMemory::CountedMemory(std::size_t bytes) : bytes_(static_cast<int64_t>(bytes)) {
  add_to_count(bytes_);
}

CountedMemory::~CountedMemory() {
  add_to_count(-bytes_);
}

}  // namespace argosy::engine
