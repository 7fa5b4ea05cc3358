#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/engine/load_result.h"
#include "argosy/engine/named.h"

namespace argosy::engine {

/// An ordered map from structured names to tensors: a model's weights, apart from the model.
///
///     StateDict before = state_dict(model).clone();
///     …
///     load_state_dict(model, before);
///
/// Names keep the order of insertion. A StateDict shares memory with the tensors it was made from.
class StateDict final {
 public:
  using Entry = std::pair<std::string, at::Tensor>;

  StateDict() = default;
  StateDict(std::initializer_list<Entry> entries);

  /// Adds an entry, or replaces the tensor of an existing one, which keeps its place.
  void set(std::string name, at::Tensor tensor);

  /// Errors: UsageError naming the entry and the closest existing ones.
  [[nodiscard]] const at::Tensor& at(std::string_view name) const;
  /// Returns nullptr if there is no such entry.
  [[nodiscard]] const at::Tensor* find(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }

  /// Returns a copy with its own memory and the same names; strides (channels_last) are kept.
  [[nodiscard]] StateDict clone() const;

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
};

/// Returns parameters and buffers by structured name, in PyTorch's order: for each module its
/// parameters, then its buffers, then its children. Tensors are detached and share the module's
/// memory. Tied weights appear under each of their names; undefined entries (`bias = false`) do not
/// appear. What is deferred gets its memory: see Deferred.
[[nodiscard]] StateDict state_dict(const torch::nn::Module& module);

/// Copies `dict` into the module's own tensors, which keep their addresses, strides and devices.
///
/// Everything is checked before the first byte is copied. Where ranks divide the module's values
/// (parallel::fully_shard()), each copies its part. From a file each reads what it needs; if that
/// fails, some tensors are filled and some are not.
/// Errors: CheckpointError that lists every missing, unexpected and mismatched entry by name, shape
///   and dtype. A wrong shape is an error with or without `strict`. With `partial` the only error
///   is that no entry fits.
LoadResult load_state_dict(const torch::nn::Module& module,
                           const StateDict& dict,
                           const LoadOptions& options = {});

/// The same for an object that holds or wraps a module (see module_of).
template <typename T>
requires(!detail::IsModule<T>) [[nodiscard]] StateDict state_dict(const T& holder) {
  return state_dict(module_of(holder));
}

template <typename T>
requires(!detail::IsModule<T>) LoadResult
    load_state_dict(const T& holder, const StateDict& dict, const LoadOptions& options = {}) {
  return load_state_dict(module_of(holder), dict, options);
}

}  // namespace argosy::engine
