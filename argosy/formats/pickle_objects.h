#pragma once

#include <string_view>

#include "argosy/formats/pickle.h"
#include "argosy/formats/pickle_tree.h"

namespace argosy::formats {

/// Handles the names, calls and states of a pickle, which are the operations that could do harm. It
/// executes nothing. It carries out the names and calls that plain values and numpy arrays need,
/// leaves to UnpickleOptions those that have a handler there, and refuses all others.
/// Errors: PickleProblem.
class PickleObjects final {
 public:
  PickleObjects(const UnpickleOptions& options, PickleTree& tree)
      : options_(options), tree_(tree) {}

  /// Returns what `module.name` stands for.
  [[nodiscard]] PickleValue global(std::string_view module, std::string_view name);
  /// Returns `callable(*args)`.
  [[nodiscard]] PickleValue call(const PickleValue& callable, const PickleValue& args);
  /// Gives a half-built object its state.
  void build(const PickleValue& object, const PickleValue& state);
  /// Returns the object that lies outside the pickle under this id.
  [[nodiscard]] PickleValue persistent(const PickleValue& id);

 private:
  const UnpickleOptions& options_;
  PickleTree& tree_;
};

}  // namespace argosy::formats
