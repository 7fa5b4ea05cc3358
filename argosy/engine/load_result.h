#pragma once

#include <string>
#include <vector>

namespace argosy::engine {

/// How load_state_dict treats entries that do not fit.
struct LoadOptions {
  /// True: names must agree exactly. False: entries that only one side has are left alone.
  bool strict = true;
  /// True: loads the entries that fit by name, shape and type, whatever `strict` says, leaves the
  /// others alone and reports them. Example: a new classifier on a known backbone. It is an error
  /// only if no entry fits.
  bool partial = false;
  /// True: a floating-point entry may fill a parameter of another floating-point type (bf16 into
  /// f32).
  bool convert_dtype = false;
  /// The origin of the entries, a path, for messages.
  std::string source{};
  /// The last line of messages, in the words of who asks; empty: these options'. Names that begin
  /// with "module." have a line of their own.
  std::string advice{};
};

/// An entry that differs between the two sides.
struct LoadMismatch {
  std::string name{};
  std::string why{};       ///< "other shape" or "other type"
  std::string expected{};  ///< the module's: "[10, 512] Float"
  std::string got{};       ///< the dict's
};

/// The result of load_state_dict.
struct LoadResult {
  std::vector<std::string> loaded{};       ///< in the module's order
  std::vector<std::string> missing{};      ///< in the module, not in the dict
  std::vector<std::string> unexpected{};   ///< in the dict, not in the module
  std::vector<LoadMismatch> mismatched{};  ///< in both; only with LoadOptions::partial

  /// Returns "loaded 60 of 62 entries" and a table of the other entries and the reasons, one line
  /// each.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace argosy::engine
