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

/// Looks a variable up; nullopt when it is unset or empty.
using Lookup = std::function<std::optional<std::string>(const char*)>;

/// A value as the user wrote it, and where: "--ips" or "PADDLE_IPS".
struct Given {
  std::string value{};
  std::string source{};
};

/// What stands before the program, and in the environment, by Option::key(). Values are not
/// looked at yet.
class GivenOptions {
 public:
  void add(const program::Option& row, std::string value, std::string source);

  [[nodiscard]] bool has(std::string_view key) const;
  /// The last one given; nullopt: none.
  [[nodiscard]] std::optional<Given> find(std::string_view key) const;
  [[nodiscard]] std::vector<Given> all(std::string_view key) const;
  /// The first of `keys` that the command line gave; else the first that a variable did.
  [[nodiscard]] std::optional<std::string_view> first_of(
      std::initializer_list<std::string_view> keys) const;

 private:
  std::map<std::string, std::vector<Given>, std::less<>> values_{};
};

/// A command line taken apart.
struct CommandLine {
  GivenOptions options{};
  bool help = false;
  std::vector<std::string> command{};  ///< the program and all that follows it, untouched
};

/// Reads what follows `argosy launch`. Dashes and underscores in names mean the same; everything
/// from the program's name, or from "--" on, belongs to the program.
/// Errors: UsageError: unknown option (with the nearest one), no value, an option that is refused
/// or does not work yet.
[[nodiscard]] CommandLine read_command_line(const std::vector<std::string>& args);

/// Adds what variables say about options that the command line did not give. Variables of options
/// that do not work here are left alone: nobody asked for them in this call.
void read_variables(GivenOptions& options, const Lookup& lookup);

/// The text of --help.
[[nodiscard]] std::string launch_help(const std::string& command, const std::string& what);

}  // namespace argosy::launch
