#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/reducer.h"

namespace argosy::parallel {

namespace ddp {
class Core;
}

struct JoinOptions {
  /// True: gradients are always divided by the size of the group, so each sample has the same
  /// weight. False: they are divided by the number of ranks that still have input.
  bool divide_by_initial_world_size = true;
};

/// Lets the ranks of a wrapper have unequal numbers of batches, or none.
///
///     auto join = model.join();
///     for (auto& [images, labels] : loader) { … }   // forward, backward, step
///     join.finish();                                 // or at the end of the scope
///
/// A rank that has reached finish() takes part in the others' reductions with zero gradients until
/// all ranks have reached it. Then every rank gets the parameters and buffers of the ranks that
/// stopped last. Optimizer state and gradients are not copied.
///
/// Where ranks divide parameters, gradients or state (fully_shard(), DivideOptions), a rank that
/// has finished keeps what others need. It takes part in their gathers, too, and makes their
/// optimizer's steps for its part, at their learning rates. So the parameters have the same bits,
/// and the state is that of the ranks that stopped last. All steps are those of one optimizer,
/// which was given to divide_step(). Loss scaling, a clipping of one's own, averages of weights and
/// writes into parameters need all ranks, and are not for this loop.
/// Cost: each reduction and broadcast of the wrapper is announced by eight bytes per rank; where
/// ranks divide something, each bucket, gather and step.
/// Collective: all ranks create and finish it, and use the group only through this one wrapper in
/// between. Source: torch.distributed.algorithms.join for DDP.
class [[nodiscard]] Join final {
 public:
  Join(std::shared_ptr<ddp::Core> core, const JoinOptions& options);
  Join(Join&&) noexcept = default;
  Join& operator=(Join&&) = delete;
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;
  /// Calls finish() and logs its error. While an exception unwinds the stack it does not wait; the
  /// other ranks get an error at their deadline.
  ~Join();

  /// Blocks until all ranks have called it. A second call does nothing.
  /// Errors: CommError, TimeoutError; UsageError if the ranks call different operations.
  void finish();

 private:
  std::shared_ptr<ddp::Core> core_;
  int exceptions_;
};

namespace ddp {

/// A rank's announcement before it communicates. 0: nothing more to come.
enum AnnounceFlags : uint32_t {
  kForward = 1,
  kBackward = 2,
  kRebuild = 4,
  kBuffers = 8,
  // Where ranks divide something, beside them:
  kCleared = 16,          ///< a backward pass found no gradients
  kFound = 32,            ///< it found some
  kBucket = 64,           ///< it sends its next bucket
  kEndOfPass = 128,       ///< it has sent all
  kGather = 256,          ///< a unit of parameters is gathered
  kGatherGradient = 512,  ///< one of gradients
  kStep = 1024,           ///< the optimizer makes a step
};

/// What ranks announce.
struct Announcement {
  uint32_t flags = 0;
  /// Of a gather its unit; of a step 1 if there are gradients; of those that were found 1 if they
  /// are zero, which they are on some ranks only, too: then they are not.
  uint32_t detail = 0;
};

/// The ranks' common work before a forward.
struct ForwardWork {
  bool rebuild = false;  ///< of the buckets
  bool buffers = false;  ///< broadcast of the model's buffers
};

/// One join() in progress.
class JoinSession final : public UnevenInputs {
 public:
  /// `timeout` applies to each announcement; zero means the group's.
  JoinSession(const comm::Group& group,
              const JoinOptions& options,
              std::chrono::milliseconds timeout);

  /// Returns the lowest rank that still has input, which is the root of what follows.
  int announce_forward(const ForwardWork& work);
  void announce_backward() override { tell({kBackward}); }
  [[nodiscard]] int divisor() override;
  /// Announces what needs no answer.
  void tell(const Announcement& what);
  /// Announces a step, and gives all the learning rates of the lowest rank that makes it.
  void announce_step(const optim::OptimizerImpl& optimizer, bool has_gradients);
  /// For a rank without input, of a step: takes them over.
  void follow_rates(optim::OptimizerImpl& optimizer) const;
  /// For a rank without input: returns the other ranks' next operation, or nothing when all have
  /// finished.
  Announcement next();
  [[nodiscard]] int lowest_active() const { return active_.front(); }
  /// Returns the lowest of the ranks that stopped last, or -1 if none had input.
  [[nodiscard]] int last_joiner() const { return active_.empty() ? -1 : active_.front(); }

 private:
  Announcement read();
  [[nodiscard]] at::Tensor exchanged_rates(const optim::OptimizerImpl& optimizer) const;

  comm::Group group_;
  JoinOptions options_;
  std::chrono::milliseconds timeout_;
  struct Told {
    at::Tensor by_rank{};
    comm::Work work{};
  };
  std::vector<Told> told_{};   // and not read yet
  std::vector<int> active_{};  // at the last announcement that was read
};

}  // namespace ddp
}  // namespace argosy::parallel
