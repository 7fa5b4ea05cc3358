#include "argosy/program/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

#include <nlohmann/json.hpp>

namespace argosy::program {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
struct Kind {
  using Value = T;
  static constexpr bool kOptional = false;
  static constexpr bool kMany = false;
};
template <typename T>
struct Kind<std::optional<T>> : Kind<T> {
  static constexpr bool kOptional = true;
};
template <typename T>
struct Kind<std::vector<T>> : Kind<T> {
  static constexpr bool kMany = true;
};

/// Calls `body` with the object that the option's value goes to, unless there is none.
template <typename Body>
void visit_target(const Option& option, Body body) {
  std::visit(
      [&](auto to) {
        if constexpr (!std::is_same_v<decltype(to), std::monostate>) {
          body(*to);
        }
      },
      option.to);
}

[[noreturn]] void wrong(std::string_view written, std::string_view expected, std::string_view got) {
  throw UsageError("program.arguments",
                   fmt::format("{}: expected {}, got \"{}\"", written, expected, got));
}

template <typename T>
constexpr const char* name_of() {
  return std::is_same_v<T, std::string> ? "a text"
         : std::is_same_v<T, bool>      ? "yes or no"
         : std::is_floating_point_v<T>  ? "a number"
                                        : "a whole number";
}

void check_number(const Option& option,
                  double number,
                  std::string_view written,
                  const std::string& text) {
  const Limits& limits = option.limits;
  if (number < limits.least || number > limits.most) {
    wrong(written,
          std::isinf(limits.most) ? fmt::format("{} or more", limits.least)
                                  : fmt::format("{} to {}", limits.least, limits.most),
          text);
  }
}

void check_text(const Option& option, std::string_view written, const std::string& text) {
  const std::vector<std::string> words = strings::split(option.limits.words, '|');
  if (!option.limits.words.empty() && std::ranges::find(words, text) == words.end()) {
    wrong(written, fmt::format("one of {}", fmt::join(words, ", ")), text);
  }
  const std::string fault = option.limits.check != nullptr ? option.limits.check(text) : "";
  if (!fault.empty()) {
    throw UsageError("program.arguments", fmt::format("{}: {}", written, fault));
  }
}

template <typename T>
T value_of(const Option& option, const std::string& text, std::string_view written) {
  if constexpr (std::is_same_v<T, std::string>) {
    check_text(option, written, text);
    return text;
  } else if constexpr (std::is_same_v<T, bool>) {
    const std::string word = strings::to_lower(text);
    const bool yes = word == "true" || word == "yes" || word == "1";
    if (!yes && word != "false" && word != "no" && word != "0") {
      wrong(written, name_of<T>(), text);
    }
    return yes;
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto number = strings::parse_double(text);
    if (!number || !std::isfinite(*number)) {
      wrong(written, name_of<T>(), text);
    }
    check_number(option, *number, written, text);
    return *number;
  } else {
    const auto number = strings::parse_int(text);
    if (!number || !std::in_range<T>(*number)) {
      wrong(written, name_of<T>(), text);
    }
    check_number(option, static_cast<double>(*number), written, text);
    return static_cast<T>(*number);
  }
}

/// A field of JSON is of the kind that the option holds: "3" is no number there.
template <typename T>
bool is_of_kind(const Json& json) {
  return std::is_same_v<T, std::string> ? json.is_string()
         : std::is_same_v<T, bool>      ? json.is_boolean()
         : std::is_floating_point_v<T>  ? json.is_number()
                                        : json.is_number_integer();
}

void set_from_json(const Option& option, const Json& json) {
  const std::string name(option.names.substr(0, option.names.find(' ')));
  visit_target(option, [&](auto& to) {
    using Type = Kind<std::remove_reference_t<decltype(to)>>;
    if (Type::kOptional && json.is_null()) {
      to = {};
    } else if (!is_of_kind<typename Type::Value>(json)) {
      wrong(name, name_of<typename Type::Value>(), json.dump());
    } else {
      set(option, json.is_string() ? json.get<std::string>() : json.dump(), name);
    }
  });
}

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> found = strings::split(text, ' ');
  std::erase(found, "");
  return found;
}

}  // namespace

std::string_view Option::key() const {
  const std::string_view first = names.substr(0, names.find(' '));
  return first.substr(first.find_first_not_of('-'));
}

std::vector<std::string> Option::all_names() const {
  return words_in(names);
}

std::vector<std::string> Option::all_variables() const {
  return words_in(variables);
}

Option json_option(bool* json, std::string_view help) {
  return {"--json", "", help, json};
}

void set(const Option& option, const std::string& text, std::string_view written) {
  visit_target(option, [&](auto& to) {
    using Type = Kind<std::remove_reference_t<decltype(to)>>;
    using Value = typename Type::Value;
    if constexpr (Type::kMany) {
      const bool numbers = !std::is_same_v<Value, std::string>;
      for (const std::string& piece : numbers ? strings::split(text, ',') : std::vector{text}) {
        to.push_back(value_of<Value>(option, piece, written));
      }
    } else {
      to = value_of<Value>(option, text, written);
    }
  });
}

void from_json(const Options& options, const Json& object) {
  for (const auto& [name, value] : object.items()) {
    const auto row = std::ranges::find(options, name, &Option::key);
    if (row == options.end()) {
      std::vector<std::string> names;
      for (const Option& option : options) {
        names.emplace_back(option.key());
      }
      const auto meant = strings::closest(name, names);
      throw UsageError("program.arguments",
                       fmt::format("unknown option --{}{}",
                                   name,
                                   meant ? fmt::format(": nearest is --{}", *meant) : ""));
    }
    set_from_json(*row, value);
  }
}

Json to_json(const Options& options) {
  Json object = Json::object();
  for (const Option& option : options) {
    visit_target(option, [&](const auto& to) {
      Json& field = object[std::string(option.key())];
      if constexpr (Kind<std::remove_cvref_t<decltype(to)>>::kOptional) {
        field = to ? Json(*to) : Json(nullptr);
      } else {
        field = to;
      }
    });
  }
  return object;
}

std::string held(const Option& option) {
  std::string text;
  visit_target(option, [&](const auto& to) {
    using Target = std::remove_cvref_t<decltype(to)>;
    if constexpr (Kind<Target>::kMany) {
      text = fmt::format("{}", fmt::join(to, ","));
    } else if constexpr (Kind<Target>::kOptional) {
      text = to ? fmt::format("{}", *to) : "";
    } else if constexpr (!std::is_same_v<Target, bool>) {
      text = fmt::format("{}", to);
    }
  });
  return text;
}

}  // namespace argosy::program
