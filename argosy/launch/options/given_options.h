#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/launch/options/option_rows.h"

namespace argosy::launch {

/// Returns the value of a variable. nullopt: it is unset or empty.
using Lookup = std::function<std::optional<std::string>(const char*)>;

/// A value as the user wrote it, and its source: "--ips" or "PADDLE_IPS".
struct Given {
  std::string value{};
  std::string source{};
};

/// The options before the program and in the environment, by Option::key(). Values are not checked
/// yet.
class GivenOptions {
 public:
  void add(const program::Option& row, std::string value, std::string source);
  /// Sets what others mean.
  void set(std::string_view key, Given given);

  [[nodiscard]] bool has(std::string_view key) const;
  /// Returns the last value given. nullopt: none was.
  [[nodiscard]] std::optional<Given> find(std::string_view key) const;
  [[nodiscard]] std::vector<Given> all(std::string_view key) const;
  /// Returns the first of `keys` that the command line gave, else the first that a variable gave.
  [[nodiscard]] std::optional<std::string_view> first_of(
      std::initializer_list<std::string_view> keys) const;

 private:
  std::map<std::string, std::vector<Given>, std::less<>> values_{};
};

/// A command line, split into its parts.
struct CommandLine {
  GivenOptions options{};
  bool help = false;
  std::vector<std::string> command{};  ///< the program and all that follows it, untouched
};

/// Reads the words after `argosy launch`. Dashes and underscores in names mean the same. Everything
/// from the program's name, or after "--", belongs to the program.
/// Errors: UsageError when an option is unknown (it names the nearest one), has no value, is
/// refused or does not work yet.
[[nodiscard]] CommandLine read_command_line(const std::vector<std::string>& args);

/// Adds the values of variables for options that the command line did not give. It leaves out
/// variables of options that do not work here, because nobody asked for them in this call.
void read_variables(GivenOptions& options, const Lookup& lookup);

/// Returns the text of --help.
[[nodiscard]] std::string launch_help(const std::string& command, const std::string& what);

}  // namespace argosy::launch
