#include "argosy/recipes/setting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::recipes::detail {
namespace {

[[noreturn]] void wrong(const Place& place, const std::string& expected, const std::string& got) {
  throw UsageError(place.where,
                   fmt::format("{}: expected {}, got \"{}\"", place.name, expected, got));
}

template <typename T>
T not_below(const Place& place, T value, const std::string& text) {
  if (static_cast<double>(value) < place.least) {
    wrong(place, fmt::format("{} or more", place.least), text);
  }
  return value;
}

}  // namespace

void read(const Place& place, const std::string& text, std::string& value) {
  if (!place.words->empty() && std::ranges::find(*place.words, text) == place.words->end()) {
    wrong(place, fmt::format("one of {}", fmt::join(*place.words, ", ")), text);
  }
  value = text;
}

void read(const Place& place, const std::string& text, bool& value) {
  const std::string word = strings::to_lower(text);
  if (word == "true" || word == "yes" || word == "1") {
    value = true;
  } else if (word == "false" || word == "no" || word == "0") {
    value = false;
  } else {
    wrong(place, "yes or no", text);
  }
}

void read(const Place& place, const std::string& text, int64_t& value) {
  const auto number = strings::parse_int(text);
  if (!number.has_value()) {
    wrong(place, "a whole number", text);
  }
  value = not_below(place, *number, text);
}

void read(const Place& place, const std::string& text, double& value) {
  const auto number = strings::parse_double(text);
  if (!number.has_value() || !std::isfinite(*number)) {
    wrong(place, "a number", text);
  }
  value = not_below(place, *number, text);
}

void read(const Place& place, const nlohmann::ordered_json& json, std::string& value) {
  if (!json.is_string()) {
    wrong(place, "a text", json.dump());
  }
  read(place, json.get<std::string>(), value);
}

void read(const Place& place, const nlohmann::ordered_json& json, bool& value) {
  if (!json.is_boolean()) {
    wrong(place, "true or false", json.dump());
  }
  value = json.get<bool>();
}

void read(const Place& place, const nlohmann::ordered_json& json, int64_t& value) {
  if (!json.is_number_integer()) {
    wrong(place, "a whole number", json.dump());
  }
  read(place, json.dump(), value);
}

void read(const Place& place, const nlohmann::ordered_json& json, double& value) {
  if (!json.is_number()) {
    wrong(place, "a number", json.dump());
  }
  read(place, json.dump(), value);
}

void throw_unknown_setting(const char* where,
                           std::string_view name,
                           const std::vector<std::string>& names) {
  const auto meant = strings::closest(name, names);
  throw UsageError(
      where,
      fmt::format(
          "unknown option --{}{}", name, meant ? fmt::format(": nearest is --{}", *meant) : ""));
}

}  // namespace argosy::recipes::detail
