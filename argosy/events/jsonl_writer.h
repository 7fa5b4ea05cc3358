#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace argosy::events {

class AppendFile;

/// Appends JSON objects to a file, one per line (https://jsonlines.org). Each is one write, so a
/// killed program loses at most the record that it was writing. A record that does not fit on the
/// disk is taken back. A file has one writer.
///
///     JsonlWriter metrics("runs/a/metrics.jsonl");
///     metrics.write({{"epoch", 1}, {"loss", 0.43}});
///
/// JSON knows no NaN and no infinities; they are written as null.
/// Errors: DataError naming the path and the reason.
class JsonlWriter final {
 public:
  /// Creates the file's folder if needed.
  explicit JsonlWriter(const std::string& path);
  ~JsonlWriter();
  JsonlWriter(const JsonlWriter&) = delete;
  JsonlWriter& operator=(const JsonlWriter&) = delete;
  JsonlWriter(JsonlWriter&&) = delete;
  JsonlWriter& operator=(JsonlWriter&&) = delete;

  void write(const nlohmann::ordered_json& record);

 private:
  std::unique_ptr<AppendFile> file_;
};

}  // namespace argosy::events
