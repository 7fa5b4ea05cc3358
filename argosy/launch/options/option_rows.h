#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::launch {

/// What `argosy launch` makes of an option of torchrun, of Paddle's launcher, or of its own.
enum class Treatment {
  kSame,      ///< does what it does there
  kBetter,    ///< the same, and `remark` says what is better
  kNoEffect,  ///< accepted; `remark` says why nothing needs to happen
  kRefused,   ///< an error whose text is `remark`
};

/// Which tool knows an option.
enum class Origin { kBoth, kTorchrun, kPaddle, kArgosy };

/// One option. The table of all of them is the one place that knows their names: the parser, --help
/// and docs/reference/launch_options.md are made from it.
struct OptionRow {
  std::string_view names;  ///< "--max_restarts --max_restart": the first is what we call it
  std::string_view value;  ///< what stands for its value in --help; "": a flag
  Origin origin;
  std::string_view variables;  ///< environment variables that give it, the first that is set counts
  Treatment treatment;
  std::string_view group;   ///< heading in --help; "": not shown there
  std::string_view remark;  ///< what it means here, or why not

  /// The name without dashes: the key of what was given.
  [[nodiscard]] std::string_view key() const;
  [[nodiscard]] std::vector<std::string> all_names() const;
  [[nodiscard]] std::vector<std::string> all_variables() const;
  [[nodiscard]] bool flag() const { return value.empty(); }
};

/// All options, in the order in which help and documentation show them.
[[nodiscard]] std::span<const OptionRow> option_rows();

/// The row that `name` ("--nproc_per_node", "-r"; underscores) belongs to; nullptr: none.
[[nodiscard]] const OptionRow* find_option(std::string_view name);

/// docs/reference/launch_options.md.
[[nodiscard]] std::string options_reference();

}  // namespace argosy::launch
