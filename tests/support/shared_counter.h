#pragma once

#include <cstdint>

namespace argosy::test {

/// A number that all ranks of run_ranks() share, be they threads or processes. Made before it.
class SharedCounter final {
 public:
  SharedCounter();
  ~SharedCounter();
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  SharedCounter(SharedCounter&&) = delete;
  SharedCounter& operator=(SharedCounter&&) = delete;

  /// Returns the sum.
  int64_t add(int64_t amount);
  /// Waits until it is `value` or more; a minute at most. False: it is not.
  [[nodiscard]] bool wait_for(int64_t value);

 private:
  int64_t* value_;
};

}  // namespace argosy::test
