#pragma once

#include <string>
#include <vector>

namespace argosy::engine {

/// How load_state_dict judges what does not fit.
struct LoadOptions {
  /// Names must agree exactly. Without it, entries that only one side has are left alone.
  bool strict = true;
  /// Loads what fits by name, shape and type, leaves the rest alone, whatever `strict` says, and
  /// reports it: a classifier of other classes on a known backbone. Only when nothing at all fits
  /// it is an error.
  bool partial = false;
  /// Lets a floating-point entry fill a parameter of another floating-point type (bf16 into f32).
  bool convert_dtype = false;
  /// Where the entries come from, for messages: a path.
  std::string source{};
};

/// An entry that both sides have, and differently.
struct LoadMismatch {
  std::string name{};
  std::string why{};       ///< "other shape" or "other type"
  std::string expected{};  ///< the module's: "[10, 512] Float"
  std::string got{};       ///< the dict's
};

/// What load_state_dict did.
struct LoadResult {
  std::vector<std::string> loaded{};       ///< in the module's order
  std::vector<std::string> missing{};      ///< in the module, not in the dict
  std::vector<std::string> unexpected{};   ///< in the dict, not in the module
  std::vector<LoadMismatch> mismatched{};  ///< in both; only with LoadOptions::partial

  /// "loaded 60 of 62 entries", and a table of what was left alone and why, a line each.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace argosy::engine
