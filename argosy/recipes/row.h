#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace argosy::recipes {

/// An option of a model, data set, optimizer …: what stands behind its name's colon.
struct OptionRow {
  std::string name{};
  std::string fallback{};  ///< as it would be written; "auto": it follows from something else
  std::string help{};      ///< one line
};

/// What every table has of each entry: --list, --help, errors and the builder read the same.
struct Row {
  std::string name{};  ///< "resnet18"
  std::string what{};  ///< one line
  std::vector<OptionRow> options{};
};

/// Which table, for messages.
struct Kind {
  const char* where = "";   ///< "recipes.model"
  const char* word = "";    ///< "model"
  const char* plural = "";  ///< "models": what --list calls it
};

inline constexpr Kind kModels{"recipes.model", "model", "models"};
inline constexpr Kind kData{"recipes.data", "data set", "data"};
inline constexpr Kind kOptimizers{"recipes.optimizer", "optimizer", "optimizers"};
inline constexpr Kind kSchedules{"recipes.schedule", "schedule", "schedules"};
inline constexpr Kind kAugment{"recipes.augment", "transform", "augment"};

/// Names of all rows of a table, in its order.
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

/// The entry of that name. Errors: UsageError with the nearest name and how to see all.
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

/// A table as --list prints it: name, what it is, and below it its options with their defaults.
[[nodiscard]] std::string listing(const std::vector<Row>& rows);

}  // namespace argosy::recipes
