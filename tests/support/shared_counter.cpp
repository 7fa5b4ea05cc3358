#include "tests/support/shared_counter.h"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "argosy/base/deadline.h"

namespace argosy::test {

SharedCounter::SharedCounter() {
  void* page =
      ::mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    throw std::bad_alloc();
  }
  value_ = static_cast<int64_t*>(page);
}

SharedCounter::~SharedCounter() {
  ::munmap(value_, sizeof(int64_t));
}

int64_t SharedCounter::add(int64_t amount) {
  return std::atomic_ref<int64_t>(*value_).fetch_add(amount) + amount;
}

bool SharedCounter::wait_for(int64_t value) {
  const Deadline deadline = Deadline::after(std::chrono::minutes(1));
  while (add(0) < value) {
    if (deadline.expired()) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace argosy::test
