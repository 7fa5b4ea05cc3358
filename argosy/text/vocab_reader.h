#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "argosy/text/bpe_model.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::text {

/// Reads the vocabulary and merges of a byte-level BPE, where tokens are written in the characters
/// that stand for bytes.
class VocabReader final {
 public:
  /// `where` and `path` begin its errors.
  VocabReader(const char* where, std::string path) : where_(where), path_(std::move(path)) {}

  /// Reads {"token": id, …}. Errors: DataError.
  void read(const nlohmann::json& vocab);
  /// Adds the next merge, of two tokens as they are written. `place`: where it stands.
  void add_merge(std::string_view left, std::string_view right, const std::string& place);

  /// Returns a bound of the ids that read() takes, for those of added tokens.
  [[nodiscard]] int64_t most_ids() const { return most_ids_; }
  [[nodiscard]] BpeModel::Tokens& tokens() { return tokens_; }
  [[nodiscard]] std::vector<BpeMerge>& merges() { return merges_; }
  /// Ids of the tokens as they are written.
  [[nodiscard]] const std::unordered_map<std::string, int32_t>& ids() const { return ids_; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  int32_t merged_id(std::string_view token, const std::string& place) const;

  const char* where_;
  std::string path_;
  int64_t most_ids_ = 0;
  BpeModel::Tokens tokens_{};
  std::vector<BpeMerge> merges_{};
  std::unordered_map<std::string, int32_t> ids_{};  // of tokens as they are written
};

/// Returns the beginning of a value, for a message.
[[nodiscard]] std::string shown_json(const nlohmann::json& value);

/// Reads a file of JSON whole. Errors: DataError when it cannot be read or is no JSON object.
[[nodiscard]] nlohmann::json read_json(const char* where, const std::string& path);

}  // namespace argosy::text
