#include "argosy/ps/shard_threads.h"

#include "argosy/base/check.h"

namespace argosy::ps {
namespace {

/// A thread that sleeps comes after some 0.05 ms, in which these are read.
constexpr size_t kFewIds = 4096;

}  // namespace

ShardThreads::ShardThreads(int threads) {
  ARGOSY_CHECK(threads >= 1, "ps.threads", "expected 1 thread or more, got {}", threads);
  if (threads > 1) {
    others_ = std::make_unique<ThreadPool>(static_cast<size_t>(threads - 1), "argosy-rows");
  }
}

void ShardThreads::for_each(size_t parts,
                            size_t ids,
                            const std::function<void(size_t)>& work) const {
  if (others_ != nullptr && ids > kFewIds) {
    others_->for_each(parts, work);
    return;
  }
  for (size_t i = 0; i < parts; ++i) {
    work(i);
  }
}

}  // namespace argosy::ps
