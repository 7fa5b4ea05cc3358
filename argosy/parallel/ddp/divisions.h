#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/divided_step.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/shared_part.h"

namespace argosy::parallel::ddp {

/// The optimizers whose steps the ranks of one wrapper divide. One optimizer at a time divides a
/// parameter's update: the last one that was given.
class Divisions final {
 public:
  /// `values`: where the parameters lie; nullptr: steps cannot be divided.
  Divisions(std::shared_ptr<SharedPart> values,
            const comm::Group& group,
            std::chrono::milliseconds timeout);
  /// What the program does to parameters after that is each rank's own affair.
  ~Divisions();
  Divisions(const Divisions&) = delete;
  Divisions& operator=(const Divisions&) = delete;
  Divisions(Divisions&&) = delete;
  Divisions& operator=(Divisions&&) = delete;

  /// Ends the division of this optimizer's steps, and of others' with a parameter in common. This
  /// rank alone does so, for other ranks may have let go of theirs: nobody writes to shared
  /// parameters before agree() follows.
  void end(const optim::OptimizerImpl& optimizer);
  /// A rank that has finished makes no more steps: those that go on make theirs alone.
  void end_all();

  /// Collective. Errors: UsageError that names what differs between ranks.
  void agree(const optim::OptimizerImpl& optimizer, const DivideOptions& options) const;
  /// Collective, after agree(). Returns false, on all ranks, if there is nothing to divide in.
  bool add(const std::shared_ptr<optim::OptimizerImpl>& optimizer, const DivideOptions& options);

  /// Collective if a division shares parameters: ends the sharing while each rank does something to
  /// them by itself, or brings it back. A rank that has let go of its optimizer takes part.
  void unshare_parameters() { share(&DividedStep::unshare); }
  void share_parameters() { share(&DividedStep::share); }
  /// The parameters have other strides than before: so will the optimizers' state.
  void follow_layout();

 private:
  struct Divided {
    std::weak_ptr<optim::OptimizerImpl> optimizer{};
    std::weak_ptr<DividedStep> step{};  ///< the optimizer's: sharing ends with the division
    bool share_parameters = false;
  };

  void share(void (DividedStep::*change)());

  std::shared_ptr<SharedPart> values_;
  comm::Group group_;
  std::chrono::milliseconds timeout_;
  std::vector<Divided> divided_{};  // by this rank's optimizers that live: others may have more
  bool sharing_ = false;            // some division was to share parameters: on all ranks
};

}  // namespace argosy::parallel::ddp
