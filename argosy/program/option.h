#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace argosy::program {

/// Where the value of an option goes. bool: a switch, which takes no value. A vector takes what is
/// given again, and all words of a positional; numbers also as "0,3". None: the caller reads it.
using Target = std::variant<std::monostate,
                            bool*,
                            std::string*,
                            int*,
                            int64_t*,
                            uint64_t*,
                            double*,
                            std::optional<int64_t>*,
                            std::optional<double>*,
                            std::vector<std::string>*,
                            std::vector<int>*,
                            std::vector<int64_t>*>;

/// What a value may be.
struct Limits {
  double least = -std::numeric_limits<double>::infinity();  ///< of numbers
  double most = std::numeric_limits<double>::infinity();
  std::string_view words{};  ///< "never|auto|must": a text is one of these; "": any
  bool required = false;
  /// Returns what is wrong with a text; empty: nothing.
  std::string (*check)(const std::string& text) = nullptr;
};

/// Which launcher knows an option of argosy launch.
enum class Origin : uint8_t { kArgosy, kBoth, kTorchrun, kPaddle };

/// What becomes of an option.
enum class Treatment : uint8_t {
  kSame,      ///< does what it does where it comes from
  kBetter,    ///< the same, and `help` says what is better
  kNoEffect,  ///< accepted; `help` says why nothing needs to happen
  kRefused,   ///< an error whose text is `help`
};

/// One option of a command: parsing, --help, JSON and reference are made from such rows.
struct Option {
  std::string_view names;  ///< "--nproc_per_node -n"; no dashes: a positional
  std::string_view value;  ///< what stands for the value in --help: "N"; "": a switch, a positional
  std::string_view help;
  Target to{};  ///< what it holds is the default
  Limits limits{};
  std::string_view group = "Options";  ///< heading in --help; "": not shown there
  std::string_view variables{};        ///< of the environment, which give it; the first that is set
  Origin origin{};
  Treatment treatment{};

  [[nodiscard]] bool positional() const { return !names.starts_with('-'); }
  [[nodiscard]] bool flag() const { return value.empty() && !positional(); }
  [[nodiscard]] bool works() const { return treatment <= Treatment::kBetter; }
  /// The first name without dashes, by which JSON and what was given are sorted.
  [[nodiscard]] std::string_view key() const;
  [[nodiscard]] std::vector<std::string> all_names() const;
  [[nodiscard]] std::vector<std::string> all_variables() const;
};

/// The switch --json of a command. `json`: whether it was given.
[[nodiscard]] Option json_option(bool* json, std::string_view help = "Print JSON for programs");

/// Rows for one object of settings, made where they are used.
using Options = std::vector<Option>;

/// Stores `text`, which was given as `written` ("--epochs"), where the option says.
/// Errors: UsageError: what was expected, and what stands there.
void set(const Option& option, const std::string& text, std::string_view written);

/// Stores the fields of an object, by key; null: not set.
/// Errors: UsageError: an unknown name, with the nearest; a value of another kind; no object.
void from_json(const Options& options, const nlohmann::ordered_json& object);
[[nodiscard]] nlohmann::ordered_json to_json(const Options& options);

/// "0.001", "a,b": what an option holds; empty: nothing, or a switch.
[[nodiscard]] std::string held(const Option& option);

}  // namespace argosy::program
