#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/parallel/ddp/bucket_set.h"
#include "argosy/parallel/ddp/parameter_table.h"

namespace argosy::parallel::ddp {

/// The parameters that a pass brings no gradient for: frozen ones, and with
/// find_unused_parameters those that it does not reach. Each takes part in the reduction of its
/// bucket all the same; afterwards it has the gradient that it should have.
class UnusedParameters final {
 public:
  /// `search`: DdpOptions::find_unused_parameters. Without it only frozen parameters are expected.
  /// Table and buckets must outlive it.
  UnusedParameters(const ParameterTable& table, BucketSet& buckets, bool search);

  [[nodiscard]] bool searches() const { return search_; }

  /// A forward will be followed by a backward pass, which averages if `sync`.
  void add_forward(std::span<const at::Tensor> outputs, bool sync);
  /// False if no forward whose backward is to come has used the parameter.
  [[nodiscard]] bool is_reachable(size_t parameter) const {
    return reachable_.empty() || reachable_[parameter] != 0;
  }
  [[nodiscard]] bool is_frozen(size_t parameter) const {
    return !table_.tensors()[parameter].requires_grad();
  }

  /// A pass under no_sync(), or the one that runs, has brought a gradient.
  void mark_used(size_t parameter);
  /// Lets a parameter that this pass does not reach take part with what its gradient held before.
  void contribute_unused(size_t parameter);
  /// Lets a frozen parameter take part with zeros.
  void contribute_frozen(size_t parameter);
  /// A gradient has come after all. Returns whether the parameter was held to be unused.
  bool withdraw(size_t parameter);

  /// Which parameters this rank has used: u8, 1 or 0 each. To be reduced by kMax, in place.
  [[nodiscard]] const at::Tensor& used_map();
  /// This rank has used none: it only shadows the passes of others.
  void mark_none_used();
  /// Ends a pass whose reductions are done: a parameter that some rank has used gets the average,
  /// every other one keeps the gradient that it had.
  void settle();
  /// Forgets the pass, not what was used.
  void restart() noexcept { kept_.clear(); }

  /// Parameters that got no gradient on this rank in the last pass that was settled.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  struct Kept {
    size_t parameter = 0;
    at::Tensor gradient{};  // from before, if it lay in the bucket
    bool frozen = false;
  };

  const ParameterTable& table_;
  BucketSet& buckets_;
  bool search_;
  std::vector<uint8_t> used_{};       // since the last reduction, passes under no_sync included
  std::vector<uint8_t> reachable_{};  // from the outputs of forwards whose backward has not run
  int64_t open_forwards_ = 0;         // those whose backward will average
  std::vector<Kept> kept_{};
  at::Tensor used_map_{};
  std::vector<std::string> names_{};
};

}  // namespace argosy::parallel::ddp
