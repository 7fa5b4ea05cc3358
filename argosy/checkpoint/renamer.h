#pragma once

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "argosy/checkpoint/read_weights.h"

// Internal to the room.
namespace argosy::checkpoint {

/// Applies rules to names. Errors: UsageError for a pattern that is no regular expression.
class Renamer final {
 public:
  explicit Renamer(const std::vector<Rename>& rules);
  [[nodiscard]] std::string operator()(std::string name) const;

 private:
  std::vector<std::pair<std::regex, std::string>> rules_{};
};

}  // namespace argosy::checkpoint
