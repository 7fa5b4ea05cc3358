#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace argosy::program {

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
