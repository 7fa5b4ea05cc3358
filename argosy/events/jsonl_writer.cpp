#include "argosy/events/jsonl_writer.h"

#include "argosy/base/error.h"
#include "argosy/events/append_file.h"

#include <nlohmann/json.hpp>

namespace argosy::events {
namespace {}  // namespace

JsonlWriter::JsonlWriter(const std::string& path)
    : file_(std::make_unique<AppendFile>(path, "events.jsonl")) {}

JsonlWriter::~JsonlWriter() = default;

void JsonlWriter::write(const nlohmann::ordered_json& record) {
  const std::string line =
      record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (const Status status = file_->append(line); !status.ok()) {
    throw DataError("events.jsonl", status.failure().what, {file_->path()});
  }
}

}  // namespace argosy::events
