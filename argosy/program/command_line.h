#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/program/option.h"

namespace argosy::program {

/// Describes a command or a program in its help and its errors.
struct HelpText {
  std::string_view what;     ///< the first lines of --help
  std::string name{};        ///< "argosy data fetch"; run() takes the program's
  std::string_view end{};    ///< the last lines of --help: "Example: …"
  std::string_view usage{};  ///< what follows the name in --help; "": it is made from the options
};

/// Reads the words after a command's name into the options' targets. Returns true when it printed
/// --help because the user asked for it. Lines have at most 80 columns. Dashes and underscores in
/// names mean the same. Options and positionals may be mixed. After "--" all words are positionals.
/// Errors: UsageError that names the option that was probably meant, and says how to get help.
[[nodiscard]] bool parse_or_help(const HelpText& about,
                                 const Options& options,
                                 const std::vector<std::string>& args);

/// The main() of a program. It reads the options, runs `body` and returns the exit code: 0 when
/// `body` returned or --help was printed, 1 when `body` threw, 2 for wrong usage. Errors are
/// printed as log::error does.
///
///     int main(int argc, char** argv) {
///       int epochs = 10;
///       return argosy::program::run(
///           {"Trains a net."},
///           {{"--epochs", "N", "Passes over the training set", &epochs, {.least = 1}}},
///           argc, argv, [&] { train(epochs); });
///     }
[[nodiscard]] int run(HelpText about,
                      const Options& options,
                      int argc,
                      char** argv,
                      const std::function<void()>& body);

/// Takes "--name VALUE" or "--name=VALUE" out of the arguments of a main() that reads the others
/// itself. Returns the last value, or `otherwise` if there is none.
///
///     const at::Device device = engine::find_device(program::take_option(argc, argv, "--device"));
///
/// Errors: UsageError for a name without a value.
[[nodiscard]] std::string take_option(int& argc,
                                      char** argv,
                                      std::string_view name,
                                      std::string otherwise = "auto");

/// A Limits::check for paths: a file can be written there. It finds a missing folder at the start,
/// so that the program does not fail when it writes at its end. Returns what is wrong; "": nothing.
[[nodiscard]] std::string in_a_folder(const std::string& path);

/// An option as it was given.
struct GivenOption {
  const Option* option = nullptr;
  std::string value{};    ///< "1" for a switch
  std::string written{};  ///< "--nproc-per-node"
};

/// A command line, split into its parts. Values are not checked yet.
struct TakenApart {
  std::vector<GivenOption> options{};
  std::vector<std::string> words{};  ///< all others
  bool help = false;                 ///< --help was found; the rest was not read
};

/// What may stand between options.
enum class Between : uint8_t {
  kWords,    ///< positionals
  kNothing,  ///< the first word that is no option begins a program, which gets all that follows
};

/// Splits a command line into its parts.
/// Errors: UsageError(where) for an option that is unknown, lacks its value or is refused.
[[nodiscard]] TakenApart take_apart(const char* where,
                                    std::string_view command,
                                    std::span<const Option> options,
                                    const std::vector<std::string>& args,
                                    Between between);

/// Returns the row to which `name` ("--nproc_per_node", "-n") belongs, or nullptr if there is none.
[[nodiscard]] const Option* find_option(std::span<const Option> options, std::string_view name);

/// Returns the text of --help.
[[nodiscard]] std::string help(const HelpText& about, std::span<const Option> options);

}  // namespace argosy::program
