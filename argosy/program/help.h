#pragma once

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace argosy::program {

/// Text in lines of at most 80 columns; those that are too long are wrapped.
[[nodiscard]] std::string wrapped(std::string_view text);

/// "  left    text": the text wrapped, in lines that begin at column `indent`.
[[nodiscard]] std::string row(std::string_view left, std::string_view text, size_t indent);

/// Help in 80 columns: names and types on the left; beside them the words, wrapped, with the values
/// allowed and the default at their end. Line breaks inside an option's words are spaces.
class Help final : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
};

}  // namespace argosy::program
