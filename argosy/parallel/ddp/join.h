#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/parallel/ddp/reducer.h"

namespace argosy::parallel {

namespace ddp {
class Core;
}

struct JoinOptions {
  /// true: gradients are divided by the size of the group throughout, so that the samples of the
  /// last steps weigh as much as all others. false: by the number of ranks that still have input.
  bool divide_by_initial_world_size = true;
};

/// Lets the ranks of a wrapper have unequally many batches, or none.
///
///     auto join = model.join();
///     for (auto& [images, labels] : loader) { … }   // forward, backward, step
///     join.finish();                                 // or at the end of the scope
///
/// Inside it each reduction and broadcast of the wrapper is announced by a message of one byte per
/// rank, so that a rank which has come to finish() takes part in what the others still do, with
/// zero gradients, until all have come. Then all ranks get the parameters and buffers of those that
/// stopped last. What they do not get: optimizer state, and gradients (those of a rank that waited
/// are zeros and averages).
/// Source: the behaviour of torch.distributed.algorithms.join for DDP.
///
/// Collective: all ranks make and finish it, and do nothing else on the group in between, except
/// through this one wrapper.
class [[nodiscard]] Join final {
 public:
  Join(std::shared_ptr<ddp::Core> core, const JoinOptions& options);
  Join(Join&&) noexcept = default;
  Join& operator=(Join&&) = delete;
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;
  /// finish(); an error is logged. During an exception: leaves at once, and the others get an error
  /// when their time is up.
  ~Join();

  /// Blocks until all ranks have come. Idempotent.
  /// Errors: CommError, TimeoutError; UsageError when ranks do different things.
  void finish();

 private:
  std::shared_ptr<ddp::Core> core_;
  int exceptions_;
};

namespace ddp {

/// What a rank tells the others before it communicates. 0: nothing more to come.
enum AnnounceFlags : uint8_t {
  kForward = 1,
  kBackward = 2,
  kRebuild = 4,
  kBuffers = 8,
};

/// One join() in progress.
class JoinSession final : public UnevenInputs {
 public:
  /// `timeout`: of each announcement; zero means the group's.
  JoinSession(const comm::Group& group,
              const JoinOptions& options,
              std::chrono::milliseconds timeout);

  /// Returns the lowest rank that still has input: the root of what follows.
  int announce_forward(bool rebuild, bool buffers);
  void announce_backward() override;
  [[nodiscard]] int divisor() override;
  /// As a rank without input: what the others do next; 0 when all have finished.
  uint8_t next();
  [[nodiscard]] int lowest_active() const { return active_.front(); }
  /// The lowest of the ranks that stopped last; -1 when none had input.
  [[nodiscard]] int last_joiner() const { return active_.empty() ? -1 : active_.front(); }

 private:
  void start(uint8_t flags);
  uint8_t read();

  comm::Group group_;
  JoinOptions options_;
  std::chrono::milliseconds timeout_;
  at::Tensor flags_;  // one byte per rank
  comm::Work work_;
  std::vector<int> active_;  // at the last announcement of anybody
};

}  // namespace ddp
}  // namespace argosy::parallel
