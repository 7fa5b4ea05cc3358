#include "argosy/text/vocab_reader.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/os/fd.h"
#include "argosy/text/byte_alphabet.h"

#include <nlohmann/json.hpp>

namespace argosy::text {
namespace {

constexpr size_t kMostJsonBytes = size_t{256} << 20;  // of a file; Llama 3's has 9 MB
constexpr int kMostDepth = 32;                        // of objects and lists

/// Ids have few gaps, and memory is needed for each.
int64_t most_ids_for(size_t tokens) {
  return 2 * static_cast<int64_t>(tokens) + 65536;
}

}  // namespace

std::string shown_json(const nlohmann::json& value) {
  return std::string(strings::first_columns(printable(value.dump()), 80));
}

void VocabReader::fail(const std::string& what) const {
  throw DataError(where_, what, {path_});
}

void VocabReader::read(const nlohmann::json& vocab) {
  if (!vocab.is_object() || vocab.empty()) {
    fail("expected a vocabulary {\"token\": id, …}. Is it another file?");
  }
  most_ids_ = most_ids_for(vocab.size());
  for (const auto& [written, value] : vocab.items()) {
    if (!value.is_number_integer() || value.get<int64_t>() < 0 ||
        value.get<int64_t>() >= most_ids_) {
      fail(fmt::format("token \"{}\": expected an id from 0 to {}, got {}",
                       printable(written),
                       most_ids_ - 1,
                       shown_json(value)));
    }
    const auto id = value.get<int32_t>();
    const auto place = static_cast<size_t>(id);
    tokens_.resize(std::max(tokens_.size(), place + 1));
    if (tokens_[place]) {
      fail(fmt::format(
          "two tokens have the id {}: expected one, \"{}\" is the second", id, printable(written)));
    }
    // What stands for no bytes is a special token, and its own text.
    tokens_[place] = from_byte_characters(written).value_or(written);
    ids_.emplace(written, id);
  }
}

int32_t VocabReader::merged_id(std::string_view token, const std::string& place) const {
  const auto id = ids_.find(std::string(token));
  if (id == ids_.end()) {
    fail(fmt::format("{}: the token \"{}\" is not in the vocabulary. Do the two belong together?",
                     place,
                     printable(token)));
  }
  return id->second;
}

void VocabReader::add_merge(std::string_view left,
                            std::string_view right,
                            const std::string& place) {
  merges_.push_back({merged_id(left, place),
                     merged_id(right, place),
                     merged_id(std::string(left) + std::string(right), place)});
}

nlohmann::json read_json(const char* where, const std::string& path) {
  const std::string text =
      os::read_file(path, kMostJsonBytes).or_throw<DataError>(where, DataPlace{path});
  const auto check_depth = [&](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    if (depth > kMostDepth) {  // a text of brackets alone would exhaust the stack later
      throw DataError(
          where,
          fmt::format("expected JSON of at most {} levels, got more. Is it another file?",
                      kMostDepth),
          {path});
    }
    return true;
  };
  try {
    nlohmann::json json = nlohmann::json::parse(text, check_depth);
    if (json.is_object()) {
      return json;
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataError(where,
                    fmt::format("not JSON, or damaged ({}). Fetch the file again",
                                strings::first_columns(printable(error.what()), 160)),
                    {path});
  }
  throw DataError(where, "expected a JSON object, got another value. Is it another file?", {path});
}

}  // namespace argosy::text
