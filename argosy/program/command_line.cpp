#include "argosy/program/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"

namespace argosy::program {
namespace {

constexpr const char* kWhere = "program.arguments";

/// "--nproc-per-node=2" → "--nproc_per_node=2".
std::string normalized(std::string token) {
  const auto end = static_cast<ptrdiff_t>(std::min(token.find('='), token.size()));
  if (token.starts_with("--")) {
    std::replace(token.begin() + 2, token.begin() + end, '-', '_');
  }
  return token;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

class Reader final {
 public:
  Reader(const char* where,
         std::string_view command,
         std::span<const Option> options,
         const std::vector<std::string>& args,
         Between between)
      : where_(where), command_(command), options_(options), args_(args), between_(between) {}

  TakenApart read() {
    while (at_ < args_.size() && !taken_.help) {
      const std::string& word = args_[at_];
      if (word == "--") {
        ++at_;
        break;
      }
      if (is_option(word)) {
        take_option(word);
      } else if (between_ == Between::kWords) {
        taken_.words.push_back(args_[at_++]);
      } else {
        break;
      }
    }
    taken_.words.insert(
        taken_.words.end(), args_.begin() + static_cast<ptrdiff_t>(at_), args_.end());
    return std::move(taken_);
  }

 private:
  void take_option(const std::string& word) {
    const std::string token = normalized(word);
    const size_t equals = token.find('=');
    const std::string name = token.substr(0, equals);
    const std::string written = word.substr(0, word.find('='));
    if (name == "-h" || name == "--help") {
      taken_.help = true;
      return;
    }
    ++at_;
    const Option* option = find_option(options_, name);
    if (option == nullptr) {
      take_joined(token, written);
      return;
    }
    if (option->treatment == Treatment::kRefused) {
      throw UsageError(where_, fmt::format("{} is refused: {}", written, option->help));
    }
    if (equals != std::string::npos) {
      taken_.options.push_back({option, token.substr(equals + 1), written});
    } else if (option->flag()) {
      taken_.options.push_back({option, "1", written});
    } else if (at_ == args_.size() || find_option(options_, normalized(args_[at_])) != nullptr) {
      throw UsageError(where_, fmt::format("{} needs a value: {}", written, option->value));
    } else {
      taken_.options.push_back({option, args_[at_++], written});
    }
  }

  /// "-n2", as mpirun takes it: a short option and a number.
  void take_joined(const std::string& token, const std::string& written) {
    const Option* option = find_option(options_, token.substr(0, 2));
    if (option == nullptr || option->flag() || !option->works() || token.size() < 3 ||
        std::isdigit(static_cast<unsigned char>(token[2])) == 0) {
      refuse(written);
    }
    taken_.options.push_back({option, token.substr(2), token.substr(0, 2)});
  }

  [[noreturn]] void refuse(const std::string& written) const {
    std::vector<std::string> names{"--help"};
    for (const Option& option : options_) {
      std::ranges::copy_if(option.all_names(), std::back_inserter(names), is_option);
    }
    const std::string word = normalized(written);
    std::optional<std::string> meant = strings::closest(word, names);
    const auto begun = std::ranges::find_if(
        names, [&](const std::string& name) { return name.starts_with(word); });
    if (!meant && word.size() > 3 && begun != names.end()) {
      meant = *begun;
    }
    throw UsageError(
        where_,
        fmt::format(
            "unknown option {}.{}{} See: {} --help",
            written,
            meant ? fmt::format(" Did you mean {}?", *meant) : "",
            between_ == Between::kNothing ? " The program's own options come after its name." : "",
            command_));
  }

  const char* where_;
  std::string_view command_;
  std::span<const Option> options_;
  const std::vector<std::string>& args_;
  Between between_;
  size_t at_ = 0;
  TakenApart taken_{};
};

bool takes_many(const Option& option) {
  return std::holds_alternative<std::vector<std::string>*>(option.to) ||
         std::holds_alternative<std::vector<int>*>(option.to) ||
         std::holds_alternative<std::vector<int64_t>*>(option.to);
}

/// Sets what was given; returns the rows of it.
std::set<const Option*> set_options(const std::vector<GivenOption>& given,
                                    const std::string& command) {
  std::set<const Option*> seen;
  for (const GivenOption& one : given) {
    if (seen.insert(one.option).second) {
      std::visit(
          [](auto to) {
            if constexpr (requires { to->push_back({}); }) {
              to->clear();  // what is given takes the place of the default
            }
          },
          one.option->to);
    } else if (!takes_many(*one.option)) {
      throw UsageError(kWhere,
                       fmt::format("{} is given twice. See: {} --help", one.written, command));
    }
    set(*one.option, one.value, one.written);
  }
  return seen;
}

}  // namespace

const Option* find_option(std::span<const Option> options, std::string_view name) {
  const auto found = std::ranges::find_if(options, [&](const Option& option) {
    const std::vector<std::string> names = option.all_names();
    return !option.positional() && std::ranges::find(names, name) != names.end();
  });
  return found == options.end() ? nullptr : &*found;
}

TakenApart take_apart(const char* where,
                      std::string_view command,
                      std::span<const Option> options,
                      const std::vector<std::string>& args,
                      Between between) {
  return Reader(where, command, options, args, between).read();
}

bool parse_or_help(const HelpText& about,
                   const Options& options,
                   const std::vector<std::string>& args) {
  const TakenApart taken = take_apart(kWhere, about.name, options, args, Between::kWords);
  if (taken.help) {
    fmt::print("{}", help(about, options));
    return true;
  }
  std::vector<GivenOption> given = taken.options;
  auto word = taken.words.begin();
  for (const Option& option : options) {
    for (bool more = option.positional(); more && word != taken.words.end();
         more = takes_many(option)) {
      given.push_back({&option, *word++, std::string(option.names)});
    }
  }
  if (word != taken.words.end()) {
    throw UsageError(kWhere,
                     fmt::format("one word too many: {}. See: {} --help", *word, about.name));
  }
  const std::set<const Option*> seen = set_options(given, about.name);
  for (const Option& option : options) {
    if (option.limits.required && !seen.contains(&option)) {
      throw UsageError(kWhere,
                       fmt::format("{} is required. See: {} --help", option.names, about.name));
    }
  }
  return false;
}

int run(HelpText about,
        const Options& options,
        int argc,
        char** argv,
        const std::function<void()>& body) {
  about.name = argv[0];
  try {
    if (parse_or_help(about, options, {argv + 1, argv + argc})) {
      return 0;
    }
  } catch (const UsageError& error) {
    log::error("{}", error.what());
    return 2;
  }
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return 1;
  }
}

std::string in_a_folder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return fmt::format("{} is a folder: expected the name of a file", path);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() || std::filesystem::is_directory(folder, error)
             ? ""
             : fmt::format("there is no folder {}", folder.string());
}

std::string take_option(int& argc, char** argv, std::string_view name, std::string otherwise) {
  const std::string with_value = std::string(name) + "=";
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (i > 0 && word.starts_with(with_value)) {
      otherwise = word.substr(with_value.size());
    } else if (i > 0 && word == name) {
      ARGOSY_CHECK(i + 1 < argc, "program", "{} needs a value", name);
      otherwise = argv[++i];
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return otherwise;
}

}  // namespace argosy::program
