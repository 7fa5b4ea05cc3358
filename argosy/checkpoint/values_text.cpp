#include "argosy/checkpoint/values_text.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "argosy/base/error.h"

namespace argosy::checkpoint {
namespace {

using nlohmann::ordered_json;

constexpr const char* kFloat = "float";
constexpr int kMostLevels = 200;  // below it goes by recursion

void check_level(int level) {
  if (level > kMostLevels) {
    throw CheckpointError("checkpoint.values",
                          fmt::format("values of more than {} levels. Flatten them", kMostLevels));
  }
}

ordered_json encode(const ordered_json& value, int level = 0) {
  check_level(level);
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    return {{kFloat, std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf"}};
  }
  if (value.is_binary()) {
    throw CheckpointError("checkpoint.values", "bytes are no value. Save them as a tensor of u8");
  }
  ordered_json copy = value;
  if (copy.is_structured()) {
    for (ordered_json& item : copy) {
      item = encode(item, level + 1);
    }
  }
  return copy;
}

/// Turns a {"float": …} into the number that it stands for.
void decode_float(ordered_json& value) {
  const bool one =
      value.is_object() && value.size() == 1 && value.contains(kFloat) && value[kFloat].is_string();
  const std::string word = one ? value[kFloat].get<std::string>() : "";
  if (word == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (word == "inf" || word == "-inf") {
    value = (word == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
  }
}

void decode(ordered_json& value, int level = 0) {
  check_level(level);
  decode_float(value);
  if (value.is_structured()) {
    for (ordered_json& item : value) {
      decode(item, level + 1);
    }
  }
}

}  // namespace

std::string values_text(const ordered_json& values) {
  try {
    return encode(values).dump(1) + "\n";
  } catch (const nlohmann::json::type_error& error) {
    throw CheckpointError("checkpoint.values",
                          fmt::format("a text is not UTF-8 ({})", error.what()));
  }
}

ordered_json parse_values(const std::string& text, const std::string& path) {
  ordered_json values = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (values.is_discarded()) {
    throw CheckpointError("checkpoint.values", "expected JSON. The file is damaged", {path, {}});
  }
  decode(values);
  return values;
}

}  // namespace argosy::checkpoint
