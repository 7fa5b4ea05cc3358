#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "argosy/optim/flat_optimizer.h"

// Internal to the room.
namespace argosy::optim {

/// The parameters of an optimizer, each once, and their groups. The first group has all parameters
/// that no ParamGroup claimed.
class ParamRegistry {
 public:
  /// `rule` must outlive it. Errors: UsageError `[where] …` for options, names, groups and tensors
  /// that an optimizer cannot take.
  ParamRegistry(const Rule& rule,
                std::string where,
                const CommonOptions& options,
                const engine::NamedTensors& parameters,
                const std::vector<ParamGroup>& groups);

  [[nodiscard]] const engine::NamedTensors& parameters() const { return parameters_; }
  [[nodiscard]] std::size_t size() const { return parameters_.size(); }
  [[nodiscard]] const std::vector<GroupInfo>& groups() const { return groups_; }
  [[nodiscard]] const GroupInfo& group_of(std::size_t index) const {
    return groups_[group_of_[index]];
  }
  /// Returns a parameter's weight decay: its group's, or none.
  [[nodiscard]] const WeightDecay& decay_of(std::size_t index) const { return decays_[index]; }
  [[nodiscard]] const DecayFilter& decay_filter() const { return decays_at_all_; }
  /// Returns the index of a parameter, or nullopt if it is not one of these.
  [[nodiscard]] std::optional<std::size_t> find(const at::Tensor& parameter) const;

  void set_lr(std::size_t group, double lr);
  /// Copies the learning rates of the same number of groups.
  void take_over_lr(const std::vector<GroupInfo>& groups);
  /// Adds a group. If it throws, nothing has changed.
  void add_group(const engine::NamedTensors& parameters, const ParamGroup& group);

 private:
  void check_lr(double lr) const;
  [[nodiscard]] GroupInfo group_info(const ParamGroup& group) const;
  void check_new(const std::string& name, const at::Tensor& parameter) const;
  void add(const std::string& name, const at::Tensor& parameter, std::size_t group);

  const Rule& rule_;
  std::string where_;
  double lr_;
  WeightDecay weight_decay_;
  DecayFilter decays_at_all_;
  std::vector<GroupInfo> groups_{};
  engine::NamedTensors parameters_{};
  std::vector<std::size_t> group_of_{};  // beside parameters_
  std::vector<WeightDecay> decays_{};    // beside parameters_
  std::unordered_set<std::string> names_{};
  std::unordered_map<const c10::TensorImpl*, std::size_t> places_{};
};

}  // namespace argosy::optim
