#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace argosy::program {

using Words = std::vector<std::string>;

inline constexpr int kFailed = 1;  ///< exit code: it cannot be done
inline constexpr int kUsage = 2;   ///< exit code: it was asked wrongly

/// One word after a program's name, and what it does.
struct Command {
  std::string_view name;
  std::string_view what;  ///< its line of --help; "": not shown
  /// Gets the words after the name, returns the exit code.
  int (*run)(const Words& args) = nullptr;
  /// Instead of `run`, the program of ours that does it: "argosy-data"; or with its own first words
  /// "argosy-torch train".
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
  /// Gets a word that resembles no command; throws where it can say more than that.
  void (*unknown)(const std::string& word) = nullptr;
};

/// Runs the command that the first word names; prints --help (in 80 columns) and --version.
/// Returns its exit code; kUsage for no word at all.
/// Errors: UsageError that names the command that was probably meant; those of the command.
[[nodiscard]] int dispatch(const Commands& table, const Words& args);

/// The main() of a command: returns what `run` returns, which gets the words after the program's
/// name. After an error it prints the message with its place in the catalogue and returns kUsage
/// for UsageError and ConfigError, else kFailed. Output that cannot be written is a failure.
[[nodiscard]] int run_main(int argc, char** argv, const std::function<int(const Words& args)>& run);

/// Onto standard output, indented, with an end of line: what --json of a command prints. Bytes that
/// are no UTF-8 (paths may have such) are replaced.
void print_json(const nlohmann::ordered_json& json);

/// Becomes another program of ours, which lies beside this one.
/// Errors: Error that says how to get it.
[[noreturn]] void become(std::string_view program, Words args);

}  // namespace argosy::program
