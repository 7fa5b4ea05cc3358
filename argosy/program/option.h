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

/// Where the value of an option goes. bool: the option is a switch and takes no value. A vector
/// collects the values of an option that is repeated, and all words of a positional; numbers may
/// also be written as "0,3". monostate: the caller reads the value.
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
  double least = -std::numeric_limits<double>::infinity();  ///< for numbers
  double most = std::numeric_limits<double>::infinity();
  std::string_view words{};  ///< "never|auto|must": a text must be one of these; "": any text
  bool required = false;
  /// Returns what is wrong with a text; "": nothing.
  std::string (*check)(const std::string& text) = nullptr;
};

/// Which launcher knows an option of argosy launch.
enum class Origin : uint8_t { kArgosy, kBoth, kTorchrun, kPaddle };

/// What becomes of an option.
enum class Treatment : uint8_t {
  kSame,      ///< does what it does in the launcher that it comes from
  kBetter,    ///< does the same; `help` says what is better
  kNoEffect,  ///< accepted; `help` says why nothing needs to happen
  kRefused,   ///< an error whose text is `help`
};

/// One option of a command. The parser, --help, JSON and the reference are made from such rows.
struct Option {
  std::string_view names;  ///< "--nproc_per_node -n"; a name without dashes is a positional
  std::string_view value;  ///< what stands for the value in --help: "N"; "": a switch, a positional
  std::string_view help;
  Target to{};  ///< the value that it holds at first is the default
  Limits limits{};
  std::string_view group = "Options";  ///< heading in --help; "": not shown there
  std::string_view
      variables{};  ///< environment variables that also set it; the first one that is set counts
  Origin origin{};
  Treatment treatment{};

  [[nodiscard]] bool positional() const { return !names.starts_with('-'); }
  [[nodiscard]] bool flag() const { return value.empty() && !positional(); }
  [[nodiscard]] bool works() const { return treatment <= Treatment::kBetter; }
  /// Returns the first name without dashes. JSON and GivenOptions use it as the key.
  [[nodiscard]] std::string_view key() const;
  [[nodiscard]] std::vector<std::string> all_names() const;
  [[nodiscard]] std::vector<std::string> all_variables() const;
};

/// Returns the switch --json of a command. `json` becomes true when it is given.
[[nodiscard]] Option json_option(bool* json, std::string_view help = "Print JSON for programs");

/// Rows for one object of settings. They are made where they are used.
using Options = std::vector<Option>;

/// Stores `text` where the option says. `written` is the name that the user wrote ("--epochs").
/// Errors: UsageError that says what was expected and what was given.
void set(const Option& option, const std::string& text, std::string_view written);

/// Stores the fields of an object by key. A null leaves the option as it is.
/// Errors: UsageError when a name is unknown (it names the nearest), a value has another kind, or
/// `object` is not an object.
void from_json(const Options& options, const nlohmann::ordered_json& object);
[[nodiscard]] nlohmann::ordered_json to_json(const Options& options);

/// Returns what an option holds: "0.001", "a,b". "" for a switch, or when it holds nothing.
[[nodiscard]] std::string held(const Option& option);

}  // namespace argosy::program
