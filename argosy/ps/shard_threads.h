#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "argosy/base/thread_pool.h"

namespace argosy::ps {

/// Threads for the shards of a batch, which no two of them share. Thread-safe.
class ShardThreads final {
 public:
  /// `threads`: with the caller's. Errors: UsageError for less than 1.
  explicit ShardThreads(int threads);

  /// Calls work(i) for each i below `parts`; in the caller's thread alone where the batch has so
  /// few ids that others would come too late.
  void for_each(size_t parts, size_t ids, const std::function<void(size_t)>& work) const;

 private:
  std::unique_ptr<ThreadPool> others_{};
};

}  // namespace argosy::ps
