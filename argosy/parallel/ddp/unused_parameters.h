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

/// The parameters without a gradient in a pass: frozen ones and, with find_unused_parameters, those
/// that the pass does not reach. Each still takes part in the reduction of its bucket, and
/// afterwards has the gradient that it should have.
class UnusedParameters final {
 public:
  /// `search`: DdpOptions::find_unused_parameters. Without it only frozen parameters are expected.
  /// Table and buckets must outlive it.
  UnusedParameters(const ParameterTable& table, BucketSet& buckets, bool search);

  [[nodiscard]] bool searches() const { return search_; }

  /// Call it for a forward that will have a backward pass, which averages if `sync`.
  void add_forward(std::span<const at::Tensor> outputs, bool sync);
  /// False if no forward whose backward is to come has used the parameter.
  [[nodiscard]] bool is_reachable(size_t parameter) const {
    return reachable_.empty() || reachable_[parameter] != 0;
  }
  [[nodiscard]] bool is_frozen(size_t parameter) const {
    return !table_.tensors()[parameter].requires_grad();
  }

  /// Call it when a pass brings a gradient, also under no_sync().
  void mark_used(size_t parameter);
  /// Lets a parameter that this pass does not reach take part with its former gradient. Returns
  /// true if that was gathered since the last averaged pass.
  bool contribute_unused(size_t parameter);
  /// Lets a frozen parameter take part with zeros.
  void contribute_frozen(size_t parameter) { contribute_zeros(parameter, true); }
  /// The same of a parameter that learns, on a rank without input.
  void contribute_zeros(size_t parameter, bool frozen = false);
  /// Call it for a gradient that came after all. Returns true if the parameter was held to be
  /// unused.
  bool withdraw(size_t parameter);

  /// Returns the parameters that this rank has used: u8, 1 or 0 each. Reduce it by kMax, in place.
  [[nodiscard]] const at::Tensor& used_map();
  /// For a rank that has used none and only shadows the others' passes.
  void mark_none_used();
  /// Ends a pass whose reductions are done. A parameter that some rank has used gets the average;
  /// every other one keeps its former gradient.
  void settle();
  /// Ends a pass whose gradients wait for those of other passes. Frozen parameters keep theirs.
  void end_pass_of_leaf();
  /// Forgets the pass, but not which parameters were used.
  void restart() noexcept { kept_.clear(); }

  /// Returns the parameters that got no gradient on this rank in the last pass that was settled.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  struct Kept {
    size_t parameter = 0;
    at::Tensor gradient{};  // from before, if it lay in the bucket
    bool frozen = false;
  };

  void end_pass();

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
