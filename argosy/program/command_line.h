#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace argosy::program {

/// Parses the words after a command's name into what `app` describes. True: --help was asked for,
/// and printed, in lines of at most 80 columns.
/// Errors: UsageError(where) that names the option that was probably meant, and how to get help.
[[nodiscard]] bool parse_or_help(CLI::App& app,
                                 const std::vector<std::string>& args,
                                 const char* where);

/// The main() of a program whose options `app` describes: parses them, runs it, and returns the
/// exit code: 0 done (or --help), 1 `body` threw, 2 wrong usage. Errors are printed, as log::error
/// does.
///
///     int main(int argc, char** argv) {
///       int epochs = 10;
///       CLI::App app("Trains a net.");
///       app.add_option("--epochs", epochs, "Passes over the training set")
///           ->check(CLI::Range(1, 10000))
///           ->capture_default_str();
///       return argosy::program::run(app, argc, argv, [&] { train(epochs); });
///     }
[[nodiscard]] int run(CLI::App& app, int argc, char** argv, const std::function<void()>& body);

/// For ->check(): a file can be written there. What is written in the end should not fail for a
/// folder that could be seen to be missing. Returns what is wrong; empty: nothing.
[[nodiscard]] std::string in_a_folder(const std::string& path);

}  // namespace argosy::program
