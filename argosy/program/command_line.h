#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/program/option.h"

namespace argosy::program {

/// A command or program, for its help and its errors.
struct About {
  std::string_view what;     ///< the first lines of --help
  std::string name{};        ///< "argosy data fetch"; run() takes the program's
  std::string_view end{};    ///< the last lines of --help: "Example: …"
  std::string_view usage{};  ///< what follows the name there; "": made from the options
};

/// Reads the words after a command's name into the options' targets. True: --help was asked for and
/// printed, in lines of at most 80 columns. Dashes and underscores in names mean the same; options
/// and positionals may be mixed; after "--" all words are positionals.
/// Errors: UsageError that names the option that was probably meant, and how to get help.
[[nodiscard]] bool parse_or_help(const About& about,
                                 const Options& options,
                                 const std::vector<std::string>& args);

/// The main() of a program: reads its options, runs it, and returns the exit code: 0 done (or
/// --help), 1 `body` threw, 2 wrong usage. Errors are printed, as log::error does.
///
///     int main(int argc, char** argv) {
///       int epochs = 10;
///       return argosy::program::run(
///           {"Trains a net."},
///           {{"--epochs", "N", "Passes over the training set", &epochs, {.least = 1}}},
///           argc, argv, [&] { train(epochs); });
///     }
[[nodiscard]] int run(
    About about, const Options& options, int argc, char** argv, const std::function<void()>& body);

/// For Limits::check: a file can be written there. What is written in the end should not fail for a
/// folder that could be seen to be missing. Returns what is wrong; empty: nothing.
[[nodiscard]] std::string in_a_folder(const std::string& path);

/// An option as it was given.
struct GivenOption {
  const Option* option = nullptr;
  std::string value{};    ///< "1" for a switch
  std::string written{};  ///< "--nproc-per-node"
};

/// A command line taken apart; values are not looked at yet.
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

/// Errors: UsageError(where): an unknown option, one without its value, one that is refused.
[[nodiscard]] TakenApart take_apart(const char* where,
                                    std::string_view command,
                                    std::span<const Option> options,
                                    const std::vector<std::string>& args,
                                    Between between);

/// The row that `name` ("--nproc_per_node", "-n") belongs to; nullptr: none.
[[nodiscard]] const Option* find_option(std::span<const Option> options, std::string_view name);

/// The text of --help.
[[nodiscard]] std::string help(const About& about, std::span<const Option> options);

}  // namespace argosy::program
