#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/formats/pickle_value.h"

namespace argosy::formats {

inline std::span<const uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  }
  return text;
}

std::string to_text(const PickleValue& value);

inline std::string joined(std::span<const PickleValue> items, bool sorted) {
  std::vector<std::string> texts;
  for (const PickleValue& item : items) {
    texts.push_back(to_text(item));
  }
  if (sorted) {
    std::sort(texts.begin(), texts.end());
  }
  std::string text;
  for (const std::string& item : texts) {
    text += (text.empty() ? "" : ",") + item;
  }
  return text;
}

inline std::string dict_text(const PickleValue& value) {
  std::string text;
  for (const PickleEntry& entry : value.entries()) {
    text += (text.empty() ? "" : ",") + to_text(entry.key) + ":" + to_text(entry.value);
  }
  return "{" + text + "}";
}

inline std::string array_text(const PickleArray& array) {
  std::string shape;
  for (const int64_t dim : array.shape) {
    shape += (shape.empty() ? "" : "x") + std::to_string(dim);
  }
  return fmt::format(
      "A{};{};{}",
      type_code(array.type),
      shape,
      to_hex({reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()}));
}

/// A value as tests/golden/pickles/generate.py writes it.
inline std::string to_text(const PickleValue& value) {
  switch (value.kind()) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return value.as_bool() ? "True" : "False";
    case PickleKind::kInt:
      return std::to_string(value.as_int());
    case PickleKind::kFloat:
      return fmt::format("f{:016x}", std::bit_cast<uint64_t>(value.as_float()));
    case PickleKind::kString:
      return "s" + to_hex(value.as_text());
    case PickleKind::kBytes:
      return "b" + to_hex(value.as_text());
    case PickleKind::kByteArray:
      return "y" + to_hex(value.as_text());
    case PickleKind::kList:
      return "[" + joined(value.items(), false) + "]";
    case PickleKind::kTuple:
      return "(" + joined(value.items(), false) + ")";
    case PickleKind::kSet:
      return "<" + joined(value.items(), true) + ">";
    case PickleKind::kFrozenSet:
      return "F<" + joined(value.items(), true) + ">";
    case PickleKind::kDict:
      return dict_text(value);
    case PickleKind::kOrderedDict:
      return "O" + dict_text(value) + to_text(value.attributes());
    case PickleKind::kArray:
      return array_text(value.as_array());
    default:
      return value.describe();
  }
}

struct GoldenPickle {
  std::string name;
  std::string protocol;
  std::string pickle;
  std::string text;
};

inline std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') {
      break;
    }
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(c));
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count);
    }
  }
  return bytes;
}

/// What Python wrote: see tests/golden/pickles/generate.py.
inline std::vector<GoldenPickle> golden_pickles(const std::string& name) {
  std::ifstream file(std::string(ARGOSY_GOLDEN_PICKLES) + "/" + name);
  std::vector<GoldenPickle> pickles;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    std::istringstream fields(line);
    GoldenPickle golden;
    std::string data;
    std::getline(fields, golden.name, '\t');
    std::getline(fields, golden.protocol, '\t');
    std::getline(fields, data, '\t');
    std::getline(fields, golden.text, '\t');
    golden.pickle = from_base64(data);
    if (golden.text == "=") {
      golden.text = pickles.back().text;
    }
    pickles.push_back(golden);
  }
  return pickles;
}

}  // namespace argosy::formats
