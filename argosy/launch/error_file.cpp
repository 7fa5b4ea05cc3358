#include "argosy/launch/error_file.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "argosy/os/fd.h"

#include <nlohmann/json.hpp>

namespace argosy::launch {
namespace {

using nlohmann::json;

constexpr size_t kLongest = size_t{1} << 20;

std::string text_of(const json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

void prepare_error_file(const std::string& path) {
  if (path.empty()) {
    return;
  }
  std::error_code ignored;  // who writes there will see
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  ::unlink(path.c_str());
}

std::optional<ErrorNote> read_error_file(const std::string& path) {
  if (path.empty()) {
    return std::nullopt;
  }
  const Result<std::string> text = os::read_file(path, kLongest);
  const json note = text.ok() ? json::parse(*text, nullptr, false) : json();
  if (!note.is_object()) {
    return std::nullopt;
  }
  ErrorNote error{.path = path};
  const auto message = note.find("message");
  if (message != note.end() && message->is_object()) {
    error.message = text_of(*message, "message");
    const auto extra = message->find("extraInfo");
    error.stack =
        extra != message->end() && extra->is_object() ? text_of(*extra, "py_callstack") : "";
  } else {
    error.message = text_of(note, "message");
  }
  return error.message.empty() ? std::nullopt : std::optional(std::move(error));
}

}  // namespace argosy::launch
