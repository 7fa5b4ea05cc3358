#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace argosy::recipes {

/// An option of a model, data set, optimizer …, which stands after the colon of its name.
struct OptionRow {
  std::string name{};
  std::string
      fallback{};      ///< default as a user would write it; "auto": it follows from something else
  std::string help{};  ///< one line
};

/// What a model learns from, or what data are.
enum class Material : unsigned char { kPictures, kText, kClicks };

/// What every table says about each entry. --list, --help, errors and the builder all read it.
struct TableRow {
  std::string name{};  ///< "resnet18"
  std::string what{};  ///< one line
  std::vector<OptionRow> options{};
};

/// A table, as messages name it.
struct Kind {
  const char* where = "";   ///< "recipes.model"
  const char* word = "";    ///< "model"
  const char* plural = "";  ///< "models": its name in --list
};

inline constexpr Kind kModels{"recipes.model", "model", "models"};
inline constexpr Kind kData{"recipes.data", "data set", "data"};
inline constexpr Kind kOptimizers{"recipes.optimizer", "optimizer", "optimizers"};
inline constexpr Kind kSchedules{"recipes.schedule", "schedule", "schedules"};
inline constexpr Kind kTraffic{"recipes.traffic", "way to save traffic", "traffic"};
inline constexpr Kind kAugment{"recipes.augment", "transform", "augment"};

/// Returns the names of all rows of a table, in its order.
template <typename Entry>
[[nodiscard]] std::vector<std::string> names_of(const std::vector<Entry>& table) {
  std::vector<std::string> names;
  for (const Entry& entry : table) {
    names.push_back(entry.row.name);
  }
  return names;
}

[[noreturn]] void throw_unknown(const Kind& kind,
                                std::string_view name,
                                const std::vector<std::string>& names);

/// Returns the entry of that name. Errors: UsageError with the nearest name, which says how to see
/// all.
template <typename Entry>
[[nodiscard]] const Entry& find_entry(const Kind& kind,
                                      const std::vector<Entry>& table,
                                      std::string_view name) {
  for (const Entry& entry : table) {
    if (entry.row.name == name) {
      return entry;
    }
  }
  throw_unknown(kind, name, names_of(table));
}

/// Returns a table as --list prints it: each name with its line, and its options with their
/// defaults below.
[[nodiscard]] std::string listing(const std::vector<TableRow>& rows);

}  // namespace argosy::recipes
