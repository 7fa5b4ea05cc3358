#include "argosy/launch/error_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
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

/// What Argosy, libstdc++ and libc++ write when they end the process.
std::string exception_in(const std::vector<std::string>& lines) {
  constexpr std::string_view kGnu = "terminate called after throwing an instance of '";
  constexpr std::string_view kOurs = "error: [";  // see os/crash_handler.h
  constexpr std::string_view kGnuText = "  what():  ";
  constexpr std::string_view kLlvm = "uncaught exception of type ";
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (line.starts_with(kOurs)) {
      return std::string(line.substr(kOurs.size() - 1));
    }
    if (const size_t found = line.find(kLlvm); found != std::string_view::npos) {
      return std::string(line.substr(found + kLlvm.size()));
    }
    const size_t begin = line.find(kGnu);
    const size_t end = line.rfind('\'');
    if (begin == std::string_view::npos || end < begin + kGnu.size()) {
      continue;
    }
    const size_t type = begin + kGnu.size();
    const std::string_view next = i + 1 < lines.size() ? lines[i + 1] : std::string_view();
    const size_t text = next.find(kGnuText);
    return text == std::string_view::npos
               ? std::string(line.substr(type, end - type))
               : fmt::format(
                     "{}: {}", line.substr(type, end - type), next.substr(text + kGnuText.size()));
  }
  return "";
}

/// os/crash_handler.h writes "SIGABRT …" where a rank called abort().
bool tells_of_an_exception(const std::string& message) {
  return !message.starts_with("SIG") && !message.starts_with("std::terminate()");
}

}  // namespace

std::string exception_of(const std::optional<ErrorNote>& note,
                         const std::vector<std::string>& last_lines) {
  constexpr size_t kWidth = 500;
  const std::string all =
      note && tells_of_an_exception(note->message) ? note->message : exception_in(last_lines);
  const std::string line = all.substr(0, std::min(all.find('\n'), kWidth));
  return line.size() < all.size() ? line + " …" : line;
}

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
