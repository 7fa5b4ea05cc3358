#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace argosy::program {

using Words = std::vector<std::string>;

inline constexpr int kFailed = 1;  ///< exit code: the command failed
inline constexpr int kUsage = 2;   ///< exit code: wrong usage

/// A word after a program's name, and what it runs.
struct Command {
  std::string_view name;
  std::string_view what;  ///< its line of --help; "": not shown
  /// Takes the words after the name and returns the exit code.
  int (*run)(const Words& args) = nullptr;
  /// Set instead of `run`: our program that does the work, "argosy-data", perhaps with its own
  /// first words, "argosy-torch train".
  std::string_view becomes{};
};

/// The commands of a program.
struct Commands {
  std::string_view name;     ///< "argosy data"
  std::string_view purpose;  ///< the first line of --help
  std::string_view usage;    ///< what follows the name: "<command> [options]"
  std::vector<Command> all{};
  std::string more{};          ///< the end of --help
  std::string_view version{};  ///< what --version prints; "": there is no such option
  /// Called with a word that resembles no command. It throws if it can explain more than that.
  void (*unknown)(const std::string& word) = nullptr;
};

/// Runs the command that the first word names and returns its exit code; kUsage if there is no
/// word. Also prints --help (in 80 columns) and --version.
/// Errors: UsageError that names the command that was probably meant; the errors of the command.
[[nodiscard]] int dispatch(const Commands& table, const Words& args);

/// The main() of a command. It calls `run` with the words after the program's name and returns its
/// result. After an error it prints the message with its place in the catalogue, and returns kUsage
/// for UsageError and ConfigError, else kFailed. Output that cannot be written is a failure.
[[nodiscard]] int run_main(int argc, char** argv, const std::function<int(const Words& args)>& run);

/// Prints what --json of a command asks for on standard output: indented, with a newline at the
/// end. Bytes that are not UTF-8 (paths may have such) are replaced.
void print_json(const nlohmann::ordered_json& json);

/// Replaces this process by another program of ours, which lies beside this one.
/// Errors: Error that says how to install it.
[[noreturn]] void become(std::string_view program, Words args);

}  // namespace argosy::program
