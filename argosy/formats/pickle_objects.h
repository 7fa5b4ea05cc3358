#pragma once

#include <string_view>

#include "argosy/formats/pickle.h"
#include "argosy/formats/pickle_tree.h"

namespace argosy::formats {

/// What a pickle names, calls and gives a state: the operations by which one could do harm. Nothing
/// is executed: names and calls that plain values and numpy arrays need are carried out here, those
/// that UnpickleOptions has a handler for are its affair, and all others are refused.
/// Errors: PickleProblem.
class PickleObjects final {
 public:
  PickleObjects(const UnpickleOptions& options, PickleTree& tree)
      : options_(options), tree_(tree) {}

  /// `module.name`.
  [[nodiscard]] PickleValue global(std::string_view module, std::string_view name);
  /// `callable(*args)`.
  [[nodiscard]] PickleValue call(const PickleValue& callable, const PickleValue& args);
  /// Gives a half-built object its state.
  void build(const PickleValue& object, const PickleValue& state);
  /// The object that lies outside of the pickle under this id.
  [[nodiscard]] PickleValue persistent(const PickleValue& id);

 private:
  const UnpickleOptions& options_;
  PickleTree& tree_;
};

}  // namespace argosy::formats
