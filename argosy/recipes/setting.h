#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

namespace argosy::recipes {

inline constexpr double kAnyNumber = -std::numeric_limits<double>::infinity();

/// An option of a command, and where its value lies: what the command line, a configuration file,
/// --help and what is stored with a run are all made of.
template <typename Settings>
struct Setting {
  using Member = std::variant<std::string Settings::*,
                              bool Settings::*,
                              int64_t Settings::*,
                              double Settings::*,
                              std::optional<int64_t> Settings::*,
                              std::optional<double> Settings::*>;

  /// `least`: of numbers. `words`: a text is one of these; empty: any.
  Setting(const char* name,
          const char* group,
          Member member,
          const char* help,
          double least = kAnyNumber,
          std::vector<std::string> words = {})
      : name(name),
        group(group),
        member(member),
        help(help),
        least(least),
        words(std::move(words)) {}

  const char* name;
  const char* group;  ///< under which --help shows it
  Member member;
  const char* help;
  double least;
  std::vector<std::string> words;
};

namespace detail {

/// How a value is named in messages: "recipes.train", "--epochs".
struct Place {
  const char* where = "";
  std::string name{};
  double least = 0;
  const std::vector<std::string>* words = nullptr;
};

// From a word of the command line. Errors: UsageError naming option and value.
void read(const Place& place, const std::string& text, std::string& value);
void read(const Place& place, const std::string& text, bool& value);
void read(const Place& place, const std::string& text, int64_t& value);
void read(const Place& place, const std::string& text, double& value);
// From JSON. Errors: the same.
void read(const Place& place, const nlohmann::ordered_json& json, std::string& value);
void read(const Place& place, const nlohmann::ordered_json& json, bool& value);
void read(const Place& place, const nlohmann::ordered_json& json, int64_t& value);
void read(const Place& place, const nlohmann::ordered_json& json, double& value);

template <typename From, typename T>
void read(const Place& place, const From& from, std::optional<T>& value) {
  if constexpr (std::is_same_v<From, nlohmann::ordered_json>) {
    if (from.is_null()) {
      value.reset();
      return;
    }
  }
  T inner{};
  read(place, from, inner);
  value = inner;
}

[[noreturn]] void throw_unknown_setting(const char* where,
                                        std::string_view name,
                                        const std::vector<std::string>& names);

}  // namespace detail

/// All settings of a command.
template <typename Settings>
class SettingTable final {
 public:
  SettingTable(const char* where, std::vector<Setting<Settings>> rows)
      : where_(where), rows_(std::move(rows)) {}

  [[nodiscard]] const char* where() const { return where_; }
  [[nodiscard]] const std::vector<Setting<Settings>>& rows() const { return rows_; }

  /// Errors: UsageError: an unknown name, with the nearest; a value of another kind.
  void set(Settings& settings, std::string_view name, const std::string& text) const {
    put(settings, find(name), text);
  }
  /// The fields of an object; null: not set. Errors: the same; no object.
  void set(Settings& settings, const nlohmann::ordered_json& object) const {
    for (const auto& [name, value] : object.items()) {
      put(settings, find(name), value);
    }
  }
  [[nodiscard]] nlohmann::ordered_json to_json(const Settings& settings) const {
    auto object = nlohmann::ordered_json::object();
    for (const Setting<Settings>& row : rows_) {
      std::visit([&](auto member) { object[row.name] = json_of(settings.*member); }, row.member);
    }
    return object;
  }

 private:
  template <typename T>
  static nlohmann::ordered_json json_of(const T& value) {
    return value;
  }
  template <typename T>
  static nlohmann::ordered_json json_of(const std::optional<T>& value) {
    return value.has_value() ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  }

  [[nodiscard]] const Setting<Settings>& find(std::string_view name) const {
    std::vector<std::string> names;
    for (const Setting<Settings>& row : rows_) {
      if (row.name == name) {
        return row;
      }
      names.emplace_back(row.name);
    }
    detail::throw_unknown_setting(where_, name, names);
  }

  template <typename From>
  void put(Settings& settings, const Setting<Settings>& row, const From& from) const {
    const detail::Place place{.where = where_,
                              .name = std::string("--") + row.name,
                              .least = row.least,
                              .words = &row.words};
    std::visit([&](auto member) { detail::read(place, from, settings.*member); }, row.member);
  }

  const char* where_;
  std::vector<Setting<Settings>> rows_;
};

}  // namespace argosy::recipes
