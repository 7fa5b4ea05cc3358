#include "argosy/train/numbers.h"

#include <cmath>
#include <limits>
#include <string>

#include "argosy/base/error.h"

#include <nlohmann/json.hpp>

namespace argosy::train::detail {

nlohmann::ordered_json to_json(double value) {
  if (std::isfinite(value)) {
    return value;
  }
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double number_in(const nlohmann::ordered_json& object, std::string_view field) {
  const auto found = object.find(std::string(field));
  if (found != object.end() && found->is_number()) {
    return found->get<double>();
  }
  if (found != object.end() && found->is_string()) {
    const auto text = found->get<std::string>();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "inf" || text == "-inf") {
      return text == "inf" ? kInfinity : -kInfinity;
    }
    if (text == "nan") {
      return std::numeric_limits<double>::quiet_NaN();
    }
  }
  throw CheckpointError("train.state", "expected a number", {std::string(field)});
}

}  // namespace argosy::train::detail
